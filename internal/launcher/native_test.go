package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
)

// loop is an ActionLoop program in sh: BODY answers the line in $line, on descriptor 3.
const loop = "#!/bin/sh\nwhile read -r line; do\nBODY\ndone\n"

func script(body string) []byte { return []byte(strings.Replace(loop, "BODY", body, 1)) }

func startNative(t *testing.T) *server {
	t.Helper()
	t.Parallel()
	return start(t, "native")
}

func TestNativeScript(t *testing.T) {
	h := startNative(t).serving(runtimewire.Init{Env: map[string]string{"__OW_NAMESPACE": "guest", "GREETING": "hi"}},
		script(`echo "log of $GREETING"; n=$((n+1)); echo "{\"n\":$n,\"got\":$line}" >&3`))
	for _, want := range []string{
		`{"n":1,"got":{"value":{"a": "b"},"namespace":"guest","activation_id":"x1"}}`,
		`{"n":2,"got":{"value":{"a": "b"},"namespace":"guest","activation_id":"x1"}}`,
	} {
		h.send(runtimewire.Run{Env: map[string]string{"__OW_ACTIVATION_ID": "x1", "OTHER": "y"}}, "{\"a\":\n\"b\"}")
		if got := h.outcome(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		h.ready()
	}
	h.logged("log of hi")
}

func TestNativeArchiveWithExec(t *testing.T) {
	program := string(script(`echo "{\"file\":\"$(cat data/x)\"}" >&3`))
	for format, code := range map[string][]byte{
		"zip": zipOf(t, map[string]string{"exec": program, "data/x": "here"}),
		"tar": tarFiles(t, entry{"exec", program, 0}, entry{"data/x", "here", 0}),
	} {
		t.Run(format, func(t *testing.T) {
			h := startNative(t).serving(runtimewire.Init{Binary: true}, code)
			if got, want := h.call(`{}`), `{"file":"here"}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestNativeStopped: a program that waits beside another executes nothing, whatever it does otherwise, until it is let go on.
func TestNativeStopped(t *testing.T) {
	for name, body := range map[string]string{
		"at rest": "",
		"busy":    "import threading\ndef work():\n  while True: pass\nfor _ in range(3): threading.Thread(target=work, daemon=True).start()\n",
	} {
		t.Run(name, func(t *testing.T) {
			program := "#!/usr/bin/python3\nimport os, sys\n" + body + "out = os.fdopen(3, 'w')\nfor line in sys.stdin: print('{\"ok\": true}', file=out, flush=True)\n"
			s := startNative(t)
			s.serving(runtimewire.Init{}, []byte(program))
			h := s.forked(runtimewire.Fork{Stop: true})
			h.expectStopped()
			h.send(runtimewire.Run{}, "{}")
			h.letGoOn()
			if got := h.outcome(); got != `{"ok": true}` {
				t.Error(got)
			}
			h.pause()
			h.expectStopped()
			h.send(runtimewire.Run{}, "{}")
			h.letGoOn()
			if got := h.outcome(); got != `{"ok": true}` {
				t.Error(got)
			}
		})
	}
}

// TestNativeOutputWaits: a program that has the outputs not wait does not have the next one lose what it prints.
func TestNativeOutputWaits(t *testing.T) {
	s := startNative(t)
	h := s.serving(runtimewire.Init{}, []byte("#!/usr/bin/python3\nimport os, sys\nout = os.fdopen(3, 'w')\n"+
		"for line in sys.stdin:\n  waits = os.get_blocking(1)\n  os.set_blocking(1, False)\n  print('{\"waits\": %d}' % waits, file=out, flush=True)\n"))
	stopped := s.forked(runtimewire.Fork{Stop: true})
	for _, next := range []func() *handler{
		func() *handler { return h },
		func() *handler { return s.forked(runtimewire.Fork{}) },
		func() *handler { stopped.letGoOn(); return stopped },
	} {
		if got := next().call("{}"); got != `{"waits": 1}` {
			t.Error(got)
		}
	}
}

// connects is a program that connects in a thread as it starts, which takes a fifth of a second.
const connects = `#!/usr/bin/python3
import os, socket, sys, threading, time
listener = socket.socket(socket.AF_UNIX)
listener.bind("")
listener.listen(0)
first, second = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
first.connect(listener.getsockname())
def connect():
  second.connect(listener.getsockname()) # waits until the first one was accepted
  print("connected", flush=True)
def accept():
  time.sleep(0.2)
  listener.accept()
for work in connect, accept: threading.Thread(target=work, daemon=True).start()
out = os.fdopen(3, 'w')
for line in sys.stdin: print('{"ok": true}', file=out, flush=True)
`

// TestNativeConnectsBeforeItIsStopped: what it finds when it goes on, long after, must not be that connecting has timed out.
func TestNativeConnectsBeforeItIsStopped(t *testing.T) {
	spec := sandbox.Spec{Argv: []string{"native"}}
	s, _ := startInside(t, sandboxes(t, &spec), spec)
	if done := s.load(runtimewire.Init{}, []byte(connects)); !done.OK {
		t.Fatal(done.Error)
	}
	h := s.forked(runtimewire.Fork{Stop: true})
	h.logged("connected")
	h.letGoOn()
	if got := h.call("{}"); got != `{"ok": true}` {
		t.Error(got)
	}
}

// expectStopped fails the test if a thread of the handler is not stopped.
func (h *handler) expectStopped() {
	h.t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", h.pid))
	if err != nil || len(threads) == 0 {
		h.t.Fatal(threads, err)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil || !strings.Contains(string(stat), ") T ") {
			h.t.Errorf("a thread is not stopped: %s, %v", stat, err)
		}
	}
}

// letGoOn lets it go on. Strangers and repetitions mean nothing.
func (h *handler) letGoOn() {
	h.t.Helper()
	for _, pid := range []int{h.pid, h.pid, 1, 1 << 30} {
		if err := h.control.Write(runtimewire.TypeContinue, runtimewire.Continue{PID: pid}, nil); err != nil {
			h.t.Fatal(err)
		}
	}
}

// pause has it stopped. Of strangers it is answered, too.
func (h *handler) pause() {
	h.t.Helper()
	for _, pid := range []int{h.pid, h.pid, 1, 1 << 30} {
		if err := h.control.Write(runtimewire.TypePause, runtimewire.Pause{PID: pid}, nil); err != nil {
			h.t.Fatal(err)
		}
		var p runtimewire.Paused
		if h.read(runtimewire.TypePaused, &p); p.PID != pid || !p.Stopped {
			h.t.Errorf("%+v instead of %d", p, pid)
		}
	}
}

// TestNativeEndsBeforeItIsStopped: its end is told as any other's.
func TestNativeEndsBeforeItIsStopped(t *testing.T) {
	s := startNative(t)
	s.serving(runtimewire.Init{}, script("exit 1"))
	if err := os.WriteFile(filepath.Join(s.folder, programName), []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.control.Write(runtimewire.TypeFork, runtimewire.Fork{Stop: true}, nil); err != nil {
		t.Fatal(err)
	}
	var header runtimewire.Handler
	for _, file := range s.read(runtimewire.TypeHandler, &header).Files {
		_ = file.Close()
	}
	var e runtimewire.Exit
	if s.read(runtimewire.TypeExit, &e); e.PID != header.PID || e.Status != 3 {
		t.Errorf("%+v after %+v", e, header)
	}
}

const goProgram = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	out := os.NewFile(3, "out")
	if os.Getenv("__OW_WAIT_FOR_ACK") != "" {
		fmt.Fprintln(out, "{ \"ok\": true}")
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var run struct{ Value map[string]any }
		if err := json.Unmarshal(line, &run); err != nil {
			fmt.Fprintf(out, "{\"error\":%q}\n", err)
			continue
		}
		fmt.Println("log")
		answer, _ := json.Marshal(map[string]any{"greeting": "Hello " + run.Value["name"].(string)})
		fmt.Fprintf(out, "%s\n", answer)
	}
}
`

func compiled(t testing.TB) []byte {
	t.Helper()
	folder := t.TempDir()
	source, program := filepath.Join(folder, "main.go"), filepath.Join(folder, "program")
	if err := os.WriteFile(source, []byte(goProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("compiling: %v: %s", err, out)
	}
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestNativeGoProgram(t *testing.T) {
	code := compiled(t)
	for name, env := range map[string]map[string]string{"plain": nil, "acknowledges": {waitForAck: "1"}} {
		t.Run(name, func(t *testing.T) {
			h := startNative(t).serving(runtimewire.Init{Binary: true, Env: env}, code)
			for range 100 {
				if got, want := h.call(`{"name":"Ada"}`), `{"greeting":"Hello Ada"}`; got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
			if got := h.fork().call(`{"name":"Bob"}`); got != `{"greeting":"Hello Bob"}` {
				t.Error(got)
			}
		})
	}
}

func TestNativeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		init runtimewire.Init
		code []byte
		want string
	}{
		"no program":     {runtimewire.Init{Binary: true}, []byte("certainly nothing to execute"), "neither an executable for this machine nor a script"},
		"no interpreter": {runtimewire.Init{}, []byte("#!/nowhere/sh\n"), "its interpreter or its dynamic linker is not there"},
		"no exec":        {runtimewire.Init{Binary: true}, zipOf(t, map[string]string{"other": ""}), `no file "exec" at its top`},
		"broken archive": {runtimewire.Init{Binary: true}, []byte("PK\x03\x04 and so on"), "uncompressing"},
		"no ack":         {runtimewire.Init{Env: map[string]string{waitForAck: "1"}}, []byte("#!/bin/sh\n"), "ended before it acknowledged"},
		"bad ack":        {runtimewire.Init{Env: map[string]string{waitForAck: "1"}}, []byte("#!/bin/sh\necho '{}' >&3; read -r line"), "did not initialize properly"},
	} {
		t.Run(name, func(t *testing.T) {
			if done := startNative(t).load(c.init, c.code); done.OK || !strings.Contains(done.Error, c.want) {
				t.Errorf("the answer is %+v", done)
			}
		})
	}
}

func TestNativeWrongAnswersAreTheLast(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"no object": {`echo 7 >&3`, "error: The action did not return a dictionary or array."},
		"empty":     {`echo >&3`, "error: The action did not return a dictionary or array."},
		"too long":  {`head -c 100000 /dev/zero | tr '\0' x >&3; echo >&3`, "error: The action produced a response that exceeded the allowed length: more than 1000 bytes."},
	} {
		t.Run(name, func(t *testing.T) {
			h := startNative(t).serving(runtimewire.Init{}, script(c.body))
			h.send(runtimewire.Run{Limit: 1000}, `{}`)
			if got := h.outcome(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if f, err := h.conn.Read(); err == nil {
				t.Errorf("a frame of type %d came", f.Type)
			}
		})
	}
}

func TestNativeAnswerWithoutLineEnd(t *testing.T) {
	h := startNative(t).serving(runtimewire.Init{}, []byte("#!/bin/sh\nread -r line; printf '{\"a\":1}' >&3; exit 5"))
	h.send(runtimewire.Run{}, `{}`)
	if got, want := h.outcome(), `{"a":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if e := h.end(); e.Status != 5 {
		t.Errorf("the exit is %+v", e)
	}
}

func TestNativeLinesNobodyAskedForAreDropped(t *testing.T) {
	h := startNative(t).serving(runtimewire.Init{}, script(`n=$((n+1)); printf '{"n":%d}\n{"stray":1}\n' $n >&3`))
	for _, want := range []string{`{"n":1}`, `{"n":2}`, `{"n":3}`} {
		if got := h.call(`{}`); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNativeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want runtimewire.Exit
	}{
		"exit":   {`echo before; exit 4`, runtimewire.Exit{Status: 4}},
		"signal": {`kill -SEGV $$`, runtimewire.Exit{Signal: int(syscall.SIGSEGV)}},
		"closes": {`exec 3>&-; exec sleep 0`, runtimewire.Exit{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := startNative(t).serving(runtimewire.Init{}, script(c.body))
			h.send(runtimewire.Run{}, `{}`)
			if f, err := h.conn.Read(); err == nil {
				t.Errorf("a frame of type %d came", f.Type)
			}
			c.want.PID = h.pid
			if e := h.end(); e != c.want {
				t.Errorf("the exit is %+v", e)
			}
			if h.fork() == nil {
				t.Error("no other process took over")
			}
		})
	}
}

func TestNativeHangsAndIsKilled(t *testing.T) {
	h := startNative(t).serving(runtimewire.Init{}, script(`while :; do :; done`))
	h.send(runtimewire.Run{}, `{}`)
	if err := syscall.Kill(h.hostPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := h.conn.Read(); err == nil {
		t.Error("a frame came")
	}
	if e := h.end(); e.Signal != 9 {
		t.Errorf("the exit is %+v", e)
	}
}

func TestNativeProcessIsToldTheEnd(t *testing.T) {
	h := startNative(t).serving(runtimewire.Init{}, script(`echo {} >&3`))
	_ = h.conn.Close()
	if e := h.end(); e.Signal != 0 {
		t.Errorf("the exit is %+v", e)
	}
}
