package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/project"
	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// actionFlags are wsk's flags of `action create` and `action update`.
type actionFlags struct {
	kind, main, web, webSecure         string
	sequence, copy, native             bool
	docker                             string
	memory, timeout, logs, concurrency int
	params, annotations                *keyValues
	environment                        *environment
	delAnnotations                     []string
}

func newActionFlags(cmd *cobra.Command) *actionFlags {
	f, flags := new(actionFlags), cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "`KIND` of the function, like python:3, nodejs:20, java:17, go or native")
	flags.StringVar(&f.main, "main", "", "`NAME` of the function in its file, or of a jar's main class")
	flags.BoolVar(&f.native, "native", false, "the file is a native executable, or a zip with one: the same as --kind native")
	flags.StringVar(&f.docker, "docker", "", "`IMAGE` of Docker; not part of Forerun, other platforms have it")
	flags.BoolVar(&f.sequence, "sequence", false, "the action runs other actions, one after the other")
	flags.BoolVar(&f.copy, "copy", false, "the action is a copy of another")
	flags.StringVar(&f.web, "web", "", "make it a web action: `WHICH` is yes, raw or no")
	flags.StringVar(&f.webSecure, "web-secure", "", "`WHO` may call the web action: true, callers with a key of any namespace of the server; own, with a key of this namespace; false, everyone; "+
		"another word, callers that send it in the header X-Require-Whisk-Auth")
	flags.IntVarP(&f.memory, "memory", "m", 0, "memory limit in `MIB`")
	flags.VarP((*milliseconds)(&f.timeout), "timeout", "t", "time limit in `MS`")
	flags.IntVarP(&f.logs, "logsize", "l", 0, "limit of the logs in `MIB`")
	flags.IntVar(&f.logs, "logs", 0, "limit of the logs in `MIB`")
	flags.IntVarP(&f.concurrency, "concurrency", "c", 0, "limit of `N` activations in one process at a time")
	f.params, f.annotations, f.environment = params(flags), annotations(flags), environmentFlags(flags)
	flags.StringArrayVar(&f.delAnnotations, "del-annotation", nil, "remove the annotation `KEY`; may be repeated")
	return f
}

// body makes the body of a PUT.
func (f *actionFlags) body(cmd *cobra.Command, c *whisk.Client, artifact string) (*whisk.ActionPut, error) {
	body, err := f.base(cmd, c, artifact)
	if err != nil {
		return nil, err
	}
	given, err := f.params.all(cmd)
	if err != nil {
		return nil, err
	}
	body.Parameters = f.environment.over(withAll(body.Parameters, given))
	if given, err = f.annotations.all(cmd); err != nil {
		return nil, err
	}
	web, err := f.webAnnotations()
	if err != nil {
		return nil, err
	}
	body.Annotations = withAll(body.Annotations, append(web, given...))
	body.DelAnnotations = f.delAnnotations
	f.limits(cmd, body)
	return body, nil
}

// base is the body's code, and all of another action if it is a copy.
func (f *actionFlags) base(cmd *cobra.Command, c *whisk.Client, artifact string) (*whisk.ActionPut, error) {
	switch {
	case f.docker != "":
		return nil, wrongf("--docker: Docker images as actions are not part of Forerun; use --kind native with an executable")
	case (f.sequence || f.copy) && artifact == "":
		return nil, wrongf("the sequence, or the copy, needs actions: name them after the new action's name")
	case f.copy:
		return copyOf(cmd, c, artifact)
	case f.sequence:
		exec, err := sequenceOf(artifact)
		return &whisk.ActionPut{Exec: exec}, err
	case artifact == "":
		return f.withoutCode()
	}
	if f.native {
		f.kind = "native"
	}
	exec, warnings, err := project.ReadCode(artifact, f.kind, f.main)
	if err != nil {
		return nil, wrongf("%v", err)
	}
	sayAll(cmd, warnings)
	return &whisk.ActionPut{Exec: exec}, nil
}

// withoutCode is the body of an update that leaves the code as it is.
func (f *actionFlags) withoutCode() (*whisk.ActionPut, error) {
	if f.kind != "" || f.main != "" || f.native {
		return nil, wrongf("--kind, --native and --main go with code: name the function's file too")
	}
	return new(whisk.ActionPut), nil
}

func copyOf(cmd *cobra.Command, c *whisk.Client, artifact string) (*whisk.ActionPut, error) {
	name, err := nameOf(artifact)
	if err != nil {
		return nil, err
	}
	from, err := whisk.Get[whisk.Action](cmd.Context(), c, whisk.Path(whisk.Actions, name), url.Values{"code": {"true"}, "secrets": {"true"}})
	if err != nil {
		return nil, err
	}
	x, l := from.Value, from.Value.Limits
	body := &whisk.ActionPut{
		Exec: &x.Exec, Annotations: x.Annotations, Publish: &x.Publish,
		Limits: &whisk.LimitsPut{Timeout: &l.Timeout, Memory: &l.Memory, Logs: &l.Logs, Concurrency: &l.Concurrency},
	}
	if x.Exec.Kind != "sequence" {
		body.Parameters = x.Parameters
	}
	return body, nil
}

// sequenceOf reads actions with commas between.
func sequenceOf(artifact string) (*whisk.Exec, error) {
	exec := &whisk.Exec{Kind: "sequence"}
	for component := range strings.SplitSeq(artifact, ",") {
		name, err := nameOf(strings.TrimSpace(component))
		if err != nil {
			return nil, err
		}
		exec.Components = append(exec.Components, name.String())
	}
	return exec, nil
}

// limits takes those that were given.
func (f *actionFlags) limits(cmd *cobra.Command, body *whisk.ActionPut) {
	l := body.Limits
	if l == nil {
		l = new(whisk.LimitsPut)
	}
	for _, limit := range []struct {
		flag  string
		value *int
		to    **int
	}{
		{"memory", &f.memory, &l.Memory},
		{"timeout", &f.timeout, &l.Timeout},
		{"logs", &f.logs, &l.Logs},
		{"logsize", &f.logs, &l.Logs},
		{"concurrency", &f.concurrency, &l.Concurrency},
	} {
		if cmd.Flags().Changed(limit.flag) {
			*limit.to, body.Limits = limit.value, l
		}
	}
}

// webAnnotations are those that --web and --web-secure stand for.
func (f *actionFlags) webAnnotations() ([]forerun.KeyValue, error) {
	var kvs []forerun.KeyValue
	if f.web != "" {
		web, err := project.WebAnnotations(f.web)
		if err != nil {
			return nil, wrongf("--web: %v", err)
		}
		kvs = web
	}
	switch f.webSecure {
	case "":
	case "own":
		kvs = append(kvs, forerun.KeyValue{Key: "require-whisk-auth", Value: json.RawMessage(`["_"]`)})
	default:
		kvs = append(kvs, forerun.KeyValue{Key: "require-whisk-auth", Value: jsonOf(f.webSecure)})
	}
	return kvs, nil
}

// isWeb reports whether an action is a web action.
func isWeb(action *whisk.Action) bool {
	return string(forerun.Lookup(action.Annotations, "web-export")) == "true"
}

// actionURL is where an action is invoked, or for a web action where every HTTP client reaches it. The server knows that.
func actionURL(ctx context.Context, c *whisk.Client, action *whisk.Action) (string, error) {
	namespace, pkg, _ := strings.Cut(action.Namespace, "/")
	if !isWeb(action) {
		return c.Host() + "/api/v1/" + whisk.Path(whisk.Actions, forerun.Name{Namespace: namespace, Package: pkg, Entity: action.Name}), nil
	}
	origin, err := whisk.WebOrigin(ctx, c, namespace)
	return fmt.Sprintf("%s/api/v1/web/%s/%s/%s", origin, url.PathEscape(namespace), url.PathEscape(first(pkg, "default")), url.PathEscape(action.Name)), err
}

// saveCode writes an action's code to a file that is not there yet.
func saveCode(cmd *cobra.Command, action *whisk.Action, file string) error {
	if action.Exec.Code == nil {
		return wrongf("/%s/%s has no code to save: it is of kind %s", action.Namespace, action.Name, action.Kind())
	}
	content := []byte(*action.Exec.Code)
	if action.Exec.Binary {
		var err error
		if content, err = base64.StdEncoding.DecodeString(*action.Exec.Code); err != nil {
			return fmt.Errorf("the action's code is damaged: %w; deploy the action again", err)
		}
	}
	if file == "" {
		file = action.Name + ending(action.Kind(), content)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return wrongf("the code cannot be saved: %v", err)
	}
	_, err = out.Write(content)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		say(cmd, "ok: saved the code to %s", file)
	}
	return err
}

// ending is the ending of a file with code of a kind: an archive's, or else source's. A program has none.
func ending(kind string, content []byte) string {
	language, _, _ := strings.Cut(kind, ":")
	switch {
	case language == "java":
		return ".jar"
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		return ".zip"
	case bytes.HasPrefix(content, []byte("\x1f\x8b")):
		return ".tar.gz"
	}
	return map[string]string{"python": ".py", "nodejs": ".js"}[language]
}

// quoted is a string as JSON.
func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // strings always marshal
	return b
}
