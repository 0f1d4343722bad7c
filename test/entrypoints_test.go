package test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// entryPoint is a way to write a function.
type entryPoint struct {
	name, kind, main string
	code             string            // source text, or
	files            map[string]string // an archive
	input            any               // an object; nil: empty
	status           string            // "" for success
	result           string            // JSON; not looked at if the status says more
	log              string            // that a line of the log holds
}

var entryPoints = []entryPoint{
	{name: "python archive with packages", kind: "python:3", files: map[string]string{
		"__main__.py": "from own.part import answer\nimport requests, redis, boto3\n\ndef main(args):\n    return {'n': answer(), 'at hand': [m.__name__ for m in (requests, redis, boto3)]}\n",
		"own/part.py": "def answer():\n    return 42\n", "own/__init__.py": "",
	}, result: `{"n":42,"at hand":["requests","redis","boto3"]}`},
	{
		name: "python that will import redis", kind: "python:3", result: `{"loaded":true}`,
		code: "import sys\n\ndef main(args):\n    loaded = 'redis' in sys.modules\n    import redis\n    return {'loaded': loaded}\n",
	},
	{name: "python archive with its own redis", kind: "python:3", files: map[string]string{
		"__main__.py": "import redis\n\ndef main(args):\n    return {'own': redis.own}\n", "redis.py": "own = True\n",
	}, result: `{"own":true}`},
	{name: "python function of another name", kind: "python:3", main: "serve", code: "def serve(args):\n    return {'served': args}\n", input: map[string]int{"n": 1}, result: `{"served":{"n":1}}`},
	{name: "python coroutine", kind: "python:3", code: "import asyncio\n\nasync def main(args):\n    await asyncio.sleep(0)\n    return {'async': True}\n", result: `{"async":true}`},
	{name: "python without parameters", kind: "python:3", code: "def main():\n    return {'called': True}\n", input: map[string]int{"n": 1}, result: `{"called":true}`},
	{name: "python handler", kind: "python:3", code: "def handler(event, context=None):\n    return {'n': event['n']}\n", input: map[string]int{"n": 1}, result: `{"n":1}`},
	{name: "python handler with a context", kind: "python:3", code: "def handler(event, context):\n    return {}\n", status: "action developer error", result: `{"error":"Initialization has failed: the function handler(event, context) needs 2 arguments, and an action has one, the dictionary of parameters: leave the others out, or give them default values."}`},
	{name: "python that prints", kind: "python:3", code: "import json\nprint(json.dumps({'n': 1}))\n", status: "action developer error", result: `{"error":"Initialization has failed: the code has no function named 'main': write def main(args), which returns the result as a dictionary; what the code prints goes to the log."}`},
	{name: "python traceback", kind: "python:3", code: "def main(args):\n    return deeper()\n\ndef deeper():\n    raise KeyError('missing')\n", status: "action developer error", log: "in deeper"},
	{name: "python that does not load", kind: "python:3", code: "import nowhere\n", status: "action developer error", log: "ModuleNotFoundError: No module named 'nowhere'"},
	{name: "python array", kind: "python:3", code: "def main(args):\n    return [1, {'b': 2}]\n", result: `[1,{"b":2}]`},

	{name: "node promise", kind: "nodejs:20", code: "function main(args) { return new Promise(resolve => setTimeout(() => resolve({ later: args.n }), 1)) }", input: map[string]int{"n": 1}, result: `{"later":1}`},
	{name: "node rejection", kind: "nodejs:20", code: "function main() { return Promise.reject({ code: 7 }) }", status: "application error", result: `{"error":{"code":7}}`},
	{name: "node exports another name", kind: "nodejs:20", main: "serve", code: "exports.serve = () => ({ served: true })", result: `{"served":true}`},
	{name: "node module", kind: "nodejs:20", code: "import { basename } from 'path'\nimport Redis from 'ioredis'\nexport const main = () => ({ name: basename('/a/b'), redis: typeof Redis })\n", result: `{"name":"b","redis":"function"}`},
	{name: "node packages", kind: "nodejs:20", code: "exports.main = () => ({ has: ['openwhisk', 'redis', 'ioredis', '@aws-sdk/client-s3'].map(n => typeof require(n)) })", result: `{"has":["function","object","function","object"]}`},
	{name: "node archive with node_modules", kind: "nodejs:20", files: map[string]string{
		"package.json": `{"main": "lib/start.js"}`, "lib/start.js": "const own = require('own')\nexports.main = async () => ({ own, redis: typeof require('redis').createClient })",
		"node_modules/own/index.js": "module.exports = 'packed'",
	}, result: `{"own":"packed","redis":"function"}`},
	{name: "node archive of modules", kind: "nodejs:20", files: map[string]string{
		"package.json": `{"main": "index.js", "type": "module"}`, "index.js": "import { answer } from './answer.js'\nexport const main = async () => ({ answer: await answer })",
		"answer.js": "export const answer = Promise.resolve(42)",
	}, result: `{"answer":42}`},
	{name: "node throws", kind: "nodejs:20", code: "function main() { throw new Error('nooo') }", status: "action developer error", result: `{"error":"An error has occurred: Error: nooo"}`, log: "at main"},
	{name: "node that does not load", kind: "nodejs:20", code: "const x = require('nowhere')", status: "action developer error", log: "Cannot find module 'nowhere'"},
	{name: "node without a function", kind: "nodejs:20", code: "const other = 1", status: "action developer error", log: "Error during initialization"},
	{name: "node handler", kind: "nodejs:20", code: "exports.handler = async event => ({ n: event.n })", input: map[string]int{"n": 1}, result: `{"n":1}`},
	{name: "node default export", kind: "nodejs:20", code: "export default async function (args) { return { n: args.n } }", input: map[string]int{"n": 1}, result: `{"n":1}`},
	{name: "node handler with a context", kind: "nodejs:20", code: "exports.handler = async (event, context) => ({})", status: "action developer error", result: `{"error":"Initialization has failed due to: The function of the code takes 2 arguments, and an action has one, its parameters: leave the others out, and return the result."}`},
	{name: "node that prints", kind: "nodejs:20", code: "console.log(JSON.stringify({ n: 1 }))", status: "action developer error", result: `{"error":"Initialization has failed due to: Action entrypoint 'main' is not a function. Write function main (args), which returns the result as an object. What the code prints goes to the log."}`},
	{name: "node array", kind: "nodejs:20", code: "function main() { return ['a', 1] }", result: `["a",1]`},

	{name: "native script", kind: "native", code: base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\nwhile read -r line; do echo logged; echo '{\"from\":\"bash\"}' >&3; done\n")), result: `{"from":"bash"}`, log: "stdout: logged"},
	{name: "native archive", kind: "native", files: map[string]string{"exec": "#!/bin/sh\nwhile read -r line; do cat part.json >&3; done\n", "part.json": "{\"part\":1}\n"}, result: `{"part":1}`},
	{name: "native that prints", kind: "native", code: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\necho '{\"n\":1}'\n")), status: "action developer error", log: "stdout: {\"n\":1}", result: `{"error":"The action's process ended with status 0 before it read the input. See the logs for details. A native program serves until its input ends: for each activation it reads a line of JSON from its standard input, and writes its result, a line of JSON, to descriptor 3."}`},
	{name: "native array", kind: "native", code: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\nwhile read -r line; do echo '[1]' >&3; done\n")), result: `[1]`},
	{name: "native that answers no JSON", kind: "native", code: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\nwhile read -r line; do echo hello >&3; done\n")), status: "action developer error", result: `{"error":"The action did not return a dictionary or array."}`},
	{name: "native that is no program", kind: "native", code: base64.StdEncoding.EncodeToString([]byte("no program  ")), status: "action developer error"},
}

// TestEntryPoints runs functions as their authors may write them, each twice: a handler that stays serves the second time.
func TestEntryPoints(t *testing.T) {
	t.Parallel()
	needPackages(t)
	needNode(t)
	c := client(t, start(t, server.Options{}))
	for i, e := range entryPoints {
		t.Run(e.name, func(t *testing.T) {
			code := e.code
			if e.files != nil {
				code = archive(t, e.files)
			}
			name := fmt.Sprintf("entry%d", i)
			put(t, c, name, map[string]any{"exec": map[string]any{"kind": e.kind, "code": code, "main": e.main}})
			for range 2 {
				e.check(t, invoke(t, c, name, e.input))
			}
		})
	}
}

func (e *entryPoint) check(t *testing.T, r *server.Record) {
	t.Helper()
	if r.Response.Status != e.status && (e.status != "" || !r.Response.Success) {
		t.Errorf("%s: %s, logs %q", r.Response.Status, r.Response.Result, r.Logs)
	}
	if e.result != "" {
		equalJSON(t, r.Response.Result, e.result)
	}
	if !strings.Contains(strings.Join(r.Logs, "\n"), e.log) {
		t.Errorf("%q is not in the log %q", e.log, r.Logs)
	}
}

// archive is a zip of files, in base64.
func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// TestArraysInSequences: what one function returns the next is given, parameters or not.
func TestArraysInSequences(t *testing.T) {
	t.Parallel()
	needNode(t)
	c := client(t, start(t, server.Options{}))
	for name, exec := range map[string]map[string]string{
		"split":   {"kind": "nodejs:20", "code": "function main(args) { return args.text.split(args.at) }"},
		"reverse": {"kind": "python:3", "code": "def main(args):\n    return args[::-1]\n"},
		"join":    {"kind": "nodejs:20", "code": "function main(args) { return { text: args.join() } }"},
	} {
		put(t, c, name, map[string]any{"exec": exec, "parameters": []map[string]string{{"key": "at", "value": " "}}})
	}
	for name, components := range map[string][]string{"turned": {"split", "reverse", "join"}, "list": {"split", "reverse"}} {
		if err := c.PutSequence(t.Context(), name, components...); err != nil {
			t.Fatal(err)
		}
	}
	input := map[string]string{"text": "ada loves bob"}
	equalJSON(t, invoke(t, c, "turned", input).Response.Result, `{"text":"bob,loves,ada"}`)
	equalJSON(t, invoke(t, c, "list", input).Response.Result, `["bob","loves","ada"]`)
}

const pooledCaller = `
const http = require('http')
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
let used = 0

function post (path) {
  return new Promise((resolve, reject) => {
    const url = process.env.__OW_API_HOST + '/api/v1/namespaces/_/' + path
    const request = http.request(url, { method: 'POST', agent, auth: process.env.__OW_API_KEY }, answer => {
      let text = ''
      answer.on('data', part => { text += part })
      answer.on('end', () => resolve(JSON.parse(text)))
    })
    request.on('socket', () => { used += request.reusedSocket ? 1 : 0 })
    request.on('error', reject)
    request.end()
  })
}

exports.main = async () => ({ callee: (await post('actions/callee?blocking=true')).activationId, used })
`

// TestPooledConnectionsChangeHands: a connection that a handler keeps speaks for the activation that runs.
func TestPooledConnectionsChangeHands(t *testing.T) {
	t.Parallel()
	needNode(t)
	c := client(t, start(t, server.Options{Args: room(2)}))
	put(t, c, "callee", map[string]any{"exec": map[string]string{"kind": "nodejs:20", "code": "function main() { return {} }"}})
	put(t, c, "caller", map[string]any{"exec": map[string]string{"kind": "nodejs:20", "code": pooledCaller}})
	for call := range 3 {
		r := invoke(t, c, "caller", nil)
		var result struct {
			Callee string
			Used   int
		}
		decode(t, r.Response.Result, &result)
		if cause := stored(t, c, result.Callee).Cause; cause != r.ActivationID {
			t.Errorf("activation %s called %s, whose record names %q as its cause", r.ActivationID, result.Callee, cause)
		}
		if result.Used != call {
			t.Errorf("after %d calls, %d went over the connection that was there", call+1, result.Used)
		}
	}
}

// TestCutConnectionsAreNotUsedAgain: one that was cut, with the child that an activation left, is in no pool as the next begins.
func TestCutConnectionsAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	needNode(t)
	c := client(t, start(t, server.Options{Args: room(2)}))
	put(t, c, "callee", map[string]any{"exec": map[string]string{"kind": "nodejs:20", "code": "function main() { return {} }"}})
	put(t, c, "caller", map[string]any{"exec": map[string]string{"kind": "nodejs:20", "code": pooledCaller + `
const child = () => new Promise(resolve => require('child_process').spawn('sleep', ['99'], { detached: true, stdio: 'ignore' }).on('spawn', resolve).unref())
const call = exports.main
exports.main = async () => { await child(); return { called: (await call()).callee !== undefined, used } }
`}})
	for range 3 {
		equalJSON(t, invoke(t, c, "caller", nil).Response.Result, `{"called":true,"used":0}`)
	}
}

const lateWriter = `
const { createClient } = require('redis')
let redis

exports.main = async () => {
  if (!redis) {
    redis = createClient({ url: process.env.REDIS_URL })
    await redis.connect()
  }
  const seen = await redis.get('late')
  setImmediate(() => redis.set('late', 'written')) // after the answer
  return { seen }
}
`

// TestNothingIsServedBetweenActivations: what a function asks for after its answer waits for the next activation.
func TestNothingIsServedBetweenActivations(t *testing.T) {
	t.Parallel()
	needNode(t)
	s := start(t, server.Options{Args: room(4)})
	c := client(t, s)
	put(t, c, "late", map[string]any{"exec": map[string]string{"kind": "nodejs:20", "code": lateWriter}})
	put(t, c, "peek", map[string]any{"exec": map[string]string{
		"kind": "python:3",
		"code": "import os, redis\n\ndef main(args):\n    return {'late': redis.Redis.from_url(os.environ['REDIS_URL'], socket_timeout=None, decode_responses=True).get('late')}\n",
	}})
	equalJSON(t, invoke(t, c, "late", nil).Response.Result, `{"seen":null}`)
	equalJSON(t, invoke(t, c, "peek", nil).Response.Result, `{"late":null}`)
	equalJSON(t, invoke(t, c, "late", nil).Response.Result, `{"seen":"written"}`)
}
