package worker

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// ways are what a function can do instead of returning an object, and what its invoker is told. Each source has its way in
// the branch of args that say so, and returns {"ok": true} else: the sandbox must serve on.
var ways = []struct {
	name   string
	body   string
	status forerun.Status
	result string // contained in the result
	log    string // contained in the log
	limits func(*forerun.Limits)
	real   bool // only in a real sandbox
}{
	{
		name: "exception", body: "raise ValueError('no such\\n thing')", status: forerun.DeveloperError,
		result: `{"error":"An error has occurred: ValueError: no such thing. See the logs for details."}`, log: "stderr:     raise ValueError('no such\\n thing')",
	},
	{name: "application error", body: "return {'error': {'code': 4}}", status: forerun.ApplicationError, result: `{"error":{"code":4}}`},
	{name: "an error inside", body: "return {'x': {'error': 4}}", status: forerun.Success, result: `{"x":{"error":4}}`},
	{name: "None", body: "return None", status: forerun.DeveloperError, result: `{"error":"The action did not return a dictionary or array."}`},
	{name: "list", body: "return [1]", result: `[1]`},
	{name: "error with more", body: "return {'error': {'b': 1, 'a': 2}, 'more': 1}", status: forerun.ApplicationError, result: `{"error":{"a":2,"b":1}}`},
	{name: "not JSON", body: "return {'x': {1, 2}}", status: forerun.DeveloperError, result: "Object of type set is not JSON serializable"},
	{name: "NaN", body: "return {'x': float('nan')}", status: forerun.DeveloperError, result: "not JSON compliant"},
	{name: "circular", body: "x = {}; x['x'] = x; return x", status: forerun.DeveloperError, result: "Circular reference"},
	{name: "deep", body: "x = {}\n    for _ in range(100000): x = {'x': x}\n    return x", status: forerun.DeveloperError, result: "not JSON: maximum recursion depth"},
	{name: "half a character", body: "return {'x': '\\ud800'}", status: forerun.DeveloperError, result: "did not return a dictionary"},
	{
		name: "too large", body: "return {'x': 'y' * (6 << 20)}", status: forerun.DeveloperError,
		result: "The action produced a response that exceeded the allowed length: 6291464 > 6291456 bytes.",
	},
	{name: "sys.exit", body: "import sys; print('bye', end=''); sys.exit(2)", status: forerun.DeveloperError, result: "sys.exit(2)", log: "stdout: bye"},
	{name: "sys.exit with much to say", body: "import sys; sys.exit('x' * 100000)", status: forerun.DeveloperError, result: "sys.exit('xxx"},
	{name: "exit", body: "exit()", status: forerun.DeveloperError, result: "sys.exit(None)"},
	{
		name: "os._exit", body: "import os; print('so long'); os._exit(3)", status: forerun.DeveloperError,
		result: `{"error":"The action exited unexpectedly with status 3: it must return a dictionary."}`, log: "stdout: so long",
	},
	{name: "signal", body: "import os; os.kill(os.getpid(), 11)", status: forerun.DeveloperError, result: "killed by signal 11 (segmentation fault)"},
	{name: "descriptors closed", body: "import os; os.closerange(1, 64); return {}", status: forerun.DeveloperError, result: "exited unexpectedly"},
	{name: "nonsense in place of the result", body: "import os\n    for fd in range(3, 64):\n        try: os.write(fd, b'\\x12\\xff\\xff\\xff\\xff\\xff\\xff\\xff')\n        except OSError: pass\n    import time; time.sleep(60)", status: forerun.DeveloperError, result: "exceeded the allowed length: 4294967295 > 6291456"},
	{name: "a frame of the server's", body: "import os\n    for fd in range(3, 64):\n        try: os.write(fd, b'\\x11\\0\\0\\0\\0\\0\\0\\0')\n        except OSError: pass\n    import time; time.sleep(60)", status: forerun.DeveloperError, result: "a frame of type 17 is not a handler's to send"},
	{name: "crash with a child", body: "import os, time\n    if os.fork() == 0: time.sleep(60)\n    os._exit(4)", status: forerun.DeveloperError, result: "status 4"},
	{name: "the child returns too", body: "import os\n    pid = os.fork()\n    return {'pid': pid > 0}", status: forerun.Success, result: `{"pid":true}`},
	{name: "thread that lives on", body: "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); return {'x': 1}", result: `{"x":1}`},
	{name: "process that lives on", body: "import subprocess; subprocess.Popen(['/bin/sleep', '60']); return {'x': 1}", result: `{"x":1}`},
	{
		name: "subprocess", body: "import subprocess; return {'code': subprocess.run(['/bin/sh', '-c', 'echo from the shell; exit 3']).returncode}",
		result: `{"code":3}`, log: "stdout: from the shell",
	},
	{name: "interrupt to all", body: "import os, signal; os.kill(1 if os.getppid() == 1 else os.getppid(), signal.SIGINT); return {'x': 1}", result: `{"x":1}`},
	{name: "replaced stdout", body: "import io, sys; sys.stdout = io.StringIO(); print('x'); return {'x': 1}", result: `{"x":1}`},
	{name: "closed stdout", body: "import sys; sys.stdout.close(); return {'x': 1}", result: `{"x":1}`},
	{name: "output without an end", body: "print('a\\nb', end=''); return {}", result: `{}`, log: "stdout: a\nstdout: b"},
	{name: "odd output", body: "import os; os.write(1, b'\\xff\\xfe\\n'); print('\\ud800'); return {}", result: `{}`, log: "stdout: \ufffd\nstdout: \\ud800"},
	{
		name: "timeout", body: "print('busy')\n    while True: pass", status: forerun.DeveloperError,
		result: `{"error":"The action exceeded its time limits of 2000 milliseconds."}`, log: "stdout: busy", limits: func(l *forerun.Limits) { l.Timeout = 2000 },
	},
	{
		name: "log flood", body: "print('0123456789' * 10)\n    print('x' * (1 << 20))\n    print('unseen'); return {}", result: `{}`,
		log: "Logs were truncated because the total bytes size exceeds the limit of 1048576 bytes.", limits: func(l *forerun.Limits) { l.Logs = 1 },
	},
	{name: "coroutine", body: "import asyncio\n    async def later():\n        await asyncio.sleep(0); return {'x': 1}\n    return later()", result: `{"x":1}`},
	{name: "files left", body: "import os\n    seen = [p for p in ('/tmp/x', '/dev/shm/x', '/action/x') if os.path.exists(p)]\n    for p in ('/tmp/x', '/dev/shm/x', '/action/x'):\n        try: open(p, 'w').close()\n        except OSError: pass\n    return {'seen': seen}", real: true, result: `{"seen":[]}`},
	{name: "odd exception", body: "class E(Exception):\n        def __str__(self): raise KeyError\n    raise E", status: forerun.DeveloperError, result: "An error has occurred: E."},
}

func source(body string) string {
	return "def main(args):\n  if 'way' in args:\n    " + body + "\n  return {'ok': True}\n"
}

func TestWaysToEnd(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			if way.real {
				t.Skip("in real sandboxes only")
			}
			checkWay(newRig(t, single), way.body, way.status, way.result, way.log, way.limits)
		})
	}
}

func checkWay(g *rig, body string, status forerun.Status, result, log string, limits func(*forerun.Limits)) {
	g.t.Helper()
	a := action(source(body))
	if limits != nil {
		limits(&a.Limits)
	}
	for range 2 {
		end := g.call(a, `{"way":true}`)
		if end.Status != status || !strings.Contains(string(end.Result), result) {
			g.t.Errorf("%v %.300s; want %v %s", end.Status, end.Result, status, result)
		}
		if got := texts(end.Logs); !strings.Contains(got, log) {
			g.t.Errorf("the log is %.300q; want %q", got, log)
		}
		if end.TimedOut != (body == "print('busy')\n    while True: pass") {
			g.t.Errorf("TimedOut is %v", end.TimedOut)
		}
		if end = g.call(a, `{}`); string(end.Result) != `{"ok":true}` || len(end.Logs) > 0 {
			g.t.Errorf("the next activation: %v %s %q", end.Status, end.Result, end.Logs)
		}
	}
}

// loads are ways in which loading the code can fail.
var loads = []struct{ name, code, result, log string }{
	{"syntax", "def main(args):\n  return {\n", "Initialization has failed: SyntaxError:", "stderr:   File \"/action/__main__.py\", line 2"},
	{"exception", "import nothing_of_this_name\n", "Initialization has failed: ModuleNotFoundError: No module named 'nothing_of_this_name'. See the logs for details. Forerun installs no packages: put them in the function's folder (docs/guide/dependencies.md).", "line 1, in <module>"},
	{"no main", "def other(args): return {}\n", "Initialization has failed: the code has no function named 'main': write def main(args)", ""},
	{"main is no function", "main = 3\n", "'main' is a int, not a function", ""},
	{"exit", "import os; print('leaving'); os._exit(0)\n", "the process exited while it loaded the code", "stdout: leaving"},
	{"sys.exit", "import sys; sys.exit(1)\n", "Initialization has failed: SystemExit: 1.", ""},
	{"forever", "print('x')\nwhile True: pass\n", "The action exceeded its time limits of 3000 milliseconds during initialization.", "stdout: x"},
	{"control closed", "import os; os.close(3)\ndef main(args): return {}\n", "the process exited while it loaded the code", ""},
	{"control misused", "import os; os.write(3, b'\\xff' * 64)\ndef main(args): return {}\n", "the process exited while it loaded the code", ""},
}

func TestCodeThatCannotBeLoaded(t *testing.T) {
	for _, l := range loads {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, nil)
			a := action(l.code)
			if l.name == "forever" {
				a.Limits.Timeout = 3000
			}
			end := g.call(a, `{}`)
			if end.Status != forerun.DeveloperError || !strings.Contains(string(end.Result), l.result) {
				t.Errorf("%v %s; want %s", end.Status, end.Result, l.result)
			}
			if got := texts(end.Logs); !strings.Contains(unfolder(got), l.log) {
				t.Errorf("the log is %q; want %q", got, l.log)
			}
		})
	}
}

// unfolder writes the folder of a test's sandbox as one sees it inside a real one.
func unfolder(log string) string {
	before, after, ok := strings.Cut(log, `File "`)
	_, after, found := strings.Cut(after, "/action/")
	if !ok || !found {
		return log
	}
	return before + `File "/action/` + unfolder(after)
}

func TestKindsAndCodeThatCannotBe(t *testing.T) {
	g := newRig(t, nil)
	a := action("")
	a.Exec.Kind = "cobol:74"
	if end := g.call(a, `{}`); end.Status != forerun.DeveloperError || !strings.Contains(string(end.Result), "cobol:74") {
		t.Errorf("%v %s", end.Status, end.Result)
	}
	a = action("def main(args): return {}")
	a.Limits.Memory = 1 << 20
	if end := g.call(a, `{}`); end.Status != forerun.DeveloperError || !strings.Contains(string(end.Result), "over the 16384 MiB") {
		t.Errorf("%v %s", end.Status, end.Result)
	}
	a = action("~~~")
	a.Exec.Binary = true
	if end := g.call(a, `{}`); end.Status != forerun.DeveloperError || !strings.Contains(string(end.Result), "base64") {
		t.Errorf("%v %s", end.Status, end.Result)
	}
	a.Exec.Code = base64.StdEncoding.EncodeToString([]byte("no archive"))
	if end := g.call(a, `{}`); end.Status != forerun.DeveloperError || !strings.Contains(string(end.Result), "zip file") {
		t.Errorf("%v %s", end.Status, end.Result)
	}
	g.maker.fail = fmt.Errorf("no memory for it")
	if end := g.call(action("def main(args): return {}"), `{}`); end.Status != forerun.InternalError || strings.Contains(string(end.Result), "memory") {
		t.Errorf("%v %s", end.Status, end.Result)
	}
}

// TestBlockingOutput: how an activation has its output wait is not the next one's, whose pipes are the same.
func TestBlockingOutput(t *testing.T) {
	g := newRig(t, single)
	a := action("import os\ndef main(args):\n  waits = [os.get_blocking(fd) for fd in (1, 2)]\n  for fd in (1, 2): os.set_blocking(fd, False)\n  return {'waits': waits}")
	for range 2 {
		g.expect(a, `{}`, `{"waits":[true,true]}`)
	}
}
