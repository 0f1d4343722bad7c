package launcher

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/native"
	"forerun.dev/forerun/runtimes/node"
)

const insideProgram = "/forerun/forerun"

// sandboxes starts a maker for sandboxes like spec, and completes that.
func sandboxes(t testing.TB, spec *sandbox.Spec) sandbox.Maker {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec.Binds = append(spec.Binds, sandbox.Bind{Host: program, Inside: insideProgram})
	var roots []string
	for _, b := range spec.Binds {
		roots = append(roots, b.Host)
	}
	maker, err := native.StartHelper(native.Config{DataDir: t.TempDir(), BindRoots: roots})
	if err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	t.Cleanup(func() { _ = maker.Close() })
	spec.Argv = append([]string{insideProgram, Command}, spec.Argv...)
	spec.Env = append(spec.Env, "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", MemoryVar+"=256")
	spec.MemoryMiB, spec.Processes, spec.TmpMiB, spec.CodeMiB = 256, 256, 64, 64
	return maker
}

// startInside starts a launcher as the first process of a real sandbox, as the worker does.
func startInside(t testing.TB, maker sandbox.Maker, spec sandbox.Spec) (*server, sandbox.Sandbox) {
	t.Helper()
	spec.ID = "s1"
	box, err := maker.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, control: runtimewire.NewConn(box.Control(), limits)}
	for _, stream := range both(box) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(&s.logs, stream)
		}()
		t.Cleanup(func() { <-done })
	}
	t.Cleanup(func() { _ = box.Close() })
	s.greet(spec.Argv[2])
	return s, box
}

func both(box sandbox.Sandbox) [2]*os.File {
	stdout, stderr := box.Output()
	return [2]*os.File{stdout, stderr}
}

// nodeSpec is what the worker asks for.
func nodeSpec(t testing.TB) sandbox.Spec {
	t.Helper()
	path, err := exec.LookPath("node")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Skip("node is not installed")
	}
	spec := sandbox.Spec{Argv: []string{"nodejs", path, "/forerun/node/" + node.Entry}}
	files, err := fs.Glob(node.Sources, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := node.Sources.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		spec.Files = append(spec.Files, sandbox.File{Path: "/forerun/node/" + name, Data: text, Mode: 0o444})
	}
	if !strings.HasPrefix(path, "/usr/bin/") {
		spec.Binds = []sandbox.Bind{{Host: path, Inside: path}}
	}
	return spec
}

func TestNodeInASandbox(t *testing.T) {
	spec := nodeSpec(t)
	s, box := startInside(t, sandboxes(t, &spec), spec)
	h := s.serving(runtimewire.Init{}, []byte(`
		const fs = require('fs'), child = require('child_process')
		let n = 0
		exports.main = x => {
			if (x.exit) process.exit(x.exit)
			if (x.heap) return {mib: require('v8').getHeapStatistics().heap_size_limit >> 20, env: process.env.FORERUN_MEMORY_MIB ?? null}
			fs.writeFileSync('/tmp/left', 'x')
			child.spawn('sleep', ['1000'], {detached: true, stdio: 'inherit'}).unref()
			return {n: ++n, shell: child.execSync('echo $0').toString(), cwd: process.cwd()}
		}`))
	for _, want := range []string{`{"n":1,"shell":"/bin/sh\n","cwd":"/action"}`, `{"n":2,"shell":"/bin/sh\n","cwd":"/action"}`} {
		if got := h.call(`{}`); got != want {
			t.Errorf("got %s, want %s; logs: %s", got, want, &s.logs)
		}
		if _, err := box.Reset(t.Context(), h.hostPID); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.call(`{"heap":true}`); !strings.Contains(got, `,"env":null}`) || member(t, got, "mib").(float64) > 400 {
		t.Errorf("the heap's limit is %s", got)
	}
	if h.hostPID == h.pid {
		t.Error("the handler's process id is the same inside and outside")
	}
	if _, err := box.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := h.end(); e.Signal != 9 {
		t.Errorf("the exit is %+v", e)
	}
	h = s.fork()
	h.send(runtimewire.Run{}, `{"exit":4}`)
	if e := h.end(); e.Status != 4 {
		t.Errorf("the exit is %+v", e)
	}
}

func TestNativeInASandbox(t *testing.T) {
	spec := sandbox.Spec{Argv: []string{"native"}}
	s, box := startInside(t, sandboxes(t, &spec), spec)
	h := s.serving(runtimewire.Init{Binary: true}, compiled(t))
	for range 2 {
		if got := h.call(`{"name":"Ada"}`); got != `{"greeting":"Hello Ada"}` {
			t.Error(got)
		}
		if _, err := box.Reset(t.Context(), h.hostPID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := box.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := h.end(); e.Signal != 9 {
		t.Errorf("the exit is %+v", e)
	}
	if got := s.fork().call(`{"name":"Bob"}`); got != `{"greeting":"Hello Bob"}` {
		t.Error(got)
	}
}

func TestNodePackagesAreAtHand(t *testing.T) {
	packages, err := filepath.Abs("../../bin/runtimes/node/packages/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(packages); err != nil {
		t.Skip("the packages for Node actions are not installed in bin/runtimes/node/packages")
	}
	spec := nodeSpec(t)
	spec.Binds = append(spec.Binds, sandbox.Bind{Host: packages, Inside: "/node_modules"})
	maker := sandboxes(t, &spec)
	for name, c := range map[string]struct {
		init runtimewire.Init
		code []byte
	}{
		"script": {code: []byte(`const all = ['openwhisk', 'redis', 'ioredis', '@aws-sdk/client-s3']; exports.main = () => ({types: all.map(n => typeof require(n))})`)},
		"module": {code: []byte("import * as a from 'openwhisk'\nimport * as b from 'redis'\nimport * as c from 'ioredis'\nimport * as d from '@aws-sdk/client-s3'\n" +
			`export const main = () => ({types: [typeof a.default, typeof b, typeof c.default, typeof d]})`)},
		"archive": {runtimewire.Init{Binary: true}, zipOf(t, map[string]string{"index.js": `const redis = require('redis'), own = require('own')
			exports.main = () => ({types: ['openwhisk', 'redis', 'ioredis', '@aws-sdk/client-s3'].map(n => typeof require(n)), own})`, "node_modules/own/index.js": `module.exports = 'own'`})},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := startInside(t, maker, spec)
			if got := s.serving(c.init, c.code).call(`{}`); !strings.HasPrefix(got, `{"types":["function","object","function","object"]`) {
				t.Errorf("got %s; logs: %s", got, &s.logs)
			}
		})
	}
}

// TestSignalsOfOthers: a process signals those that it has started, and neither the one that stands by nor the launcher.
func TestSignalsOfOthers(t *testing.T) {
	const scopesSignals = 6 // version of Landlock
	if version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); version < scopesSignals {
		t.Skip("this kernel has no scopes of signals")
	}
	spec := sandbox.Spec{Argv: []string{"native"}}
	s, _ := startInside(t, sandboxes(t, &spec), spec)
	h := s.serving(runtimewire.Init{}, script(`
sleep 100 & own=$!
other=${line#*=}
for pid in 1 $own ${other%=*}; do kill -USR1 $pid 2>/dev/null && n=${n}1 || n=${n}0; done
echo "{\"n\":\"$n\"}" >&3`))
	second := s.forked(runtimewire.Fork{Stop: true})
	if got, want := h.call(fmt.Sprintf(`{"pid":"=%d="}`, second.pid)), `{"n":"010"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	second.letGoOn()
	if got, want := second.call(`{"pid":"=1="}`), `{"n":"010"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
