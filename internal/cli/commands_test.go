package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

const (
	id       = "44444444444444444444444444444444"
	record   = `{"activationId":"` + id + `","name":"hello","namespace":"guest","start":1,"end":3,"duration":2,"response":{"status":"success","success":true,"result":{"a":1}},"logs":["2026-01-02T03:04:05.000000000Z stdout: line <1>"],"annotations":[]}`
	workflow = `{"activationId":"` + id + `","response":{"success":true},"annotations":[{"key":"kind","value":"sequence"}]}`
	failed   = `{"activationId":"` + id + `","name":"hello","namespace":"guest","response":{"status":"application error","success":false,"result":{"error":"no"}},"logs":[],"annotations":[]}`
)

// Each case is one command line: what it asks the server, what comes out, and the exit code.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, content := range map[string]string{
		"hello.py": "def main(a): return a\n", "hello.zip": "PK\x03\x04zip", "tool": "\x7fELFtool", "hello.jar": "PK\x03\x04jar",
		"params.json": `{"b":2,"a":1}`, "list.json": `[1]`, "notes.txt": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ok := answer{status: 200, body: `{"namespace":"guest","name":"x"}`}
	for _, c := range []struct {
		args   string // with "~" for spaces inside an argument
		answer answer
		asked  string // the last request; empty: none
		code   int
		stdout string // exactly, unless it ends in "..."
		stderr string // a part
	}{
		// actions
		{
			"action list",
			answer{status: 200, body: `[{"namespace":"guest/p","name":"x","version":"0.0.1","annotations":[{"key":"exec","value":"python:3"}]}]`},
			"GET namespaces/_/actions?limit=30&skip=0", 0, "NAME        KIND      VERSION  UPDATED\n/guest/p/x  python:3  0.0.1    -\n", "",
		},
		{"action list p -l 5 -s 2 -o json", answer{status: 200, body: `[]`}, "GET namespaces/_/actions/p/?limit=5&skip=2", 0, "[]\n", ""},
		{"action list /guest -o jsonl", answer{status: 200, body: `[{"name":"a"}, {"name":"b"}]`}, "GET namespaces/guest/actions?limit=30&skip=0", 0, "{\"name\":\"a\"}\n{\"name\":\"b\"}\n", ""},
		{"action get p/x", ok, "GET namespaces/_/actions/p/x?code=false", 0, "{\n  \"namespace\": \"guest\",\n  \"name\": \"x\"\n}\n", ""},
		{"action get /guest/p/x name", ok, "GET namespaces/guest/actions/p/x?code=false", 0, "\"x\"\n", ""},
		{"action get x colour", ok, "GET namespaces/_/actions/x?code=false", 2, "", `no field "colour"`},
		{"action get x", answer{status: 404, body: `{"error":"The requested resource does not exist.","code":"t1"}`}, "GET namespaces/_/actions/x?code=false", 4, "", "request id t1"},
		{"action get x --secrets name", ok, "GET namespaces/_/actions/x?code=false&secrets=true", 0, "\"x\"\n", ""},
		{
			"action update x -p a 1 --env PORT 80 --env STAGE blue --secret TOKEN t --env a 2", ok,
			`PUT namespaces/_/actions/x?overwrite=true {"parameters":[{"key":"a","value":2,"init":true},{"key":"PORT","value":80,"init":true},{"key":"STAGE","value":"blue","init":true},{"key":"TOKEN","value":"t","init":true,"secret":true}]}`,
			0, "", "ok: updated action x",
		},
		{
			"package update p --secret TOKEN t",
			answer{status: 200, body: `{"name":"p"}`},
			`PUT namespaces/_/packages/p?overwrite=true {"parameters":[{"key":"TOKEN","value":"t","init":true,"secret":true}]}`, 0, "", "ok: updated package p",
		},
		{"action get x --code name", ok, "GET namespaces/_/actions/x?code=true", 0, "\"x\"\n", ""},
		{
			"action list",
			answer{status: 200, body: `[{"namespace":"guest","name":"c","version":"0.0.1","annotations":[{"key":"exec","value":"nodejs:20"},{"key":"conductor","value":{"type":"value","value":1}}]}]`},
			"GET namespaces/_/actions?limit=30&skip=0", 0, "NAME      KIND         VERSION  UPDATED\n/guest/c  composition  0.0.1    -\n", "",
		},
		{
			"action create x hello.py --web true",
			answer{status: 200, body: `{"namespace":"guest/p","name":"x","annotations":[{"key":"web-export","value":true}]}`},
			`PUT namespaces/_/actions/x?overwrite=false {"exec":{"kind":"python:3","code":"def main(a): return a\n"},"annotations":[{"key":"web-export","value":true},{"key":"raw-http","value":false},{"key":"final","value":true}]}`,
			0, "http://...", "ok: created action x", // and asks where web actions are
		},
		{"action create x hello.py", ok, `PUT namespaces/_/actions/x?overwrite=false {"exec":{"kind":"python:3","code":"def main(a): return a\n"}}`, 0, "", "ok: created action x"},
		{"action create x hello.py -o jsonl", ok, `PUT namespaces/_/actions/x?overwrite=false {"exec":{"kind":"python:3","code":"def main(a): return a\n"}}`, 0, `{"namespace":"guest","name":"x"}` + "\n", "ok: created action x"},
		{"action create x hello.py", answer{status: 409, body: `{"error":"resource already exists","code":"t"}`}, `PUT namespaces/_/actions/x?overwrite=false {"exec":{"kind":"python:3","code":"def main(a): return a\n"}}`, 4, "", "use `update`"},
		{"action create x hello.zip --kind nodejs:20 --main go", ok, `PUT namespaces/_/actions/x?overwrite=false {"exec":{"kind":"nodejs:20","code":"UEsDBHppcA==","main":"go","binary":true}}`, 0, "", ""},
		{"action create x hello.zip", ok, "", 2, "", "cannot be read"},
		{"action create x notes.txt", ok, "", 2, "", "cannot be told"},
		{"action create x missing.py", ok, "", 2, "", "no such file"},
		{"action create x tool", ok, `PUT namespaces/_/actions/x?overwrite=false {"exec":{"kind":"native","code":"f0VMRnRvb2w=","binary":true}}`, 0, "", ""},
		{"action create x hello.jar", ok, "", 2, "", "main class"},
		{"action create x hello.jar --main Hello", ok, `PUT namespaces/_/actions/x?overwrite=false {"exec":{"kind":"java:17","code":"UEsDBGphcg==","main":"Hello","binary":true}}`, 0, "", ""},
		{"action create x", ok, "", 2, "", "there is no code"},
		{"action create x --docker img", ok, "", 2, "", "not part of Forerun"},
		{"action create s --sequence a,p/b,/n/c", ok, `PUT namespaces/_/actions/s?overwrite=false {"exec":{"kind":"sequence","components":["/_/a","/_/p/b","/n/c"]}}`, 0, "", ""},
		{"action update x -p n 1 -p s two~words -p l [1,{}] -a note <b>", ok, `PUT namespaces/_/actions/x?overwrite=true {"parameters":[{"key":"n","value":1},{"key":"s","value":"two words"},{"key":"l","value":[1,{}]}],"annotations":[{"key":"note","value":"<b>"}]}`, 0, "", "ok: updated action x"},
		{"action update x -P params.json -p a 9 --param c true", ok, `PUT namespaces/_/actions/x?overwrite=true {"parameters":[{"key":"b","value":2},{"key":"a","value":9},{"key":"c","value":true}]}`, 0, "", ""},
		{"action update x -P list.json", ok, "", 2, "", "is not a JSON object"},
		{"action update x -p lonely", ok, "", 2, "", "KEY VALUE"},
		{"action update x --kind python:3", ok, "", 2, "", "go with code"},
		{"action update x --memory 256 -t 1000 --logs 0 --web raw --web-secure true --del-annotation old", ok, `PUT namespaces/_/actions/x?overwrite=true {"annotations":[{"key":"web-export","value":true},{"key":"raw-http","value":true},{"key":"final","value":true},{"key":"require-whisk-auth","value":true}],"delAnnotations":["old"],"limits":{"timeout":1000,"memory":256,"logs":0}}`, 0, "", ""},
		{"action update x --web-secure own", ok, `PUT namespaces/_/actions/x?overwrite=true {"annotations":[{"key":"require-whisk-auth","value":["_"]}]}`, 0, "", ""},
		{"action update x --web maybe", ok, "", 2, "", "is not a setting of web"},
		{"action delete x", ok, "DELETE namespaces/_/actions/x", 0, "", "ok: deleted action x"},
		// invocations
		{"invoke x -p n 1", answer{status: 202, body: `{"activationId":"` + id + `"}`}, `POST namespaces/_/actions/x?blocking=false&result=false {"n":1}`, 0, id + "\n", "ok: invoked x with id " + id},
		{"action invoke x -o jsonl", answer{status: 202, body: `{"activationId":"` + id + `"}`}, `POST namespaces/_/actions/x?blocking=false&result=false {}`, 0, `{"activationId":"` + id + "\"}\n", ""},
		{"invoke x -b -o jsonl", answer{status: 200, body: record}, `POST namespaces/_/actions/x?blocking=true&result=false {}`, 0, record + "\n", "ok: invoked x with id " + id},
		{"invoke p/x -r -P -", answer{status: 200, body: `{"a":"<"}`, activation: id}, `POST namespaces/_/actions/p/x?blocking=true&result=true {"in":"put"}`, 0, "{\n  \"a\": \"<\"\n}\n", ""},
		{"invoke x -r -t 500", answer{status: 202, body: `{"activationId":"` + id + `"}`}, `POST namespaces/_/actions/x?blocking=true&result=true&timeout=500 {}`, 6, id + "\n", "forerun activation get " + id},
		{"invoke x -r", answer{status: 502, body: `{"error":"no"}`, activation: id}, "GET namespaces/_/activations/" + id, 5, "{\n  \"error\": \"no\"\n}\n", "forerun activation logs " + id},
		{"invoke x -b -o jsonl", answer{status: 200, body: workflow, ahead: "early=2"}, `POST namespaces/_/actions/x?blocking=true&result=false {}`, 0, workflow + "\n", "speculative functions: early=2"},
		{"invoke x -r --speculate all;~depth=4", answer{status: 200, body: `{"a":1}`, activation: id, ahead: "early=2"}, `POST namespaces/_/actions/x?blocking=true&result=true {} [all; depth=4]`, 0, "{\n  \"a\": 1\n}\n", "speculative functions: early=2"},
		{"invoke x -r -t abc", ok, "", 2, "", `invalid argument "abc" for "-t, --timeout" flag: it takes milliseconds, like 1000`},
		{"action update x -t 1s", ok, "", 2, "", `invalid argument "1s" for "-t, --timeout" flag: it takes milliseconds, like 1000`},
		{"invoke x -r --speculate all\x01", answer{}, "", 2, "", "it has a control character, such as an end of line"},
		{"invoke x -r --speculate=", ok, "", 2, "", `invalid argument "" for "--speculate" flag: "" does not say how far to speculate: write off, branches or all`},
		{"invoke x -r --speculate maybe", ok, "", 2, "", `invalid argument "maybe" for "--speculate" flag: "maybe" does not say how far to speculate: write off, branches or all`},
		{"action invoke x --speculate all;depth=65", ok, "", 2, "", `depth has to be a whole number from 1 to 64, not "65".`},
		{"invoke x -r --speculate all;load=any", answer{status: 200, body: `{}`, activation: id, ignored: "load=any: not here"}, `POST namespaces/_/actions/x?blocking=true&result=true {} [all;load=any]`, 0, "{}\n", "not in effect: load=any: not here\n"},
		{"invoke x --speculate all", answer{status: 202, body: `{"activationId":"` + id + `"}`, ignored: "all: not here"}, `POST namespaces/_/actions/x?blocking=false&result=false {} [all]`, 0, id + "\n", "not in effect: all: not here\nok: invoked x"},
		{"invoke x -b -o jsonl", answer{status: 502, body: failed}, "GET namespaces/_/activations/" + id, 5, failed + "\n", "failed: invoked x"},
		{"invoke x -r", answer{status: 502, body: `<html>bad gateway</html>`}, `POST namespaces/_/actions/x?blocking=true&result=true {}`, 4, "", "Bad Gateway"},
		{"invoke x -r", answer{status: 200, body: `<html>`}, `POST namespaces/_/actions/x?blocking=true&result=true {}`, 4, "", ""},
		{"invoke x", answer{status: 429, body: `{"error":"Too many requests","code":1}`}, `POST namespaces/_/actions/x?blocking=false&result=false {}`, 4, "", "Too many requests"},
		{"invoke", ok, "", 2, "", "forerun invoke NAME"},
		{"invoke x y", ok, "", 2, "", "one argument too many"},
		{"invoke /x", ok, "", 2, "", "not a name"},
		{"invoke x -o yaml", ok, "", 2, "", "text, json or jsonl"},
		// activations
		{
			"activation list x -l 2",
			answer{status: 200, body: `[{"activationId":"` + id + `","name":"x","namespace":"guest","duration":7,"statusCode":1,"annotations":[{"key":"kind","value":"python:3"}]}]`},
			"GET namespaces/_/activations?limit=2&name=x&skip=0", 0, "START  ID                                KIND      DURATION  STATUS             NAME\n-      " + id + "  python:3  7 ms      application error  guest/x\n", "",
		},
		{"activation list /guest/p/x --full --since 5 -o json", answer{status: 200, body: `[]`}, "GET namespaces/guest/activations?docs=true&limit=30&name=p%2Fx&since=5&skip=0", 0, "[]\n", ""},
		{"activation get " + id + " response", answer{status: 200, body: record}, "GET namespaces/_/activations/" + id, 0, "{\n  \"status\"...", ""},
		{"activation get", ok, "", 2, "", "--last"},
		{"activation trace NONSENSE", ok, "", 2, "", "\"NONSENSE\" is not an id: write the activation's id, 32 digits 0-9 and a-f, or --last\nRun `forerun activation list` to see those that are there.\n"},
		{"activation get " + strings.ToUpper("a"+id[1:]) + " response", ok, "", 2, "", "forerun activation list"},
		{"activation trace " + id, answer{status: 404, body: `{"error":"The requested resource does not exist.","code":"t1"}`}, "GET namespaces/_/activations/" + id + "/trace", 4, "", "no record of an activation " + id},
		{"activation result " + id, answer{status: 404, body: `{"error":"The requested resource does not exist.","code":"t1"}`}, "GET namespaces/_/activations/" + id + "/result", 4, "", "gets its record at its end"},
		{"activation logs " + id, answer{status: 200, body: `{"logs":["2026-01-02T03:04:05.000000000Z stdout: a"]}`}, "GET namespaces/_/activations/" + id + "/logs", 0, "2026-01-02T03:04:05.000000000Z stdout: a\n", ""},
		{"activation logs -r " + id, answer{status: 200, body: `{"logs":["2026-01-02T03:04:05.000000000Z stderr: a: b"]}`}, "GET namespaces/_/activations/" + id + "/logs", 0, "a: b\n", ""},
		{"activation result -o jsonl " + id, answer{status: 200, body: `{"result":{"a":1},"success":true}`}, "GET namespaces/_/activations/" + id + "/result", 0, "{\"a\":1}\n", ""},
		// packages, triggers, rules
		{"package list", answer{status: 200, body: `[{"namespace":"guest","name":"p","version":"0.0.1","publish":true,"binding":false}]`}, "GET namespaces/_/packages?limit=30&skip=0", 0, "NAME      SHARED  VERSION  UPDATED\n/guest/p  yes     0.0.1    -\n", ""},
		{"package get p", ok, "GET namespaces/_/packages/p", 0, "{\n...", ""},
		{"package create p --shared yes -p a 1", ok, `PUT namespaces/_/packages/p?overwrite=false {"parameters":[{"key":"a","value":1}],"publish":true}`, 0, "", "ok: created package p"},
		{"package update /guest/p", ok, `PUT namespaces/guest/packages/p?overwrite=true {}`, 0, "", "ok: updated package"},
		{"package bind /whisk.system/utils u -p a 1", ok, `PUT namespaces/_/packages/u?overwrite=false {"binding":{"namespace":"whisk.system","name":"utils"},"parameters":[{"key":"a","value":1}]}`, 0, "", "ok: bound package u"},
		{"package delete p -r", ok, "DELETE namespaces/_/packages/p?force=true", 0, "", "ok: deleted package p"},
		{"package create a/b", ok, "", 2, "", "not a name here"},
		{"trigger create t -a n 1", ok, `PUT namespaces/_/triggers/t?overwrite=false {"annotations":[{"key":"n","value":1}]}`, 0, "", "ok: created trigger t"},
		{"trigger update t -p a 1", ok, `PUT namespaces/_/triggers/t?overwrite=true {"parameters":[{"key":"a","value":1}]}`, 0, "", "ok: updated trigger t"},
		{"trigger fire t -p a 1", answer{status: 202, body: `{"activationId":"` + id + `"}`}, `POST namespaces/_/triggers/t {"a":1}`, 0, id + "\n", "ok: fired t"},
		{"trigger fire t", answer{status: 204}, `POST namespaces/_/triggers/t {}`, 0, "", "no rule is active"},
		{"rule create r t p/a", ok, `PUT namespaces/_/rules/r?overwrite=false {"trigger":"/_/t","action":"/_/p/a"}`, 0, "", "ok: created rule r"},
		{"rule enable r", ok, `POST namespaces/_/rules/r {"status":"active"}`, 0, "", "ok: enabled rule r"},
		{"rule disable r", ok, `POST namespaces/_/rules/r {"status":"inactive"}`, 0, "", "ok: disabled rule r"},
		{"rule list", answer{status: 200, body: `[{"namespace":"guest","name":"r","status":"active","trigger":{"path":"guest","name":"t"},"action":{"path":"guest/p","name":"a"}}]`}, "GET namespaces/_/rules?limit=30&skip=0", 0, "NAME      STATUS  TRIGGER  ACTION\n/guest/r  active  t        a\n", ""},
		{"rule delete r", ok, "DELETE namespaces/_/rules/r", 0, "", "ok: deleted rule r"},
		{"namespace list", answer{status: 200, body: `["guest"]`}, "GET namespaces", 0, "NAME\nguest\n", ""},
		// what cannot be read
		{"action lst", ok, "", 2, "", `did you mean "list"`},
		{"acton", ok, "", 2, "", `did you mean "action"`},
		{"action list --nope", ok, "", 2, "", "unknown flag"},
		{"action list --auth a:b", ok, "GET namespaces/_/actions?limit=30&skip=0", 4, "", "forerun login"},
		{"action list --auth nocolon", ok, "", 2, "", "UUID:KEY"},
		{"action list --apihost 127.0.0.1:1", ok, "", 3, "", "forerun serve"},
		{"action list --apihost ftp://x", ok, "", 2, "", "not an API host"},
	} {
		t.Run(c.args, func(t *testing.T) {
			request, _, _ := strings.Cut(c.asked, " {")
			w := newWorld(t, map[string]answer{request: c.answer})
			if c.code == 5 { // what is asked last is the record
				w.answers["POST namespaces/_/actions/x?blocking=true&result="+map[bool]string{true: "true", false: "false"}[strings.Contains(c.args, "-r")]] = c.answer
				delete(w.answers, request)
			}
			args := strings.Fields(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "~", " ")
			}
			got := w.run(`{"in":"put"}`, args...)
			asked := w.requests()
			if n := len(asked); n > 0 && asked[n-1] == "GET" { // where web actions are
				asked = asked[:n-1]
			}
			if c.asked == "" && len(asked) > 0 || c.asked != "" && (len(asked) == 0 || asked[len(asked)-1] != c.asked) {
				t.Errorf("asked %q\nwant  %q", asked, c.asked)
			}
			start, open := strings.CutSuffix(c.stdout, "...")
			if got.code != c.code || got.stdout != c.stdout && !(open && strings.HasPrefix(got.stdout, start)) || !strings.Contains(got.stderr, c.stderr) {
				t.Errorf("exit %d, stdout %q, stderr %q\nwant %d, %q, %q", got.code, got.stdout, got.stderr, c.code, c.stdout, c.stderr)
			}
		})
	}
}

// TestNoSpeculation: of a single function nothing is said, as it has nothing that could be speculative.
func TestNoSpeculation(t *testing.T) {
	w := newWorld(t, map[string]answer{"POST namespaces/_/actions/x?blocking=true&result=false": {status: 200, body: record, ahead: "early=0"}})
	if got := w.run("", "invoke", "x", "-b"); got.code != 0 || strings.Contains(got.stderr, "speculative") {
		t.Errorf("%+v", got)
	}
}

func TestLastActivation(t *testing.T) {
	w := newWorld(t, map[string]answer{
		"GET namespaces/_/activations?limit=1":    {status: 200, body: "[" + record + "]"},
		"GET namespaces/_/activations/" + id:      {status: 200, body: record},
		"GET namespaces/_/activations?limit=1&x=": {status: 200, body: "[]"},
	})
	if got := w.run("", "activation", "get", "--last", "duration"); got.code != 0 || got.stdout != "2\n" {
		t.Errorf("%+v", got)
	}
	w.answers["GET namespaces/_/activations?limit=1"] = answer{status: 200, body: "[]"}
	if got := w.run("", "activation", "get", "--last"); got.code != 1 || !strings.Contains(got.stderr, "forerun invoke") {
		t.Errorf("%+v", got)
	}
}

// TestEmptyID: a variable that is not set is no id, and nothing is asked.
func TestEmptyID(t *testing.T) {
	w := newWorld(t, nil)
	for _, command := range []string{"get", "logs", "result", "trace"} {
		got := w.run("", "activation", command, "")
		if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "write the activation's id") {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if asked := w.requests(); len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}

func TestCopyAndSave(t *testing.T) {
	t.Chdir(t.TempDir())
	document := answer{status: 200, body: `{"namespace":"guest","name":"a","exec":{"kind":"python:3","code":"UEsDBA==","binary":true,"main":"m"},"parameters":[{"key":"p","value":1}],"annotations":[{"key":"n","value":2}],"limits":{"timeout":1,"memory":2,"logs":3,"concurrency":1}}`}
	w := newWorld(t, map[string]answer{
		"GET namespaces/_/actions/a?code=true":              document,
		"GET namespaces/_/actions/a?code=true&secrets=true": document,
		"PUT namespaces/_/actions/b?overwrite=false":        {status: 200, body: `{}`},
	})
	if got := w.run("", "action", "create", "b", "a", "--copy", "-p", "p", "5", "-p", "q", "6"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	want := `PUT namespaces/_/actions/b?overwrite=false {"exec":{"kind":"python:3","code":"UEsDBA==","main":"m","binary":true},"parameters":[{"key":"p","value":5},{"key":"q","value":6}],"annotations":[{"key":"n","value":2}],"limits":{"timeout":1,"memory":2,"logs":3,"concurrency":1},"publish":false}`
	if asked := w.requests(); asked[1] != want {
		t.Errorf("asked %s\nwant  %s", asked[1], want)
	}
	for _, code := range []int{0, 2} { // a file that is there is not written over
		if got := w.run("", "action", "get", "a", "--save"); got.code != code {
			t.Errorf("%+v, want exit %d", got, code)
		}
	}
	if got := w.run("", "action", "get", "a", "--save-as="); got.code != 2 || got.stdout != "" {
		t.Errorf("to a file without a name: %+v", got)
	}
	if saved, err := os.ReadFile("a.zip"); string(saved) != "PK\x03\x04" {
		t.Errorf("saved %q, %v", saved, err)
	}
}

func TestEnding(t *testing.T) {
	for _, c := range []struct{ kind, content, want string }{
		{"python:3", "def main(a): return a", ".py"},
		{"python:3", "PK\x03\x04", ".zip"},
		{"nodejs:20", "\x1f\x8b\x08", ".tar.gz"},
		{"nodejs:20", "exports.main = a => a", ".js"},
		{"java:17", "PK\x03\x04", ".jar"},
		{"native", "PK\x03\x04", ".zip"},
		{"native", "\x7fELF", ""},
		{"native", "#!/bin/sh", ""},
	} {
		if got := ending(c.kind, []byte(c.content)); got != c.want {
			t.Errorf("%q of kind %s is saved with the ending %q, not %q", c.content, c.kind, got, c.want)
		}
	}
}

// A trigger with a feed invokes the feed, and is taken back if that fails.
func TestFeed(t *testing.T) {
	w := newWorld(t, map[string]answer{
		"PUT namespaces/_/triggers/t?overwrite=false":                       {status: 200, body: `{"name":"t"}`},
		"POST namespaces/_/actions/alarms/alarm?blocking=true&result=false": {status: 200, body: record},
		"GET namespaces/_/triggers/t":                                       {status: 200, body: `{"name":"t","annotations":[{"key":"feed","value":"/_/alarms/alarm"}]}`},
		"DELETE namespaces/_/triggers/t":                                    {status: 200, body: `{}`},
		"PUT namespaces/_/triggers/u?overwrite=false":                       {status: 200, body: `{"name":"u"}`},
		"POST namespaces/_/actions/broken?blocking=true&result=false":       {status: 502, body: failed},
		"DELETE namespaces/_/triggers/u":                                    {status: 200, body: `{}`},
	})
	w.run("", "trigger", "create", "t", "--feed", "alarms/alarm", "-p", "cron", "*")
	w.run("", "trigger", "delete", "t")
	if got := w.run("", "trigger", "create", "u", "-f", "broken"); got.code != 5 || !strings.Contains(got.stderr, "was not created") {
		t.Errorf("%+v", got)
	}
	want := []string{
		`PUT namespaces/_/triggers/t?overwrite=false {"annotations":[{"key":"feed","value":"/_/alarms/alarm"}]}`,
		`POST namespaces/_/actions/alarms/alarm?blocking=true&result=false {"cron":"*","lifecycleEvent":"CREATE","triggerName":"/_/t","authKey":"` + testKey + `"}`,
		"GET namespaces/_/triggers/t",
		`POST namespaces/_/actions/alarms/alarm?blocking=true&result=false {"lifecycleEvent":"DELETE","triggerName":"/_/t","authKey":"` + testKey + `"}`,
		"DELETE namespaces/_/triggers/t",
		`PUT namespaces/_/triggers/u?overwrite=false {"annotations":[{"key":"feed","value":"/_/broken"}]}`,
		`POST namespaces/_/actions/broken?blocking=true&result=false {"lifecycleEvent":"CREATE","triggerName":"/_/u","authKey":"` + testKey + `"}`,
		"DELETE namespaces/_/triggers/u",
	}
	if asked := w.requests(); !slices.Equal(asked, want) {
		t.Errorf("asked %s\nwant %s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
}

// TestFailureOnce: a workflow fails with the error of its function, whichever of the two records is shown first.
func TestFailureOnce(t *testing.T) {
	t.Parallel()
	record := func(name, id, cause, text string) *whisk.Activation {
		result, err := json.Marshal(map[string]string{"error": text})
		if err != nil {
			t.Fatal(err)
		}
		return &whisk.Activation{Name: name, ActivationID: id, Cause: cause, Response: whisk.Response{Status: "application error", Result: result}}
	}
	outer, inner, other := record("flow", "1", "", "why"), record("part", "2", "1", "why"), record("handled", "3", "1", "another")
	for _, order := range [][]*whisk.Activation{{outer, inner, other}, {inner, outer, other}} {
		var stderr buffer
		cmd := &cobra.Command{}
		cmd.SetErr(&stderr)
		f := &follower{app: &app{output: asText}, cmd: cmd, told: make(map[string]string)}
		for _, r := range order {
			if err := f.record(r); err != nil {
				t.Fatal(err)
			}
		}
		if said := stderr.String(); strings.Count(said, ": why") != 1 || strings.Count(said, ": another") != 1 {
			t.Errorf("it said:\n%s", said)
		}
	}
}

// Logs are shown from the oldest on, once each, without the lines that only name components.
func TestLogs(t *testing.T) {
	w := newWorld(t, map[string]answer{
		"GET namespaces/_/activations?limit=200&skip=0": {status: 200, body: `[{"activationId":"` + strings.Repeat("5", 32) + `","start":2},` + record + `]`},
		"GET namespaces/_/activations/" + id:            {status: 200, body: record},
		"GET namespaces/_/activations/" + strings.Repeat("5", 32): {status: 200, body: `{"activationId":"` + strings.Repeat("5", 32) +
			`","name":"seq","start":2,"response":{"status":"application error","result":{"error":"why"}},"logs":["` + id + `"]}`},
	})
	got := w.run("", "logs")
	if got.code != 0 || got.stdout != "hello 2026-01-02T03:04:05.000000000Z stdout: line <1>\n" || !strings.Contains(got.stderr, "seq failed (application error") || !strings.Contains(got.stderr, ": why") {
		t.Errorf("%+v", got)
	}
	got = w.run("", "logs", "-l", "1", "-o", "jsonl")
	if got.stdout != "" || !strings.Contains(got.stderr, "seq failed") {
		t.Errorf("%+v", got)
	}
	want := `{"activationId":"` + id + `","name":"hello","time":"2026-01-02T03:04:05.000000000Z","stream":"stdout","text":"line <1>"}` + "\n"
	if got = w.run("", "logs", "-o", "jsonl"); got.stdout != want {
		t.Errorf("%+v", got)
	}
}
