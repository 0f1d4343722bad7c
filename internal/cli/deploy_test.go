package cli

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"forerun.dev/forerun/internal/cli/whisk"
)

// platform is a server that keeps entities as OpenWhisk does: it resolves names and kinds, adds annotations of its own,
// and turns a rule on when it comes.
type platform struct {
	mu       sync.Mutex // guards entities and puts
	entities map[string]map[string]any
	puts     []string      // paths
	put      chan struct{} // gets one for each PUT
}

func newPlatform(t *testing.T) (*platform, func(args ...string) outcome) {
	p := &platform{entities: make(map[string]map[string]any), put: make(chan struct{}, 100)}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, func(args ...string) outcome {
		return runIn(t, map[string]string{"FORERUN_APIHOST": server.URL, "FORERUN_AUTH": testKey, "SECRET": "s3"}, "", "", args...)
	}
}

// ServeHTTP implements http.Handler.
func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/_/")
	entity := p.entities[path]
	switch {
	case path == "activations":
		_, _ = w.Write([]byte("[]"))
		return
	case r.Method == http.MethodPut:
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		if entity == nil {
			entity = map[string]any{"namespace": "guest", "publish": false, "limits": map[string]any{"timeout": 60000, "memory": 256, "logs": 10, "concurrency": 1}}
		}
		entity = merged(path, entity, body)
		p.entities[path] = entity
		p.puts = append(p.puts, path)
		p.put <- struct{}{}
	case entity == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"The requested resource does not exist."}`)
		return
	case r.Method == http.MethodPost:
		_ = json.NewDecoder(r.Body).Decode(&entity)
	case r.Method == http.MethodGet:
		entity = p.inherit(path, entity)
	}
	_ = json.NewEncoder(w).Encode(entity)
}

// inherit is an action with the parameters of its package before its own.
func (p *platform) inherit(path string, entity map[string]any) map[string]any {
	parts := strings.Split(path, "/")
	pkg := p.entities["packages/"+parts[1]]
	if parts[0] != "actions" || len(parts) < 3 || pkg == nil {
		return entity
	}
	entity = maps.Clone(entity)
	own, _ := entity["parameters"].([]any)
	all, _ := pkg["parameters"].([]any)
	all = slices.DeleteFunc(slices.Clone(all), func(kv any) bool {
		return slices.ContainsFunc(own, func(x any) bool { return x.(map[string]any)["key"] == kv.(map[string]any)["key"] })
	})
	entity["parameters"] = append(all, own...)
	return entity
}

// merged is an entity after a PUT.
func merged(path string, entity, body map[string]any) map[string]any {
	own := func(name any) string { return strings.Replace(name.(string), "/_/", "/guest/", 1) }
	target := func(name any) map[string]any {
		parts := strings.Split(own(name), "/")
		return map[string]any{"path": strings.Join(parts[1:len(parts)-1], "/"), "name": parts[len(parts)-1]}
	}
	for name, value := range body {
		entity[name] = value
	}
	if exec, ok := body["exec"].(map[string]any); ok {
		exec["kind"] = strings.Replace(exec["kind"].(string), "nodejs:default", "nodejs:20", 1)
		components, _ := exec["components"].([]any)
		for i := range components {
			components[i] = own(components[i])
		}
		entity["annotations"] = append(body["annotations"].([]any), map[string]any{"key": "exec", "value": exec["kind"]})
	}
	if strings.HasPrefix(path, "rules/") {
		entity["trigger"], entity["action"], entity["status"] = target(body["trigger"]), target(body["action"]), "active"
	}
	if binding, ok := body["binding"].(map[string]any); ok && binding["namespace"] == "_" {
		binding["namespace"] = "guest"
	}
	return entity
}

func write(t *testing.T, folder string, files map[string]string) {
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const projectFile = `
packages:
  p:
    inputs: {secret: "${SECRET}"}
    actions:
      a: {file: a.py, limits: {memory: 128}, web: true, annotations: {note: x}}
    sequences:
      s: [a, /_/f]
  bound: {bind: /_/p}
actions:
  f: {folder: f, main: go}
sequences:
  outer: {actions: [inner], annotations: {n: 1}}
  inner: [f, p/a]
compositions:
  c: c.json
triggers:
  t:
rules:
  r: {trigger: t, action: p/s, enabled: false}
`

func TestDeploy(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{
		"forerun.yaml": projectFile, "a.py": "def main(a): return a\n", "f/index.js": "exports.go = a => a\n", "f/.git/x": "ignored",
		"c.json": `{"type": "action", "name": "/_/f"}`,
	})
	p, run := newPlatform(t)
	got := run("deploy", folder)
	want := `created    package  /_/p
created    package  /_/bound
created    action   /_/c
created    action   /_/f
created    action   /_/p/a
created    trigger  /_/t
created    action   /_/inner
created    action   /_/p/s
created    action   /_/outer
created    rule     /_/r
`
	if got.code != 0 || got.stdout != want || got.stderr != "ok: 10 created, 0 updated, 0 unchanged\n" {
		t.Fatalf("%+v", got)
	}
	if status := p.entities["rules/r"]["status"]; status != "inactive" {
		t.Errorf("the rule is %v", status)
	}
	if kvs, _ := json.Marshal(p.entities["packages/p"]["parameters"]); string(kvs) != `[{"key":"secret","value":"s3"}]` {
		t.Errorf("inputs %s", kvs)
	}
	p.puts = nil
	if got = run("deploy", filepath.Join(folder, "forerun.yaml")); got.code != 0 || got.stderr != "ok: 0 created, 0 updated, 10 unchanged\n" || len(p.puts) > 0 {
		t.Errorf("the second deployment put %v: %+v", p.puts, got)
	}
	// An annotation, a limit and web that are taken out of the file go away; a file that changed is sent.
	write(t, folder, map[string]string{
		"forerun.yaml": strings.Replace(projectFile, ", limits: {memory: 128}, web: true, annotations: {note: x}", "", 1), "f/index.js": "exports.go = a => 1\n",
	})
	if got = run("deploy", folder, "--dry-run"); got.stderr != "ok: 0 created, 2 updated, 8 unchanged (nothing was sent)\n" || len(p.puts) > 0 {
		t.Errorf("a dry run put %v: %+v", p.puts, got)
	}
	if got = run("deploy", folder); got.stderr != "ok: 0 created, 2 updated, 8 unchanged\n" || len(p.puts) != 2 {
		t.Errorf("put %v: %+v", p.puts, got)
	}
	if gone, _ := json.Marshal(p.entities["actions/p/a"]["delAnnotations"]); string(gone) != `["note","web-export","raw-http","final"]` {
		t.Errorf("annotations deleted: %s", gone)
	}
}

// What the server would refuse in annotations is told in its words, also by a dry run.
func TestDeployChecksAnnotations(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"forerun.yaml": "actions: {a: {file: a.py, annotations: {speculate: true}}}\n", "a.py": ""})
	p, run := newPlatform(t)
	for _, args := range [][]string{{"deploy", folder, "--dry-run"}, {"deploy", folder}} {
		got := run(args...)
		if got.code != 2 || len(p.puts) > 0 || !strings.Contains(got.stderr, `The annotation 'speculate' must be a string, not true: write off, branches or all, and perhaps ; depth=32 (1 to 64) ;`) {
			t.Errorf("%v put %v: %+v", args, p.puts, got)
		}
	}
}

// Where something cannot be deployed, what it was is told, and what depends on it is left out.
func TestDeployFails(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"forerun.yaml": "actions: {a: {file: a.py}, b: {file: a.py}}\nsequences: {s: [a, b]}\n", "a.py": ""})
	put := `{"exec":{"kind":"python:3","code":""},"parameters":[],"annotations":[],"limits":{"timeout":60000,"memory":256,"logs":10,"concurrency":1}}`
	w := newWorld(t, map[string]answer{
		"PUT namespaces/_/actions/a?overwrite=true": {status: 200, body: `{}`},
		"PUT namespaces/_/actions/b?overwrite=true": {status: 413, body: `{"error":"too big"}`},
	})
	got := w.run("", "deploy", folder, "-o", "jsonl")
	if got.code != 4 || got.stdout != `{"change":"created","kind":"action","name":"/_/a"}`+"\n" || !strings.Contains(got.stderr, "action /_/b: too big") {
		t.Errorf("%+v", got)
	}
	asked := strings.Join(w.requests(), "\n")
	if strings.Contains(asked, "actions/s") || !strings.Contains(asked, put) {
		t.Errorf("asked %s", asked)
	}
}

func TestDeployUsage(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"forerun.yaml": "actions:\n  a: {file: a.py, bounds: {}}\n", "empty/x.txt": ""})
	_, run := newPlatform(t)
	if got := run("deploy", folder); got.code != 2 || !strings.Contains(got.stderr, "forerun.yaml:2:19: actions.a.bounds is not known") {
		t.Errorf("%+v", got)
	}
	if got := run("deploy", filepath.Join(folder, "none")); got.code != 2 || !strings.Contains(got.stderr, "there is no project") {
		t.Errorf("%+v", got)
	}
	if got := run("deploy", filepath.Join(folder, "empty")); got.code != 2 || !strings.Contains(got.stderr, "neither a forerun.yaml nor a function") {
		t.Errorf("%+v", got)
	}
}

// dev deploys, and again when a file is saved, also by an editor that replaces it, and in a folder that is new.
func TestDev(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"forerun.yaml": "actions: {a: {file: a.py}, f: {folder: f}}", "a.py": "1", "f/__main__.py": "1"})
	p, _ := newPlatform(t)
	server := httptest.NewServer(p)
	defer server.Close()
	client, err := whisk.New(whisk.Options{Host: server.URL, Auth: testKey})
	if err != nil {
		t.Fatal(err)
	}
	a := &app{env: Environment{Getenv: func(string) string { return "" }}, output: asText}
	cmd := a.devCommand()
	var stdout, stderr buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := &development{app: a, cmd: cmd, path: folder, params: new(keyValues), deployment: &deployment{client: client, done: make(map[string]digest)}}
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	wait := func(what string) {
		select {
		case <-p.put:
		case err := <-ended:
			t.Fatalf("it ended before %s: %v", what, err)
		case <-time.After(2 * time.Minute):
			t.Fatalf("nothing was deployed for %s; it said %s", what, stderr.String())
		}
	}
	wait("the first action")
	wait("the second action")
	write(t, folder, map[string]string{"a.py": "2"})
	wait("a saved file")
	write(t, folder, map[string]string{"new": "3"})
	if err := os.Rename(filepath.Join(folder, "new"), filepath.Join(folder, "a.py")); err != nil {
		t.Fatal(err)
	}
	wait("a replaced file")
	write(t, folder, map[string]string{"f/sub/x.py": "x"})
	wait("a new folder")
	write(t, folder, map[string]string{"f/sub/x.py": "y"})
	wait("a file in the new folder")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if code := p.entities["actions/a"]["exec"].(map[string]any)["code"]; code != "3" {
		t.Errorf("deployed code %q", code)
	}
}

// dev's own output may go to a file beside the functions: it says the same once.
func TestDevWithoutChanges(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{"a.py": "1"})
	p, _ := newPlatform(t)
	server := httptest.NewServer(p)
	defer server.Close()
	client, err := whisk.New(whisk.Options{Host: server.URL, Auth: testKey})
	if err != nil {
		t.Fatal(err)
	}
	a := &app{env: Environment{Getenv: func(string) string { return "" }}, output: asText}
	cmd := a.devCommand()
	var stderr buffer
	cmd.SetErr(&stderr)
	d := &development{app: a, cmd: cmd, path: folder, params: new(keyValues), deployment: &deployment{client: client, done: make(map[string]digest)}}
	if d.watcher, err = fsnotify.NewWatcher(); err != nil {
		t.Fatal(err)
	}
	defer d.watcher.Close()
	for _, files := range []map[string]string{
		{"a.py": "1"},
		{"out.txt": "ok"},
		{"forerun.yaml": "actions: 1"},
		{"out.txt": "wrong"},
		{"forerun.yaml": "actions: {a: {file: a.py}}"},
		{"out.txt": "ok again"},
		{"a.py": "2"},
	} {
		write(t, folder, files)
		d.deploy(t.Context())
	}
	var said []string
	for line := range strings.Lines(stderr.String()) {
		said = append(said, strings.Fields(line)[0])
	}
	if len(said) != 7 || said[0] != "created" || said[1] != "ok:" || said[2] != "skipped," || !strings.Contains(said[3], "forerun.yaml") || said[4] != "ok:" || said[5] != "updated" || said[6] != "ok:" {
		t.Errorf("it said:\n%s", stderr.String())
	}
}
