package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestPruneAndUndeploy: what has left a project that has a name is deleted when that is asked for, and nothing else.
func TestPruneAndUndeploy(t *testing.T) {
	t.Parallel()
	sh := newShell(t, start(t, server.Options{}))
	const whole = `project: shop
packages:
  kept: { actions: { a: { file: hello.py } } }
  left: { actions: { b: { file: hello.py } }, sequences: { s: [b] } }
actions: { hello: { file: hello.py } }
workflows: { twice: [hello, kept/a] }
triggers: { order: {} }
rules: { sell: { trigger: order, action: hello } }
`
	sh.save(t, map[string]string{"hello.py": helloCode, "forerun.yaml": strings.Replace(whole, "project: shop\n", "", 1)})
	sh.follow(t, []step{
		{"action create other hello.py", 0, "", ""},
		{"deploy --prune", 2, "", "write `project: NAME` in its forerun.yaml"},
		{"deploy", 0, "created", "ok: 9 created"},
	})
	sh.save(t, map[string]string{"forerun.yaml": whole})
	sh.follow(t, []step{{"deploy --prune", 0, "updated", "ok: 0 created, 9 updated, 0 unchanged\n"}, {"deploy --prune", 0, "unchanged", "ok: 0 created, 0 updated, 9 unchanged\n"}})
	sh.save(t, map[string]string{"forerun.yaml": "project: shop\npackages:\n  kept: { actions: { a: { file: hello.py } } }\n"})
	gone := "deleted    rule     /_/sell\ndeleted    trigger  /_/order\n"
	sh.follow(t, []step{
		{"deploy", 0, "unchanged", "ok: 0 created, 0 updated, 2 unchanged\n"},
		{"deploy --prune --dry-run", 0, gone, "ok: 0 created, 0 updated, 2 unchanged, 7 deleted (nothing was sent)"},
		{"rule get sell", 0, "sell", ""},
		{"deploy --prune", 0, gone, "ok: 0 created, 0 updated, 2 unchanged, 7 deleted\n"},
		{"list", 0, "=package  /guest/kept\naction   /guest/kept/a\naction   /guest/other\n", ""},
		{"deploy --prune", 0, "unchanged", "ok: 0 created, 0 updated, 2 unchanged\n"},
	})
	sh.save(t, map[string]string{"forerun.yaml": whole})
	sh.follow(t, []step{
		{"deploy", 0, "created", "ok: 7 created"},
		{"undeploy --dry-run", 0, gone, "ok: 9 deleted (nothing was sent)"},
		{"undeploy", 0, gone, "ok: 9 deleted\n"},
		{"list", 0, "=action   /guest/other\n", ""},
		{"undeploy", 0, "=", "ok: 0 created, 0 updated, 0 unchanged\n"},
	})
}

// TestInit: the example of each language can be deployed as it is; Java's needs its jar.
func TestInit(t *testing.T) {
	t.Parallel()
	needNode(t)
	sh := newShell(t, start(t, server.Options{}))
	for _, language := range []string{"python", "node", "go"} {
		sh.follow(t, []step{
			{"init " + language + " --language " + language, 0, "forerun.yaml", "ok: wrote an example in " + language},
			{"init " + language + " --language " + language, 2, "", "is there already"},
			{"deploy " + language, 0, "hello", "ok: "},
			{"invoke hello -r -o jsonl", 0, `={"greeting":"Hello World!"}` + "\n", ""},
		})
	}
	sh.follow(t, []step{{"init x --language cobol", 2, "", "write python, node, java or go"}, {"init java --language java", 0, "Hello.java", ""}})
	javac, err := exec.LookPath("javac")
	if err != nil {
		t.Skip("this machine has no Java compiler")
	}
	gson, err := filepath.Abs("../bin/runtimes/java/gson.jar")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("sh", "-c", javac+" -cp "+gson+" Hello.java && jar cf hello.jar Hello.class")
	build.Dir = filepath.Join(sh.folder, "java")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sh.follow(t, []step{{"deploy java", 0, "hello", "ok: "}, {"invoke hello -r -o jsonl", 0, `={"greeting":"Hello World!"}` + "\n", ""}})
}

// TestFailureLog: the traceback of a failed action, or of the failed part of a workflow, is shown at once.
func TestFailureLog(t *testing.T) {
	t.Parallel()
	sh := newShell(t, start(t, server.Options{}))
	sh.save(t, map[string]string{
		"bad.py": "def main(args):\n    print('before')\n    return 1 / 0\n", "quiet.py": "def main(args):\n    return {'error': 'no'}\n", "hello.py": helloCode,
		"forerun.yaml": "actions: { bad: { file: bad.py }, quiet: { file: quiet.py }, hello: { file: hello.py } }\nsequences: { s: [hello, bad] }\nworkflows: { w: [hello, [bad]] }\n",
	})
	sh.follow(t, []step{
		{"deploy", 0, "created", ""},
		{"invoke bad -r", 5, "error", "before\n"},
		{"invoke bad -r", 5, "error", "ZeroDivisionError: division by zero\n"},
		{"invoke bad -b", 5, "error", "ZeroDivisionError"},
		{"invoke s -r", 5, "error", "ZeroDivisionError"},
		{"invoke w -r", 5, "error", "ZeroDivisionError"},
		{"invoke quiet -r", 5, "error", "quiet failed and wrote no log, activation "},
	})
}
