// Package workloads holds the applications of SpecFaaS (table II), what they need
// around them, and how they are deployed and asked. FaaSChain's are compositions;
// the functions of TrainTicket's and Alibaba's call each other.
package workloads

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"

	"forerun.dev/forerun/test/server"
)

//go:embed apps
var files embed.FS

// Application is one application.
type Application struct {
	Slug        string              `json:"-"` // first part of the names of its actions
	Name        string              `json:"name"`
	About       string              `json:"about"`
	Suite       string              `json:"suite"`
	Functions   []string            `json:"functions"`
	Entry       string              `json:"entry"`       // the function that is asked, of an implicit application
	Composition json.RawMessage     `json:"composition"` // the document, of an explicit one
	Calls       map[string][]string `json:"calls"`       // which functions each calls, of an implicit one
	code        string
	kind        string              // of the functions; empty: Python
	sequences   map[string][]string // of functions, by name
}

// Applications returns the sixteen: FaaSChain's six, TrainTicket's five, and five like Alibaba's from the seeds 1 to 5.
func Applications() ([]*Application, error) {
	outside, calls, err := sharedCode()
	if err != nil {
		return nil, err
	}
	var all []*Application
	for _, slug := range []string{
		"login", "banking", "flightbook", "hotelbook", "smarthome", "onlpurch",
		"tcktapp", "tripinfapp", "querytrvl", "getleftapp", "cancelapp",
	} {
		a, err := read(slug, outside, calls)
		if err != nil {
			return nil, fmt.Errorf("the application %s cannot be read: %w", slug, err)
		}
		all = append(all, a)
	}
	for seed := range uint64(5) {
		all = append(all, alibaba(seed+1, outside+calls))
	}
	return all, nil
}

// sharedCode returns the code in each application that asks for outside services, and that calls other functions.
func sharedCode() (outside, calls string, err error) {
	first, err := files.ReadFile("apps/outside.py")
	if err != nil {
		return "", "", err
	}
	second, err := files.ReadFile("apps/calls.py")
	return string(first), string(second), err
}

func read(slug, outside, calls string) (*Application, error) {
	text, err := files.ReadFile("apps/" + slug + "/application.json")
	if err != nil {
		return nil, err
	}
	code, err := files.ReadFile("apps/" + slug + "/functions.py")
	if err != nil {
		return nil, err
	}
	a := &Application{Slug: slug}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, err
	}
	if a.Composition != nil {
		calls = ""
	}
	a.code = outside + calls + string(code)
	return a, nil
}

// Action is the name of the action that is asked.
func (a *Application) Action() string {
	if a.Entry != "" {
		return a.Slug + "-" + a.Entry
	}
	return a.Slug
}

// Deploy puts the functions, and the composition if there is one.
func (a *Application) Deploy(ctx context.Context, c *server.Client) error {
	return a.deploy(ctx, c, func(function string) (string, string) { return a.code, function })
}

// annotation is one as the API has it.
func annotation(key string, value any) map[string]any {
	return map[string]any{"key": key, "value": value}
}

// deploy puts functions whose code, and name within it, program returns; more are annotations of all actions.
func (a *Application) deploy(ctx context.Context, c *server.Client, program func(function string) (code, name string), more ...any) error {
	for _, f := range a.Functions {
		code, main := program(f)
		action := map[string]any{
			"exec":        map[string]any{"kind": cmp.Or(a.kind, "python:3"), "code": code, "main": main},
			"limits":      map[string]int{"timeout": 600_000}, // with the cold starts of all that it calls, on a busy machine
			"annotations": append([]any{annotation("read-hosts", []string{ReadAddress}), annotation("keep-process", true)}, more...),
		}
		if err := c.Put(ctx, a.Slug+"-"+f, action); err != nil {
			return err
		}
	}
	if a.Composition == nil {
		return nil
	}
	return c.Put(ctx, a.Slug, map[string]any{
		"exec":        map[string]any{"kind": "nodejs:default", "code": "// the annotation holds it"},
		"annotations": append([]any{annotation("conductor", a.Composition)}, more...),
	})
}

// ServerArguments are what `forerun serve` needs for the functions to reach the companies.
func ServerArguments() []string {
	return []string{"--egress-allow", actAddress + "/32," + ReadAddress + "/32"}
}

// depth is how many functions a line of calls from f has at most.
func (a *Application) depth(f string) int {
	below := 0
	for _, called := range a.Calls[f] {
		below = max(below, a.depth(called))
	}
	return 1 + below
}
