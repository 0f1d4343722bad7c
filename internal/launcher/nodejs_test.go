package launcher

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/internal/runtimewire"
)

func startNode(t *testing.T) *server {
	t.Helper()
	t.Parallel()
	return startCommandOfNode(t)
}

func startCommandOfNode(t testing.TB) *server {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	runtime, err := filepath.Abs("../../runtimes/node/main.cjs")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, "nodejs", node, runtime)
}

func nodeHandler(t *testing.T, source string) *handler {
	t.Helper()
	return startNode(t).serving(runtimewire.Init{}, []byte(source))
}

// What one call answers with.
func TestNodeAnswers(t *testing.T) {
	for name, c := range map[string]struct{ source, input, want string }{
		"object":                {`function main({name}) { return {greeting: 'Hello ' + name} }`, `{"name":"Ada"}`, `{"greeting":"Hello Ada"}`},
		"arrow":                 {`const main = x => ({n: x.n + 1})`, `{"n":1}`, `{"n":2}`},
		"async":                 {`async function main(x) { await new Promise(r => setTimeout(r, 5)); return x }`, `{"a":1}`, `{"a":1}`},
		"exports":               {`exports.main = x => x`, `{"a":1}`, `{"a":1}`},
		"module.exports":        {`module.exports = { main: x => x }`, `{"a":1}`, `{"a":1}`},
		"global":                {`global.main = x => x`, `{"a":1}`, `{"a":1}`},
		"strict":                {"'use strict'\nfunction main() { return {strict: this === undefined} }", `{}`, `{"strict":true}`},
		"undefined":             {`function main() {}`, `{}`, `{}`},
		"undefined later":       {`async function main() {}`, `{}`, `{}`},
		"error member":          {`function main() { return {error: 'sorry'} }`, `{}`, `{"error":"sorry"}`},
		"array":                 {`function main() { return [1, 2] }`, `{}`, `[1,2]`},
		"unicode":               {`function main(x) { return {text: x.text + '☃ \ud83d\ude00'} }`, `{"text":"é "}`, `{"text":"é ☃ 😀"}`},
		"require":               {`const path = require('path'); function main() { return {p: path.join('a', 'b')} }`, `{}`, `{"p":"a/b"}`},
		"dynamic import":        {`async function main() { const p = await import('node:path'); return {p: p.join('a', 'b')} }`, `{}`, `{"p":"a/b"}`},
		"shebang, comment":      {"#!/usr/bin/env node\nfunction main() { return {} } // the end", `{}`, `{}`},
		"thrown":                {`function main() { throw new TypeError('nooo') }`, `{}`, `error: An error has occurred: TypeError: nooo`},
		"thrown text":           {`function main() { throw 'nooo' }`, `{}`, `error: An error has occurred: nooo`},
		"rejected object":       {`function main() { return Promise.reject({done: true}) }`, `{}`, `{"error":{"done":true}}`},
		"rejected error member": {`function main() { return Promise.reject({error: 'x'}) }`, `{}`, `{"error":{"error":"x"}}`},
		"rejected text":         {`function main() { return Promise.reject('nooo') }`, `{}`, `{"error":"nooo"}`},
		"rejected empty":        {`function main() { return Promise.reject() }`, `{}`, `{"error":{}}`},
		"cyclic rejection":      {`function main() { const x = {a: {}}; x.a.x = x; return Promise.reject(x) }`, `{}`, `{"error":{"a":{"x":"[Circular]"}}}`},
		"number":                {`function main() { return 1 }`, `{}`, `error: The action did not return a dictionary or array.`},
		"text":                  {`async function main() { return 'x' }`, `{}`, `error: The action did not return a dictionary or array.`},
		"null":                  {`function main() { return null }`, `{}`, `error: The action did not return a dictionary or array.`},
		"date":                  {`function main() { return new Date(0) }`, `{}`, `error: The action did not return a dictionary or array.`},
		"BigInt":                {`function main() { return {a: 1n} }`, `{}`, `error: The action returned a dictionary that is not JSON: TypeError: Do not know how to serialize a BigInt`},
		"ES module":             {"import path from 'node:path'\nexport function main() { return {p: path.join('a', 'b')} }", `{}`, `{"p":"a/b"}`},
		"ES module, default":    {`export default { main: x => x }`, `{"a":1}`, `{"a":1}`},
		"ES module, await":      {"const one = await Promise.resolve(1)\nexport const main = () => ({one})", `{}`, `{"one":1}`},
		"abort signal":          {`function main() { return new Promise((y, n) => AbortSignal.timeout(5).addEventListener('abort', () => n('late'))) }`, `{}`, `{"error":"late"}`},
		"unref'd timer":         {`const main = x => new Promise(y => setTimeout(y, 5, x).unref())`, `{"a":1}`, `{"a":1}`},
		"unref'd thenable":      {`const main = x => ({ then: y => { setTimeout(y, 5, x).unref() } })`, `{"a":1}`, `{"a":1}`},
		"unref'd worker":        {`const main = x => new Promise(y => new (require('worker_threads').Worker)("require('worker_threads').parentPort.postMessage({a: 1})", {eval: true}).on('message', y).unref())`, `{"a":1}`, `{"a":1}`},
		"never settled":         {`function main() { return new Promise(() => {}) }`, `{}`, `error: The action ended without a result: nothing is left that could settle its promise.`},
		"never settled, async":  {`async function main() { await new Promise(r => setTimeout(r, 1)); await new Promise(() => {}) }`, `{}`, `error: The action ended without a result: nothing is left that could settle its promise.`},
		"never settled, others": {`const { setTimeout } = require('timers'); async function main() { setTimeout(() => {}, 60000).unref(); await { then () {} } }`, `{}`, `error: The action ended without a result: nothing is left that could settle its promise.`},
		"not settled any more":  {`function main() { return new Promise(y => setTimeout(() => y, 5).unref()) }`, `{}`, `error: The action ended without a result: nothing is left that could settle its promise.`},
	} {
		t.Run(name, func(t *testing.T) {
			h := nodeHandler(t, c.source)
			for range 2 { // the same process serves both
				if got := h.call(c.input); got != c.want {
					t.Fatalf("got %s, want %s; logs: %s", got, c.want, &h.logs)
				}
			}
		})
	}
}

// TestNodeWaitsForUnreferenced: for a connection that does not keep a process alive.
func TestNodeWaitsForUnreferenced(t *testing.T) {
	l := listen(t)
	h := nodeHandler(t, fmt.Sprintf(`exports.main = () => new Promise(y => {
		require('net').connect(%d, '127.0.0.1', function () { this.unref() }).on('data', data => y({data: String(data)})) })`, l.Addr().(*net.TCPAddr).Port))
	h.send(runtimewire.Run{}, `{}`)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "here"); err != nil {
		t.Fatal(err)
	}
	if got, want := h.outcome(), `{"data":"here"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNodeRejectedErrorIsSerialised(t *testing.T) {
	h := nodeHandler(t, `async function main() { throw Object.assign(new RangeError('too far'), {code: 'E_FAR', extra: [1]}) }`)
	got := h.call(`{}`)
	e, _ := member(t, got, "error").(map[string]any)
	if e["name"] != "RangeError" || e["message"] != "too far" || e["code"] != "E_FAR" || e["extra"] == nil ||
		!strings.Contains(e["stack"].(string), "index.js:1:") {
		t.Errorf("the error is %s", got)
	}
	h.logged("RangeError: too far")
}

// TestNodeEntryPointsThatPeopleBring: what text has as its only function is its main.
func TestNodeEntryPointsThatPeopleBring(t *testing.T) {
	for name, code := range map[string]string{
		"in its scope": "async function handler (event) { return event }", "exported": "exports.handler = event => event",
		"default": "export default event => event", "handler of a module": "export const handler = async event => event",
		"compiled": "Object.defineProperty(exports, '__esModule', {value: true}); exports.default = x => x", "whole": "module.exports = x => x",
	} {
		t.Run(name, func(t *testing.T) {
			if got := nodeHandler(t, code).call(`{"a":1}`); got != `{"a":1}` {
				t.Error(got)
			}
		})
	}
}

func TestNodeMainIsAPath(t *testing.T) {
	h := startNode(t).serving(runtimewire.Init{Main: "handlers.greet"}, []byte(`const handlers = { greet: x => x }`))
	if got := h.call(`{"a":1}`); got != `{"a":1}` {
		t.Error(got)
	}
}

// What is wrong with code that cannot be loaded.
func TestNodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		init runtimewire.Init
		code []byte
		want []string // parts of the sentence
	}{
		"syntax":             {runtimewire.Init{}, []byte("\nfunction main( {"), []string{"Initialization has failed due to: ", "index.js:", "SyntaxError: Unexpected token"}},
		"two arguments":      {runtimewire.Init{}, []byte("exports.handler = async function handler (event, context) {}"), []string{"The function 'handler' takes 2 arguments, and an action has one, its parameters"}},
		"two, and no name":   {runtimewire.Init{}, []byte("exports.handler = async (event, context) => {}"), []string{"The function of the code takes 2 arguments, and an action has one, its parameters"}},
		"several exports":    {runtimewire.Init{}, []byte("module.exports = () => ({}); exports = module.exports; exports.handler = () => ({})"), []string{"'main' is not a function. The code exports several functions: name one of them"}},
		"a name that is not": {runtimewire.Init{Main: "go"}, []byte("exports.handler = () => ({})"), []string{"Action entrypoint 'go' is not a function."}},
		"no code":            {runtimewire.Init{}, []byte(" "), []string{"no code to execute"}},
		"no main":            {runtimewire.Init{}, []byte("function other() {}"), []string{"Action entrypoint 'main' is not a function. Write function main (args), which returns the result as an object."}},
		"a script":           {runtimewire.Init{}, []byte("console.log(JSON.stringify({ a: 1 }))"), []string{"is not a function. Write function main (args)", "What the code prints goes to the log."}},
		"main no function":   {runtimewire.Init{Main: "a.b"}, []byte("const a = {b: 1}"), []string{"Action entrypoint 'a.b' is not a function."}},
		"main no name":       {runtimewire.Init{Main: "f();g"}, []byte("function f() {}"), []string{"Name of main function is not valid."}},
		"throws":             {runtimewire.Init{}, []byte("throw new Error('early')"), []string{"Error: early\n    at "}},
		"exits":              {runtimewire.Init{}, []byte("process.exit(7)"), []string{"the process exited with status 7 while it loaded the code"}},
		"killed":             {runtimewire.Init{}, []byte("process.kill(process.pid, 'SIGKILL')"), []string{"was killed by signal 9 (killed)"}},
		"missing import":     {runtimewire.Init{}, []byte("import x from 'nothing-of-this-name'\nexport const main = x"), []string{"Cannot find package 'nothing-of-this-name'", "Forerun installs no packages: put them in the function's folder"}},
		"missing require":    {runtimewire.Init{}, []byte("require('nothing-of-this-name')"), []string{"Cannot find module 'nothing-of-this-name'", "Forerun installs no packages: put them in the function's folder"}},
		"no archive":         {runtimewire.Init{Binary: true}, []byte("Cech n'est pas un zip."), []string{"uncompressing", "unsupported"}},
		"broken archive":     {runtimewire.Init{Binary: true}, []byte("PK\x03\x04 and so on"), []string{"uncompressing", "not a valid zip file"}},
		"no entry":           {runtimewire.Init{Binary: true}, zipOf(t, map[string]string{"hello": "x"}), []string{"Zipped actions must contain either package.json or index.js at the root."}},
		"package.json":       {runtimewire.Init{Binary: true}, zipOf(t, map[string]string{"package.json": "{", "index.js": ""}), []string{"package.json cannot be read"}},
		"no such file":       {runtimewire.Init{Binary: true, Main: "other.main"}, zipOf(t, map[string]string{"index.js": ""}), []string{"Cannot find module"}},
		"outside the folder": {runtimewire.Init{Binary: true}, zipOf(t, map[string]string{"../index.js": ""}), []string{"is not a safe name"}},
	} {
		t.Run(name, func(t *testing.T) {
			done := startNode(t).load(c.init, c.code)
			if done.OK {
				t.Fatal("it was loaded")
			}
			for _, part := range c.want {
				if !strings.Contains(done.Error, part) {
					t.Errorf("%q has no %q", done.Error, part)
				}
			}
		})
	}
}

func TestNodeArchives(t *testing.T) {
	const greet = `exports.main = () => ({from: require('path').basename(__filename), here: __dirname === process.cwd()})`
	for name, c := range map[string]struct {
		main, want string
		files      map[string]string
	}{
		"index.js":        {"", `{"from":"index.js","here":true}`, map[string]string{"index.js": greet}},
		"package.json":    {"", `{"from":"a.js","here":true}`, map[string]string{"package.json": `{"main":"a.js"}`, "a.js": greet, "index.js": "throw 1"}},
		"byte order mark": {"", `{"from":"a.js","here":true}`, map[string]string{"package.json": "\ufeff{\"main\":\"a.js\"}", "a.js": greet, "index.js": "throw 1"}},
		"no main in it":   {"", `{"from":"index.js","here":true}`, map[string]string{"package.json": `{}`, "index.js": greet}},
		"exported itself": {"", `{"ok":true}`, map[string]string{"index.js": "module.exports = () => ({ok: true})"}},
		"handler":         {"", `{"ok":true}`, map[string]string{"index.js": "exports.handler = async event => ({ok: true})"}},
		"default":         {"", `{"ok":true}`, map[string]string{"index.mjs": "export default function () { return {ok: true} }"}},
		"main is first":   {"", `{"ok":true}`, map[string]string{"index.mjs": "export default function () {}\nexport const main = () => ({ok: true})"}},
		"another file":    {"other.main", `{"from":"other.js","here":true}`, map[string]string{"other.js": greet}},
		"nested":          {"other.a.b", `{"ok":true}`, map[string]string{"other.js": `exports.a = {b: () => ({ok: true})}`}},
		"node_modules": {"", `{"dep":"local"}`, map[string]string{
			"index.js": `exports.main = () => ({dep: require('dep').name})`, "node_modules/dep/index.js": `exports.name = 'local'`,
		}},
		"index.mjs": {"", `{"x":1}`, map[string]string{"index.mjs": "import { x } from './x.mjs'\nexport const main = () => ({x})", "x.mjs": "export const x = 1"}},
		"type module": {"", `{"dep":"local"}`, map[string]string{
			"package.json": `{"type":"module","main":"src/a.js"}`, "src/a.js": "import dep from 'dep'\nexport const main = () => ({dep})",
			"node_modules/dep/package.json": `{"main":"i.cjs"}`, "node_modules/dep/i.cjs": `module.exports = 'local'`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := startNode(t).serving(runtimewire.Init{Binary: true, Main: c.main}, zipOf(t, c.files))
			if got := h.call(`{}`); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestNodeEnvironmentIsTheActivations(t *testing.T) {
	s := startNode(t)
	h := s.serving(runtimewire.Init{Env: map[string]string{"REDIS_URL": "redis://x"}}, []byte(
		`const early = process.env.REDIS_URL; function main() { return {early, id: process.env.__OW_ACTIVATION_ID, leak: process.env.LEAK ?? null} }`))
	h.send(runtimewire.Run{Env: map[string]string{"__OW_ACTIVATION_ID": "1", "LEAK": "x"}}, `{}`)
	if got, want := h.outcome(), `{"early":"redis://x","id":"1","leak":"x"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.ready()
	h.send(runtimewire.Run{Env: map[string]string{"__OW_ACTIVATION_ID": "2"}}, `{}`)
	if got, want := h.outcome(), `{"early":"redis://x","id":"2","leak":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.ready()
}

func TestNodeProcessIsReused(t *testing.T) {
	h := nodeHandler(t, `let n = 0; function main() { return {n: ++n, pid: process.pid} }`)
	for n := 1; n <= 3; n++ {
		if got := h.call(`{}`); member(t, got, "n") != float64(n) || member(t, got, "pid") != float64(h.pid) {
			t.Errorf("call %d answered %s", n, got)
		}
	}
	other := h.fork()
	if got := other.call(`{}`); member(t, got, "n") != 1.0 {
		t.Errorf("another process answered %s", got)
	}
}

// TestNodeContextIsTheActivations: what one activation keeps in an AsyncLocalStorage, or the code as it is loaded, no other finds there.
func TestNodeContextIsTheActivations(t *testing.T) {
	h := nodeHandler(t, `const { AsyncLocalStorage } = require('async_hooks'); const storage = new AsyncLocalStorage(); storage.enterWith('loading')
		exports.main = async ({user}) => { const before = storage.getStore() ?? null; if (user) storage.enterWith(user); await 1; return {before, user: storage.getStore() ?? null} }`)
	for _, c := range []struct{ input, want string }{
		{`{"user":"ada"}`, `{"before":null,"user":"ada"}`},
		{`{}`, `{"before":null,"user":null}`},
	} {
		if got := h.call(c.input); got != c.want {
			t.Errorf("%s: got %s, want %s", c.input, got, c.want)
		}
	}
}

// TestNodeWorkingDirectory: one that is gone is none for the next activation; one that is there stays.
func TestNodeWorkingDirectory(t *testing.T) {
	s := startNode(t)
	h := s.serving(runtimewire.Init{Binary: true}, zipOf(t, map[string]string{
		"index.js": `exports.main = ({to}) => { if (to) process.chdir(to); return {in: require('child_process').execSync('pwd').toString().trim()} }`,
	}))
	stays, goes := t.TempDir(), t.TempDir()
	for _, c := range []struct{ to, want string }{{stays, stays}, {"", stays}, {goes, goes}, {"", s.folder}} {
		if got := member(t, h.call(fmt.Sprintf(`{"to":%q}`, c.to)), "in"); got != c.want {
			t.Errorf("after chdir(%q) it is %v, want %s", c.to, got, c.want)
		}
		if c.to == goes {
			if err := os.Remove(goes); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestNodeOutputIsThereWithTheResult(t *testing.T) {
	h := nodeHandler(t, `function main() { for (let i = 0; i < 20000; i++) { console.log('out', i); console.error('err', i) } process.stdout.write('last'); return {} }`)
	if got := h.call(`{}`); got != `{}` {
		t.Fatal(got)
	}
	h.logged("err 19999")
	h.logged("out 19999\n")
	h.logged("last")
}

func TestNodeExitInTheMiddle(t *testing.T) {
	h := nodeHandler(t, `async function main() { console.log('before'); process.exit(3) }`)
	h.send(runtimewire.Run{}, `{}`)
	if _, err := h.conn.Read(); err == nil {
		t.Error("a result came")
	}
	if e := h.end(); e.Status != 3 || e.Signal != 0 {
		t.Errorf("the exit is %+v", e)
	}
	h.logged("before")
	if got := h.fork().conn; got == nil {
		t.Error("no other process took over")
	}
}

func TestNodeInfiniteLoopIsKilled(t *testing.T) {
	h := nodeHandler(t, `function main(x) { while (x.loop) {} return {} }`)
	h.send(runtimewire.Run{}, `{"loop":true}`)
	if err := syscall.Kill(h.hostPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := h.end(); e.Signal != 9 {
		t.Errorf("the exit is %+v", e)
	}
	if got := h.fork().call(`{}`); got != `{}` {
		t.Error(got)
	}
}

func TestNodeErrorNobodyCaught(t *testing.T) {
	for name, source := range map[string]string{
		"exception": `function main() { setTimeout(() => { throw new Error('late') }, 1); return new Promise(() => {}) }`,
		"rejection": `function main() { Promise.reject(new Error('late')); return new Promise(r => setTimeout(r, 60000)) }`,
	} {
		t.Run(name, func(t *testing.T) {
			h := nodeHandler(t, source)
			h.send(runtimewire.Run{}, `{}`)
			if got, want := h.outcome(), "error: An error has occurred: Error: late"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if e := h.end(); e.Status != 1 {
				t.Errorf("the exit is %+v", e)
			}
			h.logged("Error: late")
		})
	}
}

func TestNodeErrorAfterTheAnswerTakesTheProcessAlong(t *testing.T) {
	h := nodeHandler(t, `function main() { process.nextTick(() => Promise.reject(new Error('late'))); return {} }`)
	h.send(runtimewire.Run{}, `{}`)
	if got := h.outcome(); got != `{}` && !strings.Contains(got, "late") {
		t.Error(got)
	}
	if e := h.end(); e.Status != 1 {
		t.Errorf("the exit is %+v", e)
	}
	h.logged("Error: late")
}

func TestNodeOwnHandlerOfUncaughtErrors(t *testing.T) {
	h := nodeHandler(t, `process.on('uncaughtException', e => done({caught: e.message})); let done
		function main() { setTimeout(() => { throw new Error('late') }, 1); return new Promise(r => { done = r }) }`)
	if got, want := h.call(`{}`), `{"caught":"late"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestNodeConnectsBeforeItWaits: what the code began to connect is connected while it waits for its first activation, however long that is.
func TestNodeConnectsBeforeItWaits(t *testing.T) {
	const code = `
		net.connect(PORT, '127.0.0.1', function () { this.write('here') }).unref()`
	for name, source := range map[string]string{
		"script": "const net = require('net')" + code + "\nfunction main() { return {} }",
		"module": "import net from 'net'" + code + "\nexport function main() { return {} }",
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			h := nodeHandler(t, strings.Replace(source, "PORT", strconv.Itoa(l.Addr().(*net.TCPAddr).Port), 1))
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, len("here"))); err != nil {
				t.Error("it waits for an activation, and has not connected:", err)
			}
			if got := h.call(`{}`); got != `{}` {
				t.Error(got)
			}
		})
	}
}

// TestNodeErrorWhileItConnects: the first activation ends with it.
func TestNodeErrorWhileItConnects(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	h := nodeHandler(t, fmt.Sprintf(`require('net').connect(%d, '127.0.0.1'); function main() { return {} }`, port))
	h.send(runtimewire.Run{}, `{}`)
	if got, want := h.outcome(), fmt.Sprintf("error: An error has occurred: Error: connect ECONNREFUSED 127.0.0.1:%d", port); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.logged("Uncaught Error: connect ECONNREFUSED")
	if e := h.end(); e.Status != 1 {
		t.Errorf("the exit is %+v", e)
	}
}

// TestNodeHearsOfConnectionsThatEnded: one that its peer closed while the process waited is not used again.
func TestNodeHearsOfConnectionsThatEnded(t *testing.T) {
	for name, get := range map[string]string{
		"http":  `exports.main = () => new Promise((y, n) => require('http').get('http://ADDRESS', r => r.resume().on('end', () => y({ok: true}))).on('error', n))`,
		"fetch": `exports.main = async () => { const r = await fetch('http://ADDRESS'); await r.text(); return {ok: r.ok} }`,
	} {
		t.Run(name, func(t *testing.T) {
			l, served := listen(t), make(chan net.Conn, 1)
			h := nodeHandler(t, strings.Replace(get, "ADDRESS", l.Addr().String(), 1))
			for range 2 {
				go func() { served <- serveOnce(l) }()
				if got := h.call(`{}`); got != `{"ok":true}` {
					t.Fatal(got)
				}
				_ = (<-served).Close()
			}
		})
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serveOnce answers the first request on a connection, which it leaves open and reads no more from; nil if none comes.
func serveOnce(l net.Listener) net.Conn {
	c, err := l.Accept()
	if err != nil {
		return nil
	}
	if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
	return c
}

// TestNodeErrorOfWhatWasLeft: the activation fails with it that has begun, executed or not.
func TestNodeErrorOfWhatWasLeft(t *testing.T) {
	l := listen(t)
	h := nodeHandler(t, fmt.Sprintf(`exports.main = ({last}) => last ? {} : new Promise(y => {
		require('net').connect(%d, '127.0.0.1', () => y({})).on('close', () => { throw new Error('late') }).resume() })`, l.Addr().(*net.TCPAddr).Port))
	if got := h.call(`{}`); got != `{}` {
		t.Fatal(got)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	h.send(runtimewire.Run{}, `{"last":true}`)
	if got, want := h.outcome(), "error: An error has occurred: Error: late"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNodeLargeFrames(t *testing.T) {
	h := nodeHandler(t, `function main(x) { return x }`)
	input := `{"a":"` + string(bytes.Repeat([]byte("é"), 1<<20)) + `"}`
	for range 2 {
		if got := h.call(input); got != input {
			t.Errorf("%d bytes came back of %d", len(got), len(input))
		}
	}
	h.send(runtimewire.Run{Limit: 1000}, input)
	if got, want := h.outcome(), "error: The action produced a response that exceeded the allowed length: 2097160 > 1000 bytes."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	h.ready()
}

// The functions of compositions are ordinary actions, made of the wrapper in internal/flow.
func TestNodeFunctionOfAComposition(t *testing.T) {
	wrapper, err := os.ReadFile("../flow/function.js")
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]string{
		`p => { n++; return {file: require('path').join('a', p.b)} }`: `{"params":{"file":"a/c"},"variables":{"n":2,"params":0}}`,
		`p => { n = p.b }`:                                `{"params":{"b":"c"},"variables":{"n":"c","params":0}}`,
		`p => { p.b = 1; params = p; p.b = 2 }`:           `{"params":{"b":2},"variables":{"n":1,"params":{"b":2}}}`,
		`async p => ({n})`:                                `{"params":{"n":1},"variables":{"n":1,"params":0}}`,
		`async p => { await 1; n = 2; return {n} }`:       `{"params":{"n":2},"variables":{"n":1,"params":0}}`,
		`function (p) { return p.b }`:                     `{"params":"c","variables":{"n":1,"params":0}}`,
		`function named (p) { return null }`:              `{"params":null,"variables":{"n":1,"params":0}}`,
		`p => Promise.resolve({n, "q": "\"` + "`" + `"})`: `{"params":{"n":1,"q":"\"` + "`" + `"},"variables":{"n":1,"params":0}}`,
		`() => () => 1`:                                   `{"outcome":"function","variables":{"n":1,"params":0}}`,
		`() => { n = 5; throw new Error('no') }`:          `{"outcome":"threw","variables":{"n":5,"params":0}}`,
		`() => { n = undefined }`:                         `{"outcome":"threw","variables":{}}`,
		`() => Promise.reject(new Error('no'))`:           `{"outcome":"threw","variables":{"n":1,"params":0}}`,
		`no javascript`:                                   `{"outcome":"threw","variables":{"n":1,"params":0}}`,
		`() => 1n`:                                        `{"outcome":"broke","message":"Do not know how to serialize a BigInt","variables":{"n":1,"params":0}}`,
	} {
		t.Run(code, func(t *testing.T) {
			literal, err := json.Marshal(code)
			if err != nil {
				t.Fatal(err)
			}
			h := nodeHandler(t, string(wrapper))
			if got := h.call(`{"code":` + string(literal) + `,"params":{"b":"c"},"variables":{"n":1,"params":0}}`); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// What the C library keeps of each environment is bounded: a process that has served long ends between two activations, by itself.
func TestNodeProcessEndsInTheLongRun(t *testing.T) {
	h := nodeHandler(t, `let n = 0; function main() { return {n: ++n} }`)
	last := 0
	for last < 50_000 {
		h.send(runtimewire.Run{}, "{}")
		last++
		if got, want := h.outcome(), fmt.Sprintf(`{"n":%d}`, last); got != want {
			t.Fatalf("activation %d answered %s", last, got)
		}
		if last < 50_000 {
			h.ready()
		}
	}
	if e := h.end(); e.Status != 0 || e.Signal != 0 {
		t.Errorf("it ended so: %+v", e)
	}
}
