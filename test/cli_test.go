package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

const helloCode = "def main(args):\n    print('asked')\n    return {'greeting': 'Hello ' + args.get('name', 'you')}\n"

// TestActionCommands types what the user of wsk types about actions and their activations.
func TestActionCommands(t *testing.T) {
	t.Parallel()
	needNode(t)
	sh := newShell(t, start(t, server.Options{}))
	sh.save(t, map[string]string{
		"hello.py": helloCode, "fails.js": "exports.main = () => ({ error: 'no luck' })\n", "throws.py": "def main(args):\n    raise ValueError('broken')\n",
		"slow.py": "import time\n\ndef main(args):\n    time.sleep(0.5)\n    return {}\n", "params.json": `{"name": "Bob"}`, "list.json": "[]",
		"other.py": "def start(args):\n    return {'n': 1}\n", "run.sh": "#!/bin/sh\nwhile read -r line; do echo '{\"from\":\"sh\"}' >&3; done\n", "x.go": "package main\n",
	})
	sh.follow(t, []step{
		{"action list", 0, "", ""},
		{"action create hello hello.py -p name Ada -a description 'Greets people' -m 128 -t 55000 -l 1", 0, "", "ok: created action hello\n"},
		{"action create hello hello.py", 4, "", "use `update`"},
		{"action get hello limits -o jsonl", 0, `{"timeout":55000,"memory":128,"logs":1,"concurrency":1}` + "\n", ""},
		{"action get hello --summary", 0, "=action /guest/hello: Greets people\n   (parameters: *name)\n", ""},
		{"action get hello nothing", 2, "", `no field "nothing"`},
		{"action list", 0, "/guest/hello  python:3  0.0.1", ""},
		{"action list -o jsonl", 0, `"name":"hello"`, ""},
		{"action list no-package", 4, "", "there is no package no-package"},
		{"action update hello -p name Eve", 0, "", "ok: updated action hello\n"},
		{"action invoke hello -r", 0, "={\n  \"greeting\": \"Hello Eve\"\n}\n", ""},
		{"action invoke hello --result --param name '{\"a\": 1}' -o jsonl", 5, `"error"`, "hello failed, activation "},
		{"action invoke hello -r -P params.json -o jsonl", 0, "={\"greeting\":\"Hello Bob\"}\n", ""},
		{"action invoke hello -r -P list.json", 2, "", "is not a JSON object"},
		{"action invoke hello -b", 0, `"success": true`, "ok: invoked hello with id "},
		{"activation list --limit 1 -o jsonl", 0, `"name":"hello"`, ""},
		{"activation list hello", 0, "python:3  ", ""},
		{"activation logs --last --strip", 0, "=asked\n", ""},
		{"activation result -l -o jsonl", 0, "={\"greeting\":\"Hello Eve\"}\n", ""},
		{"activation get --last --logs", 0, "=asked\n", ""},
		{"activation get --last --summary", 0, "Hello Eve", "/guest/hello: success at "},
		{"activation get --last response", 0, `"status": "success"`, ""},
		{"activation get 01234567890123456789012345678901", 4, "", "there is no record of an activation 01234567890123456789012345678901"},
		{"activation get 1234", 2, "", "\"1234\" is not an id: write the activation's id"},
		{"activation get", 2, "", "--last"},
		{"action create fails fails.js", 0, "", "ok: "},
		{"invoke fails -r", 5, "={\n  \"error\": \"no luck\"\n}\n", "fails failed"},
		{"invoke fails -b", 5, `"status": "application error"`, "failed: invoked fails"},
		{"action create throws throws.py", 0, "", ""},
		{"invoke throws -r", 5, `"error"`, "Traceback (most recent call last):"},
		{"action create slow slow.py", 0, "", ""},
		{"invoke slow -b -t 50", 6, "01", "slow still runs: run `forerun activation get "},
		{"invoke nothing -r", 4, "", "there is no action nothing"},
		// kinds
		{"action create other other.py --main start", 0, "", ""},
		{"invoke other -r -o jsonl", 0, "={\"n\":1}\n", ""},
		{"action create tool run.sh", 0, "", ""},
		{"invoke tool -r -o jsonl", 0, "={\"from\":\"sh\"}\n", ""},
		{"action create image --docker openwhisk/x", 2, "", "--kind native"},
		{"action create image hello.py --kind blackbox", 4, "", ""},
		{"action create old hello.py --kind python:2", 4, "", "'python:2' is not supported"},
		{"action create go x.go", 2, "", "neither a function main nor a function Main"},
		{"action create x list.json", 2, "", "cannot be told"},
		{"action create x missing.py", 2, "", "no such file"},
		{"action create no-package/x hello.py", 4, "", "Run `forerun package create no-package` first."},
		// sequences, copies, web
		{"action create both hello,other --sequence", 0, "", "ok: "},
		{"invoke both -r -o jsonl", 0, "={\"n\":1}\n", ""},
		{"action create bad hello,nothing --sequence", 4, "", "there is no action nothing"},
		{"action create again hello --copy -p name Zoe", 0, "", ""},
		{"invoke again -r -o jsonl", 0, "={\"greeting\":\"Hello Zoe\"}\n", ""},
		{"action create again nothing --copy", 4, "", "there is no action nothing"},
		{"action update hello --web true --web-secure s3cret", 0, "/api/v1/web/guest/default/hello", ""},
		{"action get hello --url", 0, "/api/v1/web/guest/default/hello\n", ""},
		{"action get fails --url -o jsonl", 0, "/api/v1/namespaces/guest/actions/fails\"}\n", ""},
		{"action get hello annotations -o jsonl", 0, `{"key":"require-whisk-auth","value":"s3cret"}`, ""},
		{"action update hello --web no --del-annotation description", 0, "", ""},
		{"action get hello annotations", 0, "web-export\",\n    \"value\": false", ""},
		{"action get again --save", 0, "", "ok: saved the code to again.py"},
		{"action get hello --save-as saved.py", 0, "", "saved.py"},
		{"action get hello --save-as saved.py", 2, "", "file exists"},
		{"action delete hello -o json", 0, "", "ok: deleted action hello\n"},
		{"action delete hello", 4, "", "there is no action hello"},
	})
	saved, err := os.ReadFile(filepath.Join(sh.folder, "saved.py"))
	if string(saved) != helloCode {
		t.Errorf("saved %q, %v", saved, err)
	}
}

// feedCode answers OpenWhisk's protocol of feeds with what it was sent, and refuses to feed one trigger.
const feedCode = `def main(args):
    if args["triggerName"].endswith("refused"):
        return {"error": "no"}
    return {"event": args["lifecycleEvent"], "trigger": args["triggerName"], "cron": args.get("cron", "")}
`

// TestPackageCommands types what the user of wsk types about packages, triggers, rules and namespaces.
func TestPackageCommands(t *testing.T) {
	t.Parallel()
	needNode(t)
	sh := newShell(t, start(t, server.Options{}))
	sh.save(t, map[string]string{"hello.py": helloCode, "feed.py": feedCode})
	sh.follow(t, []step{
		{"package create tools -p name Pat --shared yes -a description 'Some tools'", 0, "", "ok: created package tools\n"},
		{"package create tools", 4, "", "use `update`"},
		{"package update tools -p name Pia", 0, "", "ok: updated package tools\n"},
		{"action create tools/hello hello.py", 0, "", "ok: "},
		{"action invoke tools/hello -r -o jsonl", 0, "={\"greeting\":\"Hello Pia\"}\n", ""},
		{"action list tools", 0, "/guest/tools/hello", ""},
		{"package bind /guest/tools mine -p name Max", 0, "", "ok: bound package mine\n"},
		{"package bind /guest/tools mine -p name Mia", 4, "", "already"},
		{"package bind /guest/tools mine -p name Mia --overwrite", 0, "", "ok: "},
		{"invoke mine/hello -r -o jsonl", 0, "={\"greeting\":\"Hello Mia\"}\n", ""},
		{"invoke /whisk.system/utils/echo -r -p a 1 -o jsonl", 0, "={\"a\":1}\n", ""},
		{"package get tools --summary", 0, "=package /guest/tools: Some tools\n   (parameters: *name)\naction /guest/tools/hello\n   (parameters: none defined)\n", ""},
		{"package get nothing", 4, "", "there is no package nothing"},
		{"package list", 0, "/guest/tools  yes", ""},
		{"package refresh", 0, "", "ok: nothing to refresh: all bindings (1)"},
		{"package delete tools", 4, "", "--recursive"},

		{"trigger create order -p name Tom", 0, "", "ok: created trigger order\n"},
		{"trigger create order", 4, "", "use `update`"},
		{"trigger update order -p name Tim", 0, "", "ok: updated trigger order\n"},
		{"trigger get order parameters -o jsonl", 0, "=[{\"key\":\"name\",\"value\":\"Tim\"}]\n", ""},
		{"trigger get order -s", 0, "=trigger /guest/order\n   (parameters: *name)\n", ""},
		{"trigger get nothing", 4, "", "there is no trigger nothing"},
		{"trigger fire nothing", 4, "", "there is no trigger nothing"},
		{"trigger fire order", 0, "", "no rule is active"},
		{"rule create greet order tools/hello", 0, "", "ok: created rule greet\n"},
		{"rule create bad nothing tools/hello", 4, "", "trigger /guest/nothing does not exist"},
		{"rule create bad order nothing", 4, "", "action /guest/nothing does not exist"},
		{"rule status greet", 0, "=active\n", ""},
		{"rule disable greet", 0, "", "ok: disabled rule greet\n"},
		{"rule status greet -o jsonl", 0, "={\"name\":\"greet\",\"status\":\"inactive\"}\n", ""},
		{"rule enable greet", 0, "", "ok: enabled rule greet\n"},
		{"rule list", 0, "=NAME          STATUS  TRIGGER  ACTION\n/guest/greet  active  order    hello\n", ""},
		{"rule update greet order mine/hello", 0, "", "ok: updated rule greet\n"},
		{"rule get greet action -o jsonl", 0, "={\"name\":\"hello\",\"path\":\"guest/mine\"}\n", ""},
		{"rule get greet --summary", 0, "=rule /guest/greet\n   (status: active)\n", ""},
		{"rule get nothing", 4, "", "there is no rule nothing"},
		{"trigger fire order -o jsonl", 0, "{\"activationId\":\"", "ok: fired order with id "},

		{"action create feed feed.py -a feed true", 0, "", ""},
		{"trigger create nightly --feed feed -p cron '0 3 * * *' -T name Nat", 0, "", "ok: created trigger nightly\n"},
		{"trigger get nightly -o jsonl", 0, "={\"cron\":\"\",\"event\":\"READ\",\"trigger\":\"/_/nightly\"}\n", ""},
		{"trigger get nightly parameters -o jsonl", 0, "=[{\"key\":\"name\",\"value\":\"Nat\"}]\n", ""},
		{"trigger update nightly -F cron '0 4 * * *' -a n 1", 0, "", "ok: updated"},
		{"activation result --last -o jsonl", 0, "={\"cron\":\"0 4 * * *\",\"event\":\"UPDATE\",\"trigger\":\"/_/nightly\"}\n", ""},
		{"trigger get nightly annotations -o jsonl", 0, "=[{\"key\":\"n\",\"value\":1},{\"key\":\"feed\",\"value\":\"/_/feed\"}]\n", ""},
		{"trigger create refused --feed feed", 5, "", "was not created"},
		{"trigger get refused", 4, "", "there is no trigger refused"},
		{"trigger update order -F a 1", 2, "", "has no feed"},
		{"trigger delete nightly", 0, "", "ok: deleted trigger nightly\n"},
		{"activation result --last -o jsonl", 0, "={\"cron\":\"\",\"event\":\"DELETE\",\"trigger\":\"/_/nightly\"}\n", ""},

		{"namespace list", 0, "=NAME\nguest\n", ""},
		{"namespace list -o json", 0, "=[\n  \"guest\"\n]\n", ""},
		{"namespace get", 0, "rule     /guest/greet\n", ""},
		{"list", 0, "trigger  /guest/order\n", ""},
		{"namespace get -o jsonl", 0, `"rules":[{`, ""},
		{"namespace get /nobody", 4, "", "forerun namespace list"},
		{"rule delete greet --disable", 0, "", "ok: deleted rule greet\n"},
		{"rule delete greet", 4, "", "there is no rule greet"},
		{"trigger delete order", 0, "", "ok: deleted trigger order\n"},
		{"package delete mine", 0, "", "ok: deleted package mine\n"},
		{"package delete tools --recursive", 0, "", "ok: deleted package tools\n"},
		{"list", 0, "action   /guest/feed\n", ""},
	})
}

// TestTenantCommands: the operator makes a tenant, whose key works until it is rotated or the tenant is deleted.
func TestTenantCommands(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	sh := newShell(t, s)
	sh.env = []string{"FORERUN_OPERATOR=" + filepath.Join(s.Options.Data, "operator")}
	key := strings.TrimSpace(sh.run(t, "tenant create ada --stored-actions 1").stdout)
	sh.save(t, map[string]string{"hello.py": helloCode})
	sh.follow(t, []step{
		{"namespace list --auth " + key, 0, "=NAME\nada\n", ""},
		{"tenant create ada", 4, "", "ada"},
		{"tenant list", 0, "\nada ", ""},
		{"tenant get ada quotas -o jsonl", 0, "={\"storedActions\":1}\n", ""},
		{"action create a hello.py --auth " + key, 0, "", ""},
		{"action create b hello.py --auth " + key, 4, "", ""},
		{"tenant update ada --stored-actions none", 0, "", "ok: updated tenant ada\n"},
		{"action create b hello.py --auth " + key, 0, "", ""},
		{"tenant get nobody", 4, "", "forerun tenant list"},
	})
	var rotated struct{ Auth string }
	got := sh.run(t, "tenant rotate ada -o jsonl")
	if err := json.Unmarshal([]byte(got.stdout), &rotated); err != nil {
		t.Fatalf("%+v: %v", got, err)
	}
	sh.follow(t, []step{
		{"namespace list --auth " + key, 4, "", "forerun login"},
		{"namespace list --auth " + rotated.Auth, 0, "=NAME\nada\n", ""},
		{"tenant delete ada", 0, "", "ok: deleted tenant ada\n"},
		{"namespace list --auth " + rotated.Auth, 4, "", "forerun login"},
		{"tenant list --operator nowhere", 2, "", "FORERUN_OPERATOR"},
	})
}
