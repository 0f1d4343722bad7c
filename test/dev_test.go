package test

import (
	"os"
	"path/filepath"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestDev: what is saved is deployed and invoked again; a mistake is told and waited out; logs stand beside.
func TestDev(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	folder := t.TempDir()
	save := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	save("forerun.yaml", "actions:\n  hello: { file: hello.py, inputs: { name: you } }\n")
	save("hello.py", "def main(args):\n    return {'greeting': 'Hello ' + args['name']}\n")

	dev := newShell(t, s).begin(t, "dev "+folder+" --invoke hello -p name Ada")
	dev.await(t, "ok: 1 created", `"greeting": "Hello Ada"`)
	save("hello.py", "def main(args):\n    print('was asked')\n    return {'greeting': 'Bye ' + args['name']}\n")
	dev.await(t, "ok: 0 created, 1 updated", `"greeting": "Bye Ada"`, "was asked")
	save("forerun.yaml", "actions:\n  hello: { fil: hello.py }\n")
	dev.await(t, "forerun.yaml:2:")
	save("forerun.yaml", "actions:\n  hello: { file: hello.py }\n  again: { file: hello.py }\n")
	dev.await(t, "ok: 1 created, 1 updated", `"greeting": "Bye Ada"`)
	save("forerun.yaml", "actions:\n  hello: { file: hello.py }\n")
	dev.await(t, "gone       action   /_/again: no longer in the project, but still deployed; `forerun action delete again` deletes it")
	save("hello.py", "def main(args):\n    return {'greeting': 1 / 0}\n")
	dev.await(t, "ok: 0 created, 1 updated", "ZeroDivisionError: division by zero", "hello failed (action developer error, activation ")
	if code := dev.interrupt(t); code != 0 {
		t.Errorf("forerun dev ended with %d after Ctrl-C", code)
	}
}
