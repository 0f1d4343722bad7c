package test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

const wholeProject = `
packages:
  shop:
    shared: true
    inputs: { currency: "${CURRENCY}" }
    actions:
      price: { file: price.py, limits: { memory: 128, timeout: 55000 }, web: true, annotations: { description: "What it costs" } }
    sequences:
      offer: [price, /_/packed]
  shop-usd: { bind: /_/shop, inputs: { currency: USD } }
actions:
  packed: { folder: packed }
  library: { folder: library }
  program: { file: program }
  zipped: { file: zipped.zip }
  renamed: { file: price.py, main: cheap }
sequences:
  twice: { actions: [shop/offer, packed], annotations: { description: nested } }
compositions:
  composed: composed.json
triggers:
  order: { inputs: { item: pen } }
rules:
  sell: { trigger: order, action: shop/offer }
  idle: { trigger: order, action: packed, enabled: false }
`

// projectFiles are those that wholeProject names.
func projectFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{
		"forerun.yaml": wholeProject,
		"price.py":     "def main(args):\n    return {'price': 3, 'currency': args['currency']}\n\ndef cheap(args):\n    return {'price': 1}\n",

		"packed/package.json":               `{"main": "lib.js"}`,
		"packed/lib.js":                     "exports.main = args => ({ ...args, packed: require('own')() })\n",
		"packed/node_modules/own/index.js":  "module.exports = () => 'by own'\n",
		"packed/.git/config":                "not part of it",
		"library/__main__.py":               "import ours\nfrom part.more import MORE\n\ndef main(args):\n    return {'ours': ours.VALUE, 'more': MORE}\n",
		"library/part/more.py":              "MORE = 2\n",
		"library/part/__init__.py":          "",
		"library/__pycache__/junk.pyc":      "not part of it",
		"composed.json":                     `{"type":"sequence","components":[{"type":"action","name":"/_/shop/price"},{"type":"action","name":"/_/composed_inline","action":{"exec":{"kind":"nodejs:default","code":"const main = args => ({ doubled: 2 * args.price })"}}}]}`,
		"program":                           decoded(t, nativeProgram(t)),
		"zipped.zip":                        decoded(t, archive(t, map[string]string{"__main__.py": "def main(args):\n    return {'zipped': True}\n"})),
		"readme.txt":                        "not part of it",
		"library/virtualenv/bin/activate":   "",
		"library/virtualenv/bin/python":     "",
		"library/virtualenv/pyvenv.cfg":     "",
		"packed/node_modules/.package-lock": "",
	}
	for minor := 9; minor < 16; minor++ { // whatever Python the machine has
		files[fmt.Sprintf("library/virtualenv/lib/python3.%d/site-packages/ours.py", minor)] = "VALUE = 'installed'\n"
	}
	return files
}

func decoded(t *testing.T, text string) string {
	t.Helper()
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestDeployProject deploys what a project file can say, uses each part of it, and deploys again what changed alone.
func TestDeployProject(t *testing.T) {
	t.Parallel()
	needNode(t)
	s := start(t, server.Options{})
	sh := newShell(t, s)
	sh.save(t, projectFiles(t))
	sh.follow(t, []step{{"deploy", 2, "", "forerun.yaml:5:25: packages.shop.inputs.currency: the environment variable CURRENCY is not set"}})
	sh.env = []string{"CURRENCY=EUR"}
	sh.follow(t, []step{
		{"deploy --dry-run", 0, "created    action   /_/packed\n", "ok: 15 created, 0 updated, 0 unchanged (nothing was sent)"},
		{"action list", 0, "", ""},
		{"deploy", 0, "created    package  /_/shop-usd\n", "ok: 15 created, 0 updated, 0 unchanged\n"},
		{"deploy -o jsonl", 0, `{"change":"unchanged","kind":"rule","name":"/_/sell"}`, "ok: 0 created, 0 updated, 15 unchanged\n"},
		{"invoke shop/price -r -o jsonl", 0, `={"currency":"EUR","price":3}` + "\n", ""},
		{"invoke shop-usd/price -r -o jsonl", 0, `={"currency":"USD","price":3}` + "\n", ""},
		{"invoke packed -r -o jsonl -p a 1", 0, `={"a":1,"packed":"by own"}` + "\n", ""},
		{"invoke library -r -o jsonl", 0, `={"more":2,"ours":"installed"}` + "\n", ""},
		{"invoke zipped -r -o jsonl", 0, `={"zipped":true}` + "\n", ""},
		{"invoke renamed -r -o jsonl", 0, `={"price":1}` + "\n", ""},
		{"invoke twice -r -o jsonl", 0, `={"currency":"EUR","packed":"by own","price":3}` + "\n", ""},
		{"invoke composed -r -o jsonl", 0, `={"doubled":6}` + "\n", ""},
		{"invoke program -b", 0, `"success": true`, ""},
		{"rule list", 0, "/guest/idle  inactive  order    packed", ""},
		{"trigger fire order", 0, "01", "ok: fired order"},
		{"action get shop/price limits -o jsonl", 0, `={"timeout":55000,"memory":128,"logs":10,"concurrency":1}` + "\n", ""},
		{"package get shop -s", 0, "action /guest/shop/price: What it costs\n", ""},
	})
	equalJSON(t, json.RawMessage(fetchText(t, s.URL+"/api/v1/web/guest/shop/price.json")), `{"currency":"EUR","price":3}`)
	changed := strings.NewReplacer(", limits: { memory: 128, timeout: 55000 }, web: true", "", "enabled: false", "enabled: true", "item: pen", "item: ink").Replace(wholeProject)
	sh.save(t, map[string]string{"forerun.yaml": changed, "packed/node_modules/own/index.js": "module.exports = () => 'changed'\n"})
	sh.follow(t, []step{
		{"deploy forerun.yaml", 0, "updated    action   /_/packed\n", "ok: 0 created, 4 updated, 11 unchanged\n"},
		{"deploy .", 0, "unchanged  rule     /_/sell", "ok: 0 created, 0 updated, 15 unchanged\n"},
		{"invoke packed -r -o jsonl", 0, `={"packed":"changed"}` + "\n", ""},
		{"rule status idle", 0, "=active\n", ""},
		{"action get shop/price limits -o jsonl", 0, `={"timeout":60000,"memory":256,"logs":10,"concurrency":1}` + "\n", ""},
		{"trigger get order parameters -o jsonl", 0, `=[{"key":"item","value":"ink"}]` + "\n", ""},
	})
	if got := fetchText(t, s.URL+"/api/v1/web/guest/shop/price.json"); !strings.Contains(got, "does not exist") {
		t.Errorf("what is no web action any longer answers %s", got)
	}
}

func fetchText(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDeployJar: a jar is known by its ending, and must say where it begins.
func TestDeployJar(t *testing.T) {
	t.Parallel()
	sh := newShell(t, start(t, server.Options{}))
	sh.save(t, map[string]string{"probe.jar": decoded(t, javaProgram(t))})
	sh.follow(t, []step{
		{"action create probe probe.jar", 2, "", "does not name a main class"},
		{"action create probe probe.jar --main Probe", 0, "", "ok: "},
		{"invoke probe -b", 0, `"success": true`, ""},
	})
}

// TestDeployFolder: a folder is deployed when it is named, and nothing is when nothing says what is a function.
func TestDeployFolder(t *testing.T) {
	t.Parallel()
	sh := newShell(t, start(t, server.Options{}))
	sh.save(t, map[string]string{
		"hello.py": helloCode, "build.sh": "#!/bin/sh\n", "readme.md": "words", "data.json": "{}", ".hidden.py": "no", "empty/notes.txt": "words",
		"app/__main__.py": helloCode, "zipped.zip": decoded(t, archive(t, map[string]string{"__main__.py": helloCode})), "data.zip": decoded(t, archive(t, map[string]string{"x": "y"})),
	})
	sh.follow(t, []step{
		{"deploy", 2, "", "there is no forerun.yaml in " + sh.folder + ": write one, name another, or name a folder of functions, like `forerun deploy .`"},
		{"dev", 2, "", "there is no forerun.yaml"},
		{"deploy empty", 2, "", "neither a forerun.yaml nor a function"},
		{"deploy nowhere", 2, "", "no such file"},
		{"deploy .", 0, "=created    action   /_/app\ncreated    action   /_/hello\ncreated    action   /_/zipped\n", "ok: 3 created"},
		{"invoke app -r -o jsonl", 0, `={"greeting":"Hello you"}` + "\n", ""},
		{"invoke zipped -r -o jsonl", 0, `={"greeting":"Hello you"}` + "\n", ""},
	})
	sh.save(t, map[string]string{"forerun.yaml": "actions:\n  hello: { file: hello.py, sequence: yes }\n  other: { file: missing.py }\n"})
	sh.follow(t, []step{{"deploy", 2, "", "forerun.yaml:2:"}})
	sh.save(t, map[string]string{"forerun.yaml": "actions:\n  hello: { file: hello.py }\nsequences:\n  bad: [hello, nothing]\nrules:\n  r: { trigger: t, action: hello }\n"})
	sh.follow(t, []step{{"deploy", 4, "unchanged  action   /_/hello\n", "action /_/bad: there is no action nothing"}})
}
