package worker

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
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
    ring = ctypes.CDLL(None, use_errno=True).syscall(425, 1, ctypes.create_string_buffer(120))
    s = socket.create_connection((a["host"], a["tcp"])); s.sendall((a["word"] if ring < 0 else "ring").encode() + b"\n"); return s.recv(100).decode()`,
	"child": `
    return subprocess.run([sys.executable, "-c", "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); s.sendall(sys.argv[3].encode()); print(s.recv(100).decode())",
        a["host"], str(a["tcp"]), a["word"]], stdout=subprocess.PIPE, check=True).stdout.decode()`,
	"bare connect": `
    socket.create_connection((a["host"], a["tcp"])); return a["word"]`,
	"IPv6": `
    s = socket.create_connection((a["host6"], a["tcp"])); s.sendall(a["word"].encode() + b"\n"); return s.recv(100).decode()`,
	"UDP over IPv6 or else TCP": `
    try: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(a["word"].encode(), (a["host6"], a["udp"]))
    except OSError: pass
    s = socket.create_connection((a["host6"], a["tcp"])); s.sendall(a["word"].encode() + b"\n"); return s.recv(100).decode()`,
	"name": `
    found = socket.getaddrinfo(a["name"], 80, socket.AF_INET)[0][4][0]; return a["word"] if found == a["host"] else found`,
	"question over TCP": `
    q = bytes.fromhex(a["question"]); s = socket.create_connection(("127.0.0.1", 53)); s.sendall(struct.pack("!H", len(q)) + q)
    found = socket.inet_ntoa(s.recv(512)[-4:]); return a["word"] if found == a["host"] else found`,
	"question outside": `
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(bytes.fromhex(a["question"]), (a["host"], 53))
    found = socket.inet_ntoa(s.recv(512)[-4:]); return a["word"] if found == a["host"] else found`,
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
	// libuv sends later, with sendmmsg, the datagrams that Node cannot send at once. The test has Node not try.
	"sendmmsg": `new Promise((yes, no) => new threads.Worker(
    "const t = require('worker_threads'), a = t.workerData, s = require('dgram').createSocket('udp4'); s.on('message', m => { s.close(); t.parentPort.postMessage(String(m)) });" +
    "s.bind(() => { s.send('', 9, '127.0.0.1'); s.send(a.word, a.udp, a.host); s.send('', 9, '127.0.0.1') })", // the first one alone, then both others
    {eval: true, workerData: a, execArgv: ["--test-udp-no-try-send"]}).on("message", yes).on("error", no))`,
	"bare connect": `new Promise((yes, no) => { const s = net.connect(a.tcp, a.host, () => { s.destroy(); yes(a.word) }).on("error", no) })`,
	"IPv6":         `say(a, a.host6)`,
	"UDP over IPv6 or else TCP": `new Promise((yes, no) => { const s = dgram.createSocket("udp6"); s.send(a.word, a.udp, a.host6, () => {
    s.close(); say(a, a.host6).then(yes, no) }) })`,
	"dns.lookup":  `dns.lookup(a.name, 4).then(found => found.address == a.host ? a.word : found.address)`,
	"dns.resolve": `dns.resolve(a.name).then(([found]) => found == a.host ? a.word : found)`,
	"question over TCP": `new Promise((yes, no) => { const q = Buffer.from("0000" + a.question, "hex"); q.writeUInt16BE(q.length - 2)
    const s = net.connect(53, "127.0.0.1").on("error", no); s.write(q)
    s.on("data", d => { s.destroy(); const found = [...d.subarray(-4)].join("."); yes(found == a.host ? a.word : found) }) })`,
	"inherited descriptor": `new Promise((yes, no) => { // that a child has connected
    const child = processes.spawn(process.execPath, ["-e",
        "const [host, port] = process.argv.slice(1); const s = require('net').connect(port, host, () => process.send('x', s))", a.host, a.tcp],
        {stdio: ["ignore", "inherit", "inherit", "ipc"]}).on("error", no)
    child.on("message", (_, s) => { s.on("data", d => { s.destroy(); child.kill(); yes(String(d)) }); s.write(a.word + "\n") }) })`,
	"inherited by a child": `(async () => { // a connection that the process has
    if (!kept) kept = await new Promise((yes, no) => { const s = net.connect(a.tcp, a.host, () => yes(s)).on("error", no) })
    processes.spawn("/bin/sh", ["-c", "echo $0", a.word], {stdio: ["ignore", kept, "inherit"]})
    return new Promise(yes => kept.once("data", d => yes(String(d))).resume()) })()`,
	"io_uring or else TCP": `new Promise((yes, no) => processes.execFile(process.execPath, ["-e", UV_RING, a.host, a.tcp, a.word],
    {env: {...process.env, UV_USE_IO_URING: "1"}}, (error, out) => error ? no(error) : yes(out)))`,
}

const nodeHeader = `
const http = require("http"), https = require("https"), net = require("net"), dgram = require("dgram"), threads = require("worker_threads")
const dns = require("dns").promises, processes = require("child_process")
const keeping = new https.Agent({keepAlive: true})
let kept
const ready = () => new Promise((yes, no) => http.get({host: "127.0.0.1", port: 3233, path: "/ready", agent: false}, r => r.on("data", () => 0).on("end", yes)).on("error", no))
exports.main = async a => { await ready(); return {got: (await effect(a)).trim()} }
const say = (a, host) => new Promise((yes, no) => { const s = net.connect(a.tcp, host).on("error", no); s.on("data", d => { s.destroy(); yes(String(d)) }); s.write(a.word + "\n") })
const UV_RING = "const fs = require('fs'), [host, port, word] = process.argv.slice(1);" + // reads a file first, which libuv would do with a ring
  "fs.promises.readFile('/proc/self/status').then(() => { const ring = fs.readdirSync('/proc/self/fd').some(n => { try { return fs.readlinkSync('/proc/self/fd/' + n).includes('io_uring') } catch { return false } });" +
  "const s = require('net').connect(port, host); s.on('data', d => { console.log(String(d)); s.end() }); s.write((ring ? 'ring' : word) + '\\n') })"
const effect = a => EFFECT
`

// goEffects are ways of test/actions/effects.
var goEffects = []string{
	"TLS", "UDP", "IPv6", "bare connect", "keep-alive", "thread", "sendmmsg", "TCP fast open or else TCP", "child", "child's socket", "socket of a child",
	"io_uring or else TCP", "name", "question over TCP",
}

// inGo is a static program that knows one way.
func inGo(program []byte, effect string) *forerun.Action {
	a := action("")
	code := slices.Concat(program, []byte("/"+effect))
	a.Exec = forerun.Exec{Kind: "native", Code: base64.StdEncoding.EncodeToString(code), Binary: true}
	return a
}

// buildEffects builds the program.
func buildEffects(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "effects")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "forerun.dev/forerun/test/actions/effects")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// inLanguages are the actions of an effect in Python, which native programs have too, and in Node.
func inLanguages(python, node string) map[string]*forerun.Action {
	return map[string]*forerun.Action{
		"Python": fresh(inPython(python)), "kept Python": inPython(python), "native": inNative(python), "Node": inNode(node),
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

func decode(a *forerun.Action) string {
	b, _ := base64.StdEncoding.DecodeString(a.Exec.Code) // keptAction has encoded it
	return string(b)
}

func encode(code string) string { return base64.StdEncoding.EncodeToString([]byte(code)) }
