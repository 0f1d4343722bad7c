package test

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// environments are functions that answer with the variable STAGE as it was when they were loaded and as it is, and with their arguments.
var environments = []struct{ kind, code string }{
	{"nodejs:20", "const early = process.env.STAGE\nfunction main(args) { return { early: early ?? null, now: process.env.STAGE ?? null, args } }"},
	{"python:3", "import os\nearly = os.environ.get('STAGE')\ndef main(args):\n    return {'early': early, 'now': os.environ.get('STAGE'), 'args': args}\n"},
	{"native", base64.StdEncoding.EncodeToString([]byte(`#!/bin/bash
early=$STAGE
while read -r line; do
	args=${line#'{"value":'}
	echo "{\"early\":\"$early\",\"now\":\"$STAGE\",\"args\":${args%%,\"action_name\"*}}" >&3
done
`))},
}

type document map[string]any

// variable is a parameter that is a variable of the environment.
func variable(key string, value any, secret bool) document {
	return document{"key": key, "value": value, "init": true, "secret": secret}
}

// TestEnvironment: variables are there when a function is loaded and when it runs, and a sandbox with old ones serves no more.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{})
	c := client(t, s)
	for _, f := range environments {
		t.Run(f.kind, func(t *testing.T) {
			name := strings.ReplaceAll(f.kind, ":", "_")
			for _, stage := range []string{"blue", "green"} {
				for _, secret := range []bool{false, true} {
					put := document{
						"exec":       document{"kind": f.kind, "code": f.code},
						"parameters": []document{variable("STAGE", stage, secret), {"key": "plain", "value": 1}},
					}
					if err := c.Put(t.Context(), name, put); err != nil {
						t.Fatal(err)
					}
					for range 2 {
						got := invoke(t, c, name, document{"x": 2, "STAGE": "of the caller"})
						equalJSON(t, got.Response.Result, `{"early":"`+stage+`","now":"`+stage+`","args":{"plain":1,"x":2}}`)
					}
				}
			}
		})
	}
}

// TestDeployedSecrets: a deployment sends its secrets once, and again when one has changed.
func TestDeployedSecrets(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{})
	folder := t.TempDir()
	for name, content := range map[string]string{
		"a.py": "import os\ndef main(args):\n    return {'token': os.environ.get('TOKEN'), 'of': os.environ.get('OF'), 'n': os.environ.get('N')}\n",
		"forerun.yaml": `
packages:
  p: {secrets: {OF: package}, actions: {a: {file: a.py, secrets: {TOKEN: "${WORD}"}, env: {N: 1}}, b: {file: a.py}}}
  q: {bind: /_/p, secrets: {OF: binding}}
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ word, done string }{
		{"one", "4 created, 0 updated, 0 unchanged"}, {"one", "0 created, 0 updated, 4 unchanged"}, {"two", "0 created, 1 updated, 3 unchanged"},
	} {
		cmd := exec.CommandContext(t.Context(), binary, "deploy", filepath.Join(folder, "forerun.yaml"))
		cmd.Env = append(os.Environ(), "WSK_CONFIG_FILE="+s.Props(), "WORD="+c.word)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.done) {
			t.Errorf("%v: %s, want %s", err, out, c.done)
		}
	}
	client := client(t, s)
	equalJSON(t, invoke(t, client, "p/a", document{}).Response.Result, `{"token":"two","of":"package","n":"1"}`)
	equalJSON(t, invoke(t, client, "q/a", document{}).Response.Result, `{"token":"two","of":"binding","n":"1"}`)
}

// TestSecrets: nothing on disk, in a log or in a backup tells a secret; a restored server needs the file with the key.
func TestSecrets(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{})
	c := client(t, s)
	const secret = "hunter2-is-not-a-good-password"
	put := document{
		"exec":       document{"kind": "python:3", "code": "import os\ndef main(args):\n    return {'length': len(os.environ['TOKEN']) + len(args['pin'])}\n"},
		"parameters": []document{variable("TOKEN", secret, true), {"key": "pin", "value": secret, "secret": true}},
	}
	if err := c.Put(t.Context(), "secret", put); err != nil {
		t.Fatal(err)
	}
	const length = `{"length":60}`
	equalJSON(t, invoke(t, c, "secret", document{}).Response.Result, length)
	for _, path := range []string{"actions/secret", "actions", "activations?docs=true"} {
		if _, body, err := c.Do(t.Context(), "GET", path, nil); err != nil || strings.Contains(string(body), secret) {
			t.Errorf("%s shows it: %s (%v)", path, body, err)
		}
	}
	file, said, err := operator(t, s, "backup", t.TempDir())
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	tells := func(where string) {
		t.Helper()
		if content, err := os.ReadFile(where); err != nil || strings.Contains(string(content), secret) {
			t.Errorf("%s tells it (%v)", where, err)
		}
	}
	tells(file)
	if err := filepath.WalkDir(s.Options.Data, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			tells(path)
		}
		if errors.Is(err, fs.ErrNotExist) { // a file of the store that was replaced meanwhile
			return nil
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if strings.Contains(s.Log(), secret) {
		t.Error("the server's log tells it")
	}
	key := filepath.Join(s.Options.Data, "secretkeys")
	if info, err := os.Stat(key); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	for _, withKey := range []bool{false, true} {
		data := filepath.Join(t.TempDir(), "restored")
		if _, said, err := operator(t, s, "restore", file, "--data", data); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if withKey {
			content, err := os.ReadFile(key)
			if err == nil {
				err = os.WriteFile(filepath.Join(data, "secretkeys"), content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		after := client(t, start(t, server.Options{Data: data}))
		got := invoke(t, after, "secret", document{}).Response.Result
		if withKey {
			equalJSON(t, got, length)
		} else if !strings.Contains(string(got), "secretkeys") {
			t.Errorf("without the key it answers %s", got)
		}
	}
}
