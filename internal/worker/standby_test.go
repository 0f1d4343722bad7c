package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// counting is a Node function whose process counts what it served, loaded with a line in the log.
func counting(t *testing.T, loading string) *forerun.Action {
	t.Helper()
	if discover().Check("nodejs:default") != nil {
		t.Skip("this machine has no Node")
	}
	a := action(loading + `
console.log("loaded")
let n = 0
exports.main = a => a.stay ? new Promise(() => setTimeout(() => 0, 1e8)) : {n: ++n, pid: process.pid}`)
	a.Exec.Kind = "nodejs:default"
	return a
}

// standbyRig has one sandbox, in which the action was called and squashed.
type standbyRig struct {
	*rig
	a *forerun.Action
}

func newStandbyRig(t *testing.T, a *forerun.Action) standbyRig {
	g := standbyRig{newNativeRig(t, withStore(t)), a}
	g.call(a, `{}`)
	g.squash()
	g.expectCount(1, 0) // a process that was started anew
	return g
}

// squash squashes an activation that runs.
func (g standbyRig) squash() {
	r, h := g.ahead(g.a, `{"stay":true}`)
	g.begun(h)
	g.Squash(r.Activation)
}

// sandbox is the only one.
func (g standbyRig) sandbox() *pooledSandbox {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.pools {
		return p.sandboxes[0]
	}
	g.t.Fatal("there is no sandbox")
	return nil
}

// second waits for the process that comes after the one that serves, and returns its id.
func (g standbyRig) second(serving int) int {
	g.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s := g.sandbox().upcoming.Load(); s.pid != serving && s.isReady() {
			return s.pid
		}
	}
	g.t.Fatal("no second process was loaded")
	return 0
}

// awaitSecond waits for it a while, where there may be none.
func (g standbyRig) awaitSecond(serving int) {
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s := g.sandbox().upcoming.Load(); s.pid != serving && s.isReady() {
			return
		}
	}
}

// expectCount calls the function: its process must have served as many, and be the one of that id, if one is given.
func (g standbyRig) expectCount(n, pid int) (serving int) {
	g.t.Helper()
	end := g.call(g.a, `{}`)
	var got struct{ N, PID int }
	if err := json.Unmarshal(end.Result, &got); err != nil {
		g.t.Fatal(err)
	}
	if got.N != n || pid != 0 && got.PID != pid || len(end.Logs) > 0 {
		g.t.Errorf("%s with the log %q; want n = %d of process %d", end.Result, end.Logs, n, pid)
	}
	return got.PID
}

// TestModuleIsLoadedAgain: the source text of an ES module is a file in the folder of the code, which is read-only by then.
func TestModuleIsLoadedAgain(t *testing.T) {
	a := counting(t, "")
	a.Exec.Code = strings.Replace(a.Exec.Code, "exports.main =", "export const main =", 1)
	g := newStandbyRig(t, a)
	g.expectCount(2, 0)
}

// countingNative is the same as a native program. What one prints that is started anew is in the log of its first activation.
func countingNative(loading string) *forerun.Action {
	return keptAction(loading, "if value.get('stay'): time.sleep(1000)\nanswer = {'n': n, 'pid': os.getpid()}")
}

func TestStandbyTakesOver(t *testing.T) {
	for name, a := range map[string]func() *forerun.Action{
		"Node":   func() *forerun.Action { return counting(t, "") },
		"native": func() *forerun.Action { return countingNative("") },
		// A process that was loaded beside another keeps its connections when it takes over, and gets those that the other had.
		"Node that connects":   func() *forerun.Action { return askingNode(t) },
		"native that connects": askingNative,
	} {
		t.Run(name, func(t *testing.T) {
			g := newStandbyRig(t, a())
			serving := g.expectCount(2, 0)
			for range 3 {
				second := g.second(serving)
				g.expectCount(3, serving)
				g.squash()
				serving = g.expectCount(1, second)
				g.expectCount(2, serving)
			}
			if s := g.Stats(); s.ColdStarts != 1 {
				t.Errorf("%d sandboxes were started", s.ColdStarts)
			}
		})
	}
}

// TestStandbyExecutesNothing: a program that goes on by itself sees and leaves nothing while another's activations run.
func TestStandbyExecutesNothing(t *testing.T) {
	a := countingNative(`
import threading
def work():
    while True:
        try: open('/tmp/%d' % os.getpid(), 'w').close()
        except OSError: pass
threading.Thread(target=work, daemon=True).start()`)
	g := newStandbyRig(t, a)
	serving := g.expectCount(2, 0)
	second := g.second(serving)
	g.expectCount(3, serving)
	before := g.sandbox().standing.Load()
	if before == nil || before.pid != second || !before.stopped {
		t.Fatalf("%+v stands by", before)
	}
	stat := func() string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", before.hostPID))
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(b))
		return strings.Join([]string{f[2], f[13], f[14]}, " ") // state, and its time on the processors
	}
	first := stat()
	g.expectCount(4, serving)
	if last := stat(); first != last || first[0] != 'T' {
		t.Errorf("it was %q, and then %q", first, last)
	}
	g.squash()
	g.expectCount(1, second)
}

// TestStandbyThatStartsOthers: only the process itself is stopped, so there is but one.
func TestStandbyThatStartsOthers(t *testing.T) {
	g := newStandbyRig(t, countingNative("if os.fork() == 0: time.sleep(1000)"))
	serving := g.expectCount(2, 0)
	second := g.second(serving)
	g.expectCount(3, serving)
	if g.sandbox().standing.Load() != nil {
		t.Error("one is kept that has a child")
	}
	g.squash()
	if now := g.expectCount(1, 0); now == second {
		t.Error("a process that has a child took over")
	}
}

// TestStandbyIsNotConnected: whichever of the two processes has the name that the other connects to, the one that takes over has not
// heard what the one that was squashed sent; nor does the first meet another.
func TestStandbyIsNotConnected(t *testing.T) {
	for who, has := range map[string]string{"the first": "not others", "the second": "others"} {
		t.Run(who, func(t *testing.T) {
			g := newStandbyRig(t, keptAction(`
import socket
others = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]
mine, s, peers = `+has+`, socket.socket(socket.AF_UNIX), []
if mine:
    s.bind('\0me')
    s.listen()
s.setblocking(False)
def meet():
    try:
        if mine: peers.append(s.accept()[0])
        elif not peers: peers.append(s.connect('\0me') or s)
    except OSError: pass
def exchange(p):
    p.setblocking(False)
    try: answer['heard'] = p.recv(9).decode()
    except OSError: pass
    try: p.send(b'x')
    except OSError: pass
meet()`, `
meet()
for p in peers: exchange(p)
if value.get('stay'): time.sleep(1000)
answer.update(n=n, pid=os.getpid())`))
			g.awaitSecond(g.expectCount(2, 0))
			for _, when := range []string{"beside the second", "in the place of the first"} {
				if end := g.call(g.a, `{}`); strings.Contains(string(end.Result), "heard") {
					t.Errorf("%s: %s", when, end.Result)
				}
				g.squash()
			}
		})
	}
}

// TestStandbyFindsNoFile: files that the first process left in the folders are not there when the second is loaded: in a file that both have
// open the one would tell the other.
func TestStandbyFindsNoFile(t *testing.T) {
	a := keptAction(`
import threading
found = os.path.exists('/tmp/x')
def work():
    while True:
        open('/tmp/x', 'w').close()
        time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()`, `
if value.get('stay'): time.sleep(1000)
answer = {'found': found, 'n': n, 'pid': os.getpid()}`)
	g := newStandbyRig(t, a)
	serving := g.expectCount(2, 0)
	second := g.second(serving)
	g.expectCount(3, serving)
	g.squash()
	g.expect(a, `{}`, fmt.Sprintf(`{"found":false,"n":1,"pid":%d}`, second))
}

// TestStandbyThatEndedIsLoadedAgain: that it came to an end once, while it was loaded, says nothing of what is loaded later.
func TestStandbyThatEndedIsLoadedAgain(t *testing.T) {
	g := newStandbyRig(t, counting(t, `const end = Date.now() + 200; while (Date.now() < end);`))
	serving := g.expectCount(2, 0)
	b := g.sandbox()
	until(t, b.forking.Load, "no other is loaded, or was before that was looked at")
	until(t, func() bool { b.leaveFirst(); return !b.forking.Load() }, "it did not end")
	g.expectCount(3, serving)
	until(t, func() bool { return b.standing.Load() != nil }, "no other is loaded after it")
}

// askingNode is a function that asks over a connection from when it was loaded, and counts if it is answered.
func askingNode(t *testing.T) *forerun.Action {
	a := counting(t, `
const connection = require("net").connect(6379, "127.0.0.1")
const asked = () => new Promise(resolve => {
	connection.once("close", () => resolve("closed")).once("data", data => resolve(String(data)))
	connection.write("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
})`)
	a.Exec.Code += `
const count = exports.main
exports.main = async a => a.stay || await asked() === "$-1\r\n" ? count(a) : {}`
	return a
}

// askingNative is the same as a native program.
func askingNative() *forerun.Action {
	return keptAction(`
import socket
connection = socket.create_connection(('127.0.0.1', 6379))
def asked():
    connection.sendall(b'*2\r\n$3\r\nGET\r\n$1\r\nk\r\n')
    return connection.recv(100).decode()`,
		"if value.get('stay'): time.sleep(1000)\nanswer = {'n': n, 'pid': os.getpid()} if asked() == '$-1\\r\\n' else {}")
}

// TestSquashedWhileReplaced: a squash that comes as the process of an activation before is replaced, which was connected with the
// outside, leaves what is loaded in its place: the next activation has one that is whole.
func TestSquashedWhileReplaced(t *testing.T) {
	o := newOutside(t)
	a := counting(t, `const end = Date.now() + 200; while (Date.now() < end);`)
	a.Exec.Code += fmt.Sprintf(`
const count = exports.main
let kept
exports.main = a => a.connect ? new Promise(resolve => { kept = require("net").connect(%d, %q, () => resolve(count(a))) }) : count(a)`,
		o.TCP("kept"), o.host)
	g := standbyRig{newNativeRig(t, single), a}
	for n := range 3 {
		if end := g.call(a, `{"connect":true}`); end.Status != forerun.Success {
			t.Fatalf("%s %q", end.Result, end.Logs)
		}
		b := g.sandbox()
		r, _ := g.ahead(a, `{}`)
		until(t, b.forking.Load, "the process is not replaced")
		time.Sleep(time.Duration(n) * 80 * time.Millisecond)
		g.Squash(r.Activation)
		g.expectCount(1, 0)
	}
}

// TestConnectionOfLoadingServes: a connection that a process makes while its code is loaded serves its activations, also if it
// takes the place of one that was squashed.
func TestConnectionOfLoadingServes(t *testing.T) {
	a := counting(t, `const c = require("net").connect(6379, "127.0.0.1")`)
	a.Exec.Code += `
const serve = exports.main
exports.main = a => a.stay ? serve(a) : new Promise(resolve => {
	c.on("close", () => resolve({said: "closed"})).on("data", data => resolve({said: String(data)}))
	c.write("*1\r\n$4\r\nPING\r\n")
})`
	g := standbyRig{newNativeRig(t, single), a}
	for range 3 {
		for range 2 {
			if end := g.call(a, `{}`); string(end.Result) != `{"said":"+PONG\r\n"}` {
				t.Fatalf("%s %q", end.Result, end.Logs)
			}
		}
		g.squash()
	}
}

// TestStandbyIsNotLoadedBesideAnActivation: an activation that comes while the standby is loaded has the sandbox to itself.
func TestStandbyIsNotLoadedBesideAnActivation(t *testing.T) {
	g := newStandbyRig(t, counting(t, `const end = Date.now() + 200; while (Date.now() < end);`))
	serving := g.expectCount(2, 0)
	for n := 3; n < 6; n++ {
		b := g.sandbox()
		until(t, func() bool { return b.forking.Load() || b.standing.Load() != nil }, "no second process is loaded, nor was there in time")
		g.expectCount(n, serving)
	}
	g.squash()
	g.expectCount(1, 0)
}

// TestRoomForStandby: an activation and the second process must fit together, or the sandbox could never be used again.
func TestRoomForStandby(t *testing.T) {
	for mib, want := range map[int]bool{256: false, 265: false, 266: true} {
		s := newShop(t, mib)
		b := s.idleSandboxes("guest", "a", 1, 10, 0).sandboxes[0]
		b.sandbox = &process{}
		if got := b.roomForStandby(); got != want {
			t.Errorf("with %d MiB: %v", mib, got)
		}
		if r := (&run{Run: &forerun.Run{}, pool: b.pool()}); !s.give(b.pool(), r) {
			t.Errorf("with %d MiB the sandbox cannot be used any more", mib)
		}
	}
}

// TestRoomForBothProcesses: speculative activations make way also for the memory that the second process may use.
func TestRoomForBothProcesses(t *testing.T) {
	s := newShop(t, 300)
	p := s.idleSandboxes("guest", "a", 1, 10, time.Minute)
	p.sandboxes[0].second.bytes = 20 << 20
	s.charge(s.newSandbox(p.language), 30<<20)
	s.wait(p, time.Second)
	if s.give(p, p.queue[0]) || !s.lacksRoom(p, time.Now()) {
		t.Error("it waits for room, and none is made")
	}
}
