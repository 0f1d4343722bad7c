package baseline

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"forerun.dev/forerun/test/server"
)

// What is sent: the functions return it, and wait as many milliseconds as it says. An answer must hold sent.
const (
	sent    = `"x":1`
	trivial = "{" + sent + "}"
	waiting = `{"wait":10,` + sent + "}"
)

// language is one in which the function is measured, and the bounds of the cases: milliseconds above the echo, calls per second.
type language struct {
	name, kind string
	fresh      bool                              // annotation fresh-process
	code       func(version int) (string, error) // each version is another function
	server     string                            // processor time of a call: the server's,
	sandbox    string                            // and in the sandbox
	call       string
	sequence   string
	waiting    string
	cold       string
	throughput string
}

func (b *bench) python() *language {
	const code = "import time\n\ndef main(args):\n    if 'wait' in args:\n        time.sleep(args['wait'] / 1000)\n    return args\n"
	return &language{
		name: "Python", kind: "python:3", call: "<=0.35", sequence: "<=3.5", waiting: "<=112", cold: "<=60", throughput: ">=4500",
		server: "<=0.25", sandbox: "<=0.2",
		code: func(version int) (string, error) { return fmt.Sprintf("# %d\n%s", version, code), nil },
	}
}

// freshPython has a process for each activation.
func (b *bench) freshPython() *language {
	l := b.python()
	l.name, l.fresh, l.call, l.sequence, l.throughput, l.server, l.sandbox = "fresh-Python", true, "<=1.2", "<=9", ">=700", "", ""
	return l
}

func (b *bench) node() *language {
	const code = "const main = args => args.wait ? new Promise(done => setTimeout(done, args.wait, args)) : args\n"
	return &language{
		name: "Node", kind: "nodejs:20", call: "<=0.8", cold: "<=110", throughput: ">=5000",
		code: func(version int) (string, error) { return fmt.Sprintf("// %d\n%s", version, code), nil },
	}
}

// native is compiled Go.
func (b *bench) native() *language {
	return &language{
		name: "native", kind: "native", call: "<=0.5", sequence: "<=4", waiting: "<=104", cold: "<=25", throughput: ">=6000",
		code: func(version int) (string, error) {
			program, err := os.ReadFile(b.options.native)
			if err != nil {
				return "", fmt.Errorf("there is no native function: make bench-baseline builds it: %w", err)
			}
			return base64.StdEncoding.EncodeToString(fmt.Append(program, version)), nil // what follows an executable is not looked at
		},
	}
}

// slug is how the language is named in names of actions and cases.
func (l *language) slug() string { return strings.ToLower(l.name) }

// put deploys an action of the language.
func (l *language) put(ctx context.Context, c *server.Client, name string, version int) error {
	code, err := l.code(version)
	if err != nil {
		return err
	}
	return c.Put(ctx, name, map[string]any{
		"exec":        map[string]any{"kind": l.kind, "code": code},
		"annotations": []any{map[string]any{"key": "fresh-process", "value": l.fresh}},
	})
}

// putSequence deploys a sequence of ten actions, each of them another one, and returns its name.
func (l *language) putSequence(ctx context.Context, c *server.Client) (string, error) {
	var components []string
	for i := range stages {
		component := fmt.Sprintf("%s-%d", l.slug(), i)
		if err := l.put(ctx, c, component, i); err != nil {
			return "", err
		}
		components = append(components, component)
	}
	name := l.slug() + "-sequence"
	return name, c.PutSequence(ctx, name, components...)
}
