package launcher

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/native"
	"forerun.dev/forerun/runtimes/node"
)

const insideProgram = "/forerun/forerun"

// startInside starts a launcher as the first process of a real sandbox, as the worker does.
func startInside(t testing.TB, spec sandbox.Spec, binds ...sandbox.Bind) (*server, sandbox.Sandbox) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec.Binds = append(binds, sandbox.Bind{Host: program, Inside: insideProgram})
	var roots []string
	for _, b := range spec.Binds {
		roots = append(roots, b.Host)
	}
	maker, err := native.StartHelper(native.Config{DataDir: t.TempDir(), BindRoots: roots})
	if err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	t.Cleanup(func() { _ = maker.Close() })
	language := spec.Argv[0]
	spec.ID, spec.Argv = "s1", append([]string{insideProgram, Command}, spec.Argv...)
	spec.Env = append(spec.Env, "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8")
	spec.MemoryMiB, spec.Processes, spec.TmpMiB, spec.CodeMiB = 256, 256, 64, 64
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
	s.greet(language)
	return s, box
}

func both(box sandbox.Sandbox) [2]*os.File {
	stdout, stderr := box.Output()
	return [2]*os.File{stdout, stderr}
}

// nodeSpec is what the worker asks for.
func nodeSpec(t testing.TB) (sandbox.Spec, []sandbox.Bind) {
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
	if strings.HasPrefix(path, "/usr/bin/") {
		return spec, nil
	}
	return spec, []sandbox.Bind{{Host: path, Inside: path}}
}

func TestNodeInASandbox(t *testing.T) {
	spec, binds := nodeSpec(t)
	s, box := startInside(t, spec, binds...)
	h := s.serving(runtimewire.Init{}, []byte(`
		const fs = require('fs'), child = require('child_process')
		let n = 0
		exports.main = x => {
			if (x.exit) process.exit(x.exit)
			fs.writeFileSync('/tmp/left', 'x')
			child.spawn('sleep', ['1000'], {detached: true, stdio: 'inherit'}).unref()
			return {n: ++n, shell: child.execSync('echo $0').toString(), cwd: process.cwd()}
		}`))
	for _, want := range []string{`{"n":1,"shell":"/bin/sh\n","cwd":"/action"}`, `{"n":2,"shell":"/bin/sh\n","cwd":"/action"}`} {
		if got := h.call(`{}`); got != want {
			t.Errorf("got %s, want %s; logs: %s", got, want, &s.logs)
		}
		if err := box.Reset(t.Context(), h.hostPID); err != nil {
			t.Fatal(err)
		}
	}
	if h.hostPID == h.pid {
		t.Error("the handler's process id is the same inside and outside")
	}
	if err := box.Reset(t.Context()); err != nil {
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
	s, box := startInside(t, sandbox.Spec{Argv: []string{"native"}})
	h := s.serving(runtimewire.Init{Binary: true}, compiled(t))
	for range 2 {
		if got := h.call(`{"name":"Ada"}`); got != `{"greeting":"Hello Ada"}` {
			t.Error(got)
		}
		if err := box.Reset(t.Context(), h.hostPID); err != nil {
			t.Fatal(err)
		}
	}
	if err := box.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := h.end(); e.Signal != 9 {
		t.Errorf("the exit is %+v", e)
	}
	if got := s.fork().call(`{"name":"Bob"}`); got != `{"greeting":"Hello Bob"}` {
		t.Error(got)
	}
}
