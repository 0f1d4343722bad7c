package worker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
)

// pythonEffects are ways of a Python function to tell the outside its word: each is a function of its arguments.
var pythonEffects = map[string]string{
	"TLS": `
    conn = http.client.HTTPSConnection(a["host"], a["tls"], context=ssl._create_unverified_context())
    conn.request("GET", "/" + a["word"]); return conn.getresponse().read().decode()`,
	"UDP": `
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(a["word"].encode(), (a["host"], a["udp"])); return s.recv(100).decode()`,
	"UDP without an answer": `
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(a["word"].encode(), (a["host"], a["udp"])); return a["word"]`,
	"keep-alive": `
    global kept
    if kept is None: kept = socket.create_connection((a["host"], a["tcp"]))
    os.write(kept.fileno(), a["word"].encode() + b"\n"); return kept.recv(100).decode()`,
	"thread": `
    got = []
    def work():
        s = socket.create_connection((a["host"], a["tcp"])); s.sendall(a["word"].encode() + b"\n"); got.append(s.recv(100).decode())
    t = threading.Thread(target=work); t.start(); t.join(); return got[0]`,
	"sendmmsg": `
    name = struct.pack("=H", socket.AF_INET) + struct.pack("!H", a["udp"]) + socket.inet_aton(a["host"]) + bytes(8)
    text = ctypes.create_string_buffer(a["word"].encode()); part = struct.pack("PL", ctypes.addressof(text), len(a["word"]))
    to, parts = ctypes.create_string_buffer(name), ctypes.create_string_buffer(part)
    one = ctypes.create_string_buffer(struct.pack("PIPLPLiI", ctypes.addressof(to), len(name), ctypes.addressof(parts), 1, 0, 0, 0, 0) + bytes(8))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); sent = ctypes.CDLL(None, use_errno=True).sendmmsg(s.fileno(), one, 1, 0)
    return s.recv(100).decode() if sent == 1 else os.strerror(ctypes.get_errno())`,
	"inherited descriptor": `
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        s = socket.create_connection((a["host"], a["tcp"])); socket.send_fds(theirs, [b"x"], [s.fileno()]); os._exit(0)
    s = socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0]); s.sendall(a["word"].encode() + b"\n"); return s.recv(100).decode()`,
	"io_uring or else TCP": `
    ring = ctypes.CDLL(None, use_errno=True).syscall(425, 1, None)
    s = socket.create_connection((a["host"], a["tcp"])); s.sendall((a["word"] if ring < 0 else "ring").encode() + b"\n"); return s.recv(100).decode()`,
	"child": `
    return subprocess.run([sys.executable, "-c", "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); s.sendall(sys.argv[3].encode()); print(s.recv(100).decode())",
        a["host"], str(a["tcp"]), a["word"]], stdout=subprocess.PIPE, check=True).stdout.decode()`,
}

const pythonHeader = `
import ctypes, http.client, json, os, socket, ssl, struct, subprocess, sys, threading
kept = None
def ready():
    s = socket.create_connection(("127.0.0.1", 3233)); s.sendall(b"GET /ready HTTP/1.0\r\n\r\n"); s.recv(1000)
def effect(a):
    EFFECT
`

const pythonBody = "def main(a):\n    ready()\n    return {'got': effect(a).strip()}\n"

// nodeEffects are the same in Node: expressions of promises.
var nodeEffects = map[string]string{
	"TLS": `new Promise((yes, no) => https.get({host: a.host, port: a.tls, path: "/" + a.word, rejectUnauthorized: false, agent: keeping}, r => {
    let text = ""; r.on("data", d => text += d); r.on("end", () => yes(text)) }).on("error", no))`,
	"UDP":        `new Promise(yes => { const s = dgram.createSocket("udp4"); s.on("message", m => { s.close(); yes(String(m)) }); s.send(a.word, a.udp, a.host) })`,
	"keep-alive": `new Promise((yes, no) => { if (!kept) kept = net.connect(a.tcp, a.host).on("error", no); kept.once("data", d => yes(String(d))); kept.write(a.word + "\n") })`,
	"child": `new Promise((yes, no) => require("child_process").execFile(process.execPath, ["-e",
    "const [host, port, word] = process.argv.slice(1); const s = require('net').connect(port, host); s.on('data', d => { console.log(String(d)); s.end() }); s.write(word + '\\n')",
    a.host, a.tcp, a.word], (error, out) => error ? no(error) : yes(out)))`,
	"worker thread": `new Promise((yes, no) => new threads.Worker(
    "const t = require('worker_threads'), net = require('net'); const a = t.workerData; const s = net.connect(a.tcp, a.host); s.on('data', d => { t.parentPort.postMessage(String(d)); s.end() }); s.write(a.word + '\\n')",
    {eval: true, workerData: a}).on("message", yes).on("error", no))`,
}

const nodeHeader = `
const http = require("http"), https = require("https"), net = require("net"), dgram = require("dgram"), threads = require("worker_threads")
const keeping = new https.Agent({keepAlive: true})
let kept
const ready = () => new Promise((yes, no) => http.get({host: "127.0.0.1", port: 3233, path: "/ready", agent: false}, r => r.on("data", () => 0).on("end", yes)).on("error", no))
exports.main = async a => { await ready(); return {got: (await effect(a)).trim()} }
const effect = a => EFFECT
`

// guarded are the actions of the matrix: a language and one of its effects each.
func guarded() map[string]*forerun.Action {
	all := map[string]*forerun.Action{}
	for name, effect := range pythonEffects {
		all["Python "+name], all["native "+name] = inPython(effect), inNative(effect)
		all["kept Python "+name] = keep(inPython(effect))
	}
	for name, effect := range nodeEffects {
		all["Node "+name] = inNode(effect)
	}
	return all
}

// inLanguages are the actions of an effect in Python, which native programs have too, and in Node.
func inLanguages(python, node string) map[string]*forerun.Action {
	return map[string]*forerun.Action{
		"Python": inPython(python), "kept Python": keep(inPython(python)), "native": inNative(python), "Node": inNode(node),
	}
}

// keep has the process of a Python action serve one activation after the other.
func keep(a *forerun.Action) *forerun.Action {
	a.Annotations = append(slices.Clone(a.Annotations), forerun.KeyValue{Key: keepProcess, Value: json.RawMessage("true")})
	return a
}

func inPython(effect string) *forerun.Action {
	return action(strings.Replace(pythonHeader, "    EFFECT", effect, 1) + pythonBody)
}

func inNative(effect string) *forerun.Action {
	a := keptAction("", "ready()\nanswer = {'got': effect(value).strip()}")
	text := strings.Replace(pythonHeader, "    EFFECT", effect, 1)
	a.Exec.Code = encode(strings.Replace(decode(a), "\nn, out =", "\n"+text+"\nn, out =", 1))
	return a
}

func inNode(effect string) *forerun.Action {
	a := action(strings.Replace(nodeHeader, "EFFECT", effect, 1))
	a.Exec.Kind = "nodejs:default"
	return a
}

// outside is a host that counts words over TCP, UDP and TLS.
type outside struct {
	*sandboxtest.Counter
	host string
	tls  int
	http atomic.Int32 // squashed or promoted words over TLS
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	host := sandboxtest.Outside()
	if !host.IsValid() {
		t.Skip("the tests have no network namespace of their own")
	}
	o := &outside{Counter: sandboxtest.NewCounter(t), host: host.String()}
	l, err := net.Listen("tcp", net.JoinHostPort(o.host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		word := strings.TrimPrefix(r.URL.Path, "/")
		if word != "after" {
			o.http.Add(1)
		}
		_, _ = w.Write([]byte(word))
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	o.tls = l.Addr().(*net.TCPAddr).Port
	return o
}

// reached returns how often a word came, and forgets it.
func (o *outside) reached(word string) int { return o.Take(word) + int(o.http.Swap(0)) }

func (o *outside) input(word string) string {
	b, err := json.Marshal(map[string]any{"host": o.host, "tcp": o.TCP(word), "udp": o.UDP, "tls": o.tls, "word": word})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestGuardMatrix has functions of every language reach for the outside in many ways: squashed at whatever stage nothing of
// them arrives, promoted it does once. FORERUN_SOAK_TIMES says how often each is tried.
func TestGuardMatrix(t *testing.T) {
	o := newOutside(t)
	times, err := strconv.Atoi(os.Getenv("FORERUN_SOAK_TIMES"))
	if err != nil {
		times = 1
	}
	for name, a := range guarded() {
		t.Run(name, func(t *testing.T) {
			if discover().Check(a.Exec.Kind) != nil {
				t.Skip("this machine does not have the language")
			}
			g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 })
			calls := newCalls()
			g.ServeAPI(calls)
			m := matrix{g, calls, o, a}
			m.plain("after")
			for range times {
				m.squash(false)
				m.squash(true)
				m.plain("after") // holds connections that the next may not use
				m.promote()
			}
		})
	}
}

type matrix struct {
	*rig
	calls *calls
	o     *outside
	a     *forerun.Action
}

func (m *matrix) plain(word string) {
	m.t.Helper()
	_, h := m.begin(m.a, m.o.input(word))
	<-m.calls.arrived
	m.calls.answer <- "go"
	m.check(h, word)
}

func (m *matrix) check(h *heard, word string) {
	m.t.Helper()
	if end := m.wait(h); string(end.Result) != fmt.Sprintf(`{"got":%q}`, word) {
		m.t.Errorf("%s; logs %q", end.Result, end.Logs)
	}
}

// squash kills an activation before it reaches out, or when it has.
func (m *matrix) squash(late bool) {
	m.t.Helper()
	r, _ := m.ahead(m.a, m.o.input("squashed"))
	<-m.calls.arrived
	if late {
		m.calls.answer <- "go"
		m.plain("after") // in another sandbox: by then this one has come to its effect, too
	}
	m.Squash(r.Activation)
	if !late {
		<-m.calls.cut
	}
	m.plain("after")
	if n := m.o.reached("squashed"); n > 0 {
		m.t.Errorf("a squashed activation has reached the outside %d times", n)
	}
}

func (m *matrix) promote() {
	m.t.Helper()
	r, h := m.ahead(m.a, m.o.input("promoted"))
	<-m.calls.arrived
	m.calls.answer <- "go"
	m.Promote(r.Activation)
	m.check(h, "promoted")
	m.plain("after") // comes behind whatever was sent
	if n := m.o.reached("promoted"); n != 1 {
		m.t.Errorf("a promoted activation has reached the outside %d times", n)
	}
}

// TestSentBeforePromotion: what an activation sends without waiting for it goes out when it is promoted, also if it has ended
// before, and its sandbox has served others.
func TestSentBeforePromotion(t *testing.T) {
	o := newOutside(t)
	const node = `new Promise((yes, no) => { const s = dgram.createSocket("udp4"); s.send(a.word, a.udp, a.host, e => { s.close(); e ? no(e) : yes(a.word) }) })`
	for name, a := range inLanguages(pythonEffects["UDP without an answer"], node) {
		t.Run(name, func(t *testing.T) {
			if discover().Check(a.Exec.Kind) != nil {
				t.Skip("this machine does not have the language")
			}
			g := newNativeRig(t, single)
			calls := newCalls()
			g.ServeAPI(calls)
			m := matrix{g, calls, o, a}
			m.plain("after")
			for _, word := range []string{"promoted", "squashed"} {
				r, h := m.ahead(a, o.input(word))
				<-calls.arrived
				calls.answer <- "go"
				m.check(h, word)
				if word == "squashed" {
					m.Squash(r.Activation)
				}
				m.plain("between")
				if n := o.reached(word); n > 0 {
					t.Errorf("what ran ahead has reached the outside %d times", n)
				}
				m.Promote(r.Activation)
				m.plain("after") // comes behind whatever was sent
				if n, want := o.reached("promoted"), strings.Count(word, "promoted"); n != want {
					t.Errorf("a %s activation has reached the outside %d times", word, n)
				}
			}
			m.mustForget()
		})
	}
}

// mustForget: nothing is on the books of what has ended.
func (g *rig) mustForget() {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.runs); n > 0 {
		g.t.Errorf("%d activations are on the books", n)
	}
}

// TestHeldAtTheGuard: an activation tells for how long it waited to reach out, and what squashed ones took of the processors is known,
// whether they had ended or not.
func TestHeldAtTheGuard(t *testing.T) {
	o := newOutside(t)
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 })
	calls := newCalls()
	g.ServeAPI(calls)
	m := matrix{g, calls, o, guarded()["Python TLS"]}
	m.plain("after")
	for tries := 0; m.held() == 0; tries++ {
		if tries == 50 {
			t.Fatal("it is never held")
		}
	}
	if n := g.Stats().Wasted; n != 0 {
		t.Errorf("%v wasted, and nothing was squashed", n)
	}
	m.squash(true)
	g.awaitStats("squashed while it ran", func(s Stats) bool { return s.Wasted > 0 })
	before := g.Stats().Wasted
	r, h := m.ahead(action("import time\ndef main(a):\n    while time.process_time() < 0.05: pass\n    return {}\n"), `{}`)
	m.wait(h)
	m.Squash(r.Activation)
	g.awaitStats("squashed when it had ended", func(s Stats) bool { return s.Wasted-before >= 40*time.Millisecond })
	m.mustForget()
}

// held promotes an activation when it has most probably come to the guard, and returns for how long it says that it waited there.
func (m *matrix) held() time.Duration {
	m.t.Helper()
	r, h := m.ahead(m.a, m.o.input("promoted"))
	<-m.calls.arrived
	m.calls.answer <- "go"
	m.plain("after") // in another sandbox
	m.Promote(r.Activation)
	end := m.wait(h)
	if n := m.o.reached("promoted"); n != 1 || end.Status != forerun.Success {
		m.t.Errorf("%s, and the outside was reached %d times", end.Result, n)
	}
	return end.Held
}

func TestReadHostsAnswerAhead(t *testing.T) {
	o := newOutside(t)
	g := newNativeRig(t, single)
	calls := newCalls()
	g.ServeAPI(calls)
	a := guarded()["Python TLS"]
	a.Annotations = append(slices.Clone(a.Annotations), forerun.KeyValue{Key: readHosts, Value: json.RawMessage(`["` + o.host + `"]`)})
	m := matrix{g, calls, o, a}
	r, h := m.ahead(a, o.input("read"))
	<-calls.arrived
	calls.answer <- "go"
	m.check(h, "read")
	g.Promote(r.Activation)
}

func decode(a *forerun.Action) string {
	b, _ := base64.StdEncoding.DecodeString(a.Exec.Code) // keptAction has encoded it
	return string(b)
}

func encode(code string) string { return base64.StdEncoding.EncodeToString([]byte(code)) }
