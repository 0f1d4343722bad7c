package worker

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// The actions below look for traces of another activation, leave their own, and answer the traces that they found.
const (
	pythonLeaves = `
    folders = ("/tmp", "/dev/shm", ".")
    saw = [f + "/" + n for f in folders for n in os.listdir(f) if n.startswith("left")]
    for f in folders:
        try: open(f + "/left", "w").write(a["word"])
        except OSError: pass
    ready(); return " ".join(saw)`
	nodeLeaves = `(async () => {
  const fs = require("fs"), folders = ["/tmp", "/dev/shm", "."]
  const saw = folders.flatMap(f => fs.readdirSync(f).filter(n => n.startsWith("left")).map(n => f + "/" + n))
  for (const f of folders) try { fs.writeFileSync(f + "/left", a.word) } catch {}
  await ready(); return saw.join(" ")
})()`
)

// TestActivationsAheadAreApart: one that runs ahead does not see the files of another, be that ahead as well, squashed or promoted.
func TestActivationsAheadAreApart(t *testing.T) {
	for name, a := range inLanguages(pythonLeaves, nodeLeaves) {
		t.Run(name, func(t *testing.T) {
			if discover().Check(a.Exec.Kind) != nil {
				t.Skip("this machine does not have the language")
			}
			g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 })
			d := &desk{waits: make(chan chan struct{}, 64), cut: make(chan struct{}, 64)}
			g.ServeAPI(d)
			f := apart{g, d, a}
			for range 3 {
				squashed, _, _ := f.begin(true)
				promoted, said, leave := f.begin(true) // the other one has left its files, and is there still
				g.Squash(squashed.Activation)
				await(t, d.cut, "no function gives up its request")
				f.call()
				g.Promote(promoted.Activation)
				close(leave)
				f.end(said)
				f.call()
				f.call()
			}
		})
	}
}

type apart struct {
	*rig
	desk *desk
	a    *forerun.Action
}

// desk is an API at which each request waits for its own leave.
type desk struct {
	waits chan chan struct{}
	cut   chan struct{} // clients that went
}

func (d *desk) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	leave := make(chan struct{})
	d.waits <- leave
	select {
	case <-leave:
	case <-r.Context().Done():
		d.cut <- struct{}{}
	}
}

// next is the leave of the next request.
func (f *apart) next() chan struct{} {
	f.t.Helper()
	return await(f.t, f.desk.waits, "no function asks the API anything")
}

// begin has an activation leave its files. It ends when leave is closed.
func (f *apart) begin(ahead bool) (r *forerun.Run, h *heard, leave chan struct{}) {
	if ahead {
		r, h = f.ahead(f.a, `{"word":"x"}`)
	} else {
		r, h = f.rig.begin(f.a, `{"word":"x"}`)
	}
	close(f.next())
	return r, h, f.next()
}

func (f *apart) end(h *heard) {
	f.t.Helper()
	if end := f.wait(h); string(end.Result) != `{"got":""}` {
		f.t.Errorf("an activation has seen the files of another: %s; logs %q", end.Result, end.Logs)
	}
}

func (f *apart) call() {
	f.t.Helper()
	_, h, leave := f.begin(false)
	close(leave)
	f.end(h)
}

// inherited are things that a module opens when it is loaded, and that its handlers inherit: how one of them changes it, and how
// another could see that.
var inherited = map[string]struct {
	module, change, look string
	waits                bool // whoever runs ahead: it cannot be kept apart
}{
	"shared memory":   {"import mmap; kept = mmap.mmap(-1, 4096)", "kept[0] = 1", "kept[0]", true},
	"a file to write": {"kept = open('/tmp/kept', 'w+b', buffering=0)", "kept.write(b'x')", "kept.seek(0, 1)", true},
	"a file to read":  {"kept = open('/usr/lib/os-release', 'rb', buffering=0); kept.read(2)", "kept.read(3)", "kept.tell()", false},
	"its input": {
		"f = os.open('/usr/lib/os-release', os.O_RDONLY); os.dup2(f, 0); os.close(f)", "os.read(0, 3)", "os.lseek(0, 0, os.SEEK_CUR)", false,
	},
	"its input, to write": {
		"f = os.open('/tmp/kept', os.O_RDWR | os.O_CREAT); os.dup2(f, 0); os.close(f)", "os.write(0, b'x')", "os.lseek(0, 0, os.SEEK_CUR)", true,
	},
	"a lock on it": {
		"import fcntl; kept = open('/usr/lib/os-release')", "fcntl.flock(kept, fcntl.LOCK_EX)",
		"fcntl.flock(open('/usr/lib/os-release'), fcntl.LOCK_EX | fcntl.LOCK_NB)", false,
	},
	"a folder": {"kept = os.open('/action', os.O_RDONLY)", "os.lseek(kept, 1, os.SEEK_SET)", "os.lseek(kept, 0, os.SEEK_CUR)", false},
	"a lock on a folder": {
		"import fcntl; kept = os.open('/usr/lib', os.O_RDONLY)", "fcntl.flock(kept, fcntl.LOCK_EX)",
		"(f := os.open('/usr/lib', os.O_RDONLY), fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB), os.close(f))", false,
	},
	"a file of its own to read": {
		"open('/tmp/kept', 'wb').write(b'a'); kept = open('/tmp/kept', 'rb', buffering=0)",
		"open('/proc/self/fd/%d' % kept.fileno(), 'r+b').write(b'x')", "os.pread(kept.fileno(), 1, 0)", true,
	},
	"a memory file to read": {
		"f = os.memfd_create('kept'); os.write(f, b'a'); kept = os.open('/proc/self/fd/%d' % f, os.O_RDONLY); os.close(f)",
		"open('/proc/self/fd/%d' % kept, 'r+b').write(b'x')", "os.pread(kept, 1, 0)", true,
	},
	"shared memory to read": {
		"libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p; kept = libc.mmap(None, ctypes.c_size_t(4096), 1, 0x21, -1, ctypes.c_long(0))",
		"libc.mprotect(ctypes.c_void_p(kept), ctypes.c_size_t(4096), 3); ctypes.memset(kept, 1, 1)", "ctypes.string_at(kept, 1)", true,
	},
	"its output's signals": {
		"import fcntl", "fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_ASYNC)", "fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ASYNC", false,
	},
	"a pipe": {"kept = os.pipe(); os.set_blocking(kept[0], False)", "os.write(kept[1], b'x')", "os.read(kept[0], 1)", true},
	"a socket": {
		"import socket; kept = socket.socketpair(); kept[0].setblocking(False)", "kept[1].send(b'x')", "kept[0].recv(1)", false,
	},
	"an epoll": {
		"import select; kept = select.epoll(); ends = os.pipe()", "kept.register(ends[1], select.EPOLLOUT)", "kept.poll(0)", true,
	},
	"an event loop": {"import asyncio; kept = asyncio.new_event_loop()", "kept.call_soon(print)", "len(kept._ready)", false},
	"a thread": {
		"import threading, time; kept = []\ndef work():\n  while True:\n    if os.path.exists('/tmp/left'): kept.append(1)\n    time.sleep(0.001)\nthreading.Thread(target=work, daemon=True).start()",
		"open('/tmp/left', 'w')", "len(kept) > 0", true,
	},
	"a signal": {
		"import signal; kept = []; signal.signal(signal.SIGUSR1, lambda *_: kept.append(1))", "os.kill(1, signal.SIGUSR1)", "kept", false,
	},
	"a variable": {"kept = []", "kept.append(1)", "kept", false},
}

// TestInheritedStateIsApart: an activation that runs ahead changes nothing for the next one by what both inherit; where that cannot be
// told it begins when it is promoted.
func TestInheritedStateIsApart(t *testing.T) {
	for name, c := range inherited {
		t.Run(name, func(t *testing.T) {
			sandboxes := 1
			if c.waits {
				sandboxes = 2 // one is for another action
			}
			g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = sandboxes })
			calls := newCalls(t)
			g.ServeAPI(calls)
			text := strings.Replace(pythonHeader, "    EFFECT", "    pass", 1) + fmt.Sprintf(
				"%s\ndef main(a):\n    try: seen = str(%s)\n    except Exception as e: seen = type(e).__name__\n    if a:\n        try: %s\n        except OSError: pass\n        ready()\n    return {'seen': seen}\n",
				c.module, c.look, c.change)
			a := action(text)
			before := g.call(a, `{}`)
			for range 2 {
				r, h := g.ahead(a, `{"change":true}`)
				if c.waits {
					other := *a
					other.Exec.Code += "\n"
					if g.call(&other, `{}`); len(h.started) > 0 {
						t.Error("it has begun although it could be seen")
					}
					g.Squash(r.Activation)
				} else {
					calls.next()
					g.Squash(r.Activation)
					calls.nextCut()
				}
				if after := g.call(a, `{}`); string(after.Result) != string(before.Result) || after.Status != forerun.Success {
					t.Errorf("a squashed activation has changed %s to %s; logs %q", before.Result, after.Result, after.Logs)
				}
			}
			r, h := g.ahead(a, `{"change":true}`)
			if c.waits {
				g.Promote(r.Activation)
			}
			calls.next()
			g.Promote(r.Activation)
			calls.answer <- "go"
			if end := g.wait(h); end.Status != forerun.Success {
				t.Errorf("a promoted one: %s; logs %q", end.Result, end.Logs)
			}
		})
	}
}

// TestInheritedStateOfCodeLoadedAhead: files that code opens are looked for also if only speculative activations had it loaded.
func TestInheritedStateOfCodeLoadedAhead(t *testing.T) {
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 })
	a := action("kept = open('/tmp/kept', 'w+b', buffering=0)\ndef main(a):\n    kept.write(b'x')\n    return {}\n")
	other := *a
	other.Exec.Code += "\n"
	for range 3 {
		r, h := g.ahead(a, `{}`)
		g.call(&other, `{}`)
		if len(h.started) > 0 {
			t.Error("it has begun although it could be seen")
		}
		g.Promote(r.Activation)
		g.wait(h)
	}
}

// TestSharedLockOfWhoWasCutOff: a lock that the code shares since it was loaded is free again after its holder was cut off.
func TestSharedLockOfWhoWasCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		loading string
		starts  int64
	}{
		"shared": {"import multiprocessing, os, time; lock = multiprocessing.Lock()", 3},
		"not":    {"import os, threading, time; lock = threading.Lock()", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newNativeRig(t, single)
			a := action(c.loading + "\ndef main(a):\n  with lock: exec(a.get('do', ''))\n  return {}\n")
			a.Limits.Timeout = 4000 // in which it is loaded, on a busy machine too
			for _, do := range []string{"time.sleep(100)", "os.kill(os.getpid(), 9)"} {
				g.call(a, `{"do":"`+do+`"}`)
				g.expect(a, `{}`, `{}`)
			}
			g.expect(a, `{"do":"1 / 0"}`, `{"error":"An error has occurred: ZeroDivisionError: division by zero. See the logs for details."}`)
			g.expect(a, `{}`, `{}`)
			if s := g.Stats(); s.ColdStarts != c.starts {
				t.Errorf("%d sandboxes were started, not %d", s.ColdStarts, c.starts)
			}
		})
	}
}
