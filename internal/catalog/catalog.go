// Package catalog is what every tenant finds in the system's namespace: the
// public packages /whisk.system/utils and /whisk.system/alarms, with the actions
// and feeds that Apache OpenWhisk's catalog has there.
//
// It promises that the actions are ordinary ones, deployed in Node like the
// originals, and that a server which starts with another version of them
// replaces what is stored.
package catalog

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"path"
	"reflect"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

//go:embed utils utils.json alarms alarms.json
var files embed.FS

// packages are what the catalog has: each has a file of descriptions and a folder of code.
var packages = []string{"utils", "alarms"}

// kind is that of all actions here.
const kind = "nodejs:20"

// described is what is told of a package or an action in its annotations.
type described struct {
	Description  string          `json:"description"`
	Parameters   json.RawMessage `json:"parameters"`
	SampleInput  json.RawMessage `json:"sampleInput"`
	SampleOutput json.RawMessage `json:"sampleOutput"`
	Feed         string          `json:"feed"` // of an action that is a feed: the file with its code
}

// annotations are in the order of their names.
func (d *described) annotations() []forerun.KeyValue {
	description, _ := json.Marshal(d.Description) // strings always marshal
	all := []forerun.KeyValue{{Key: "description", Value: description}}
	for _, kv := range []forerun.KeyValue{
		{Key: "parameters", Value: d.Parameters}, {Key: "sampleInput", Value: d.SampleInput}, {Key: "sampleOutput", Value: d.SampleOutput},
	} {
		if kv.Value != nil {
			all = append(all, kv)
		}
	}
	return all
}

// Install puts the packages and their actions into the registry, or leaves them if they are there already.
func Install(ctx context.Context, r *registry.Registry) error {
	for _, pkg := range packages {
		if err := install(ctx, r, pkg); err != nil {
			return err
		}
	}
	return nil
}

func install(ctx context.Context, r *registry.Registry, pkg string) error {
	text, err := files.ReadFile(pkg + ".json")
	if err != nil {
		return err
	}
	var all struct {
		described
		Actions map[string]*described `json:"actions"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	if err := putPackage(ctx, r, pkg, &all.described); err != nil {
		return err
	}
	for name, d := range all.Actions {
		if err := putAction(ctx, r, pkg, name, d); err != nil {
			return err
		}
	}
	return nil
}

func putPackage(ctx context.Context, r *registry.Registry, pkg string, d *described) error {
	name := forerun.Name{Namespace: registry.System, Entity: pkg}
	annotations := compact(d.annotations())
	old, err := r.Entity(ctx, registry.Packages, name)
	switch {
	case err == nil && old.Publish && reflect.DeepEqual(old.Annotations, annotations):
		return nil
	case err != nil && forerun.KindOf(err) != forerun.NotFound:
		return err
	}
	_, err = r.PutEntity(ctx, registry.Packages, name, true, func(*registry.Entity) (*registry.Entity, error) {
		return &registry.Entity{Publish: true, Annotations: annotations}, nil
	})
	return err
}

func putAction(ctx context.Context, r *registry.Registry, pkg, entity string, d *described) error {
	file, extra := entity+".js", []forerun.KeyValue{{Key: annotation.ProvideAPIKey, Value: json.RawMessage("false")}}
	if d.Feed != "" { // a feed changes the timers of its caller's triggers
		file, extra = d.Feed, []forerun.KeyValue{{Key: "feed", Value: json.RawMessage("true")}, {Key: annotation.ProvideAPIKey, Value: json.RawMessage("true")}}
	}
	code, err := files.ReadFile(path.Join(pkg, file))
	if err != nil {
		return err
	}
	annotations := compact(append(append(d.annotations(), extra...), forerun.KeyValue{Key: "exec", Value: json.RawMessage(`"` + kind + `"`)}))
	exec := forerun.Exec{Kind: kind, Code: string(code)}
	name := forerun.Name{Namespace: registry.System, Package: pkg, Entity: entity}
	old, err := r.Action(ctx, name)
	switch {
	case err == nil && reflect.DeepEqual(old.Exec, exec) && reflect.DeepEqual(old.Annotations, annotations):
		return nil
	case err != nil && forerun.KindOf(err) != forerun.NotFound:
		return err
	}
	_, err = r.PutAction(ctx, name, true, func(*forerun.Action) (*forerun.Action, error) {
		return &forerun.Action{Exec: exec, Annotations: annotations, Limits: forerun.DefaultLimits()}, nil
	})
	return err
}

// compact writes values as the registry stores them.
func compact(kvs []forerun.KeyValue) []forerun.KeyValue {
	for i := range kvs {
		var b bytes.Buffer
		if json.Compact(&b, kvs[i].Value) == nil { // what Unmarshal gave is valid
			kvs[i].Value = b.Bytes()
		}
	}
	return kvs
}
