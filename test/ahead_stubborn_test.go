package test

import (
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/history"
)

// stubborn are functions that do not want to end. Each gets what the one before it was expected to return, or what it did.
var stubbornPython = map[string]string{
	"ignores SIGTERM": "import signal, time\nfor s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\ntime.sleep(100)",
	"forks": `
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(100)
        os._exit(0)
time.sleep(100)`,
	"forks without end": `
for _ in range(8):
    if os.fork() == 0:
        while True: # each is gone as it has another
            try:
                if os.fork(): os._exit(0)
            except OSError: pass
while True:
    try: os.fork()
    except OSError: pass`,
	"takes all memory": "kept = []\nwhile True: kept.append(bytearray(b'x') * (8 << 20))",
	"stops all":        "import signal\nos.kill(-1, signal.SIGSTOP)\nwhile True: pass",
	"kills all":        "os.kill(-1, 9)\nwhile True: pass",
	"writes for ever":  "while True: print('noise' * 1000)",
	"fills /tmp":       "f = open('/tmp/noise', 'wb')\nwhile True:\n    try: f.write(b'x' * 65536)\n    except OSError: f.seek(0)",
	"waits for a list": "state.blpop('never', 0)",
	"holds a lock":     "import fcntl, threading\nf = open('/tmp/lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX)\nheld = threading.Lock(); held.acquire(); held.acquire()",
	"waits in a transaction": `
p = state.pipeline()
p.watch('n'); p.multi(); p.set('wrong', 'yes')
import time; time.sleep(100)
p.execute()`,
	"writes records of 16 MB": "while True: state.set('wrong', b'x' * (16 << 20)); state.get('wrong')",
	"reads 10,000 records":    "while True: state.mget(['key:%d' % i for i in range(10000)]); state.set('wrong', 'yes')",
	"computes":                "while True: pass",
	"fails":                   "print('wrong'); raise ValueError('wrong')",
	"exits":                   "import os; print('wrong', flush=True); os._exit(3)",
}

// stubbornNode is the same in Node, whose process is killed and another takes over.
var stubbornNode = map[string]string{
	"ignores SIGTERM": "for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {})\nawait new Promise(() => setInterval(() => {}, 1000))",
	"starts others": `
for (let i = 0; i < 5; i++) require('child_process').spawn('sleep', ['100'], { detached: true, stdio: 'ignore' }).unref()
await new Promise(() => setInterval(() => {}, 1000))`,
	"starts threads": `
for (let i = 0; i < 2; i++) new (require('worker_threads').Worker)('for (;;);', { eval: true })
await new Promise(() => setInterval(() => {}, 1000))`,
	"writes for ever":         "for (;;) console.log('noise'.repeat(1000))",
	"waits for a list":        "await (await state()).blPop('never', 0)",
	"writes records of 16 MB": "for (const s = await state(); ;) await s.set('wrong', 'x'.repeat(16 << 20))",
	"computes":                "for (;;);",
	"fails":                   "console.log('wrong'); throw new Error('wrong')",
	"exits":                   "console.log('wrong'); process.exit(3)",
}

// stubbornNative is the same as a program.
var stubbornNative = map[string]string{
	"ignores SIGTERM": stubbornPython["ignores SIGTERM"],
	"forks":           stubbornPython["forks"],
	"writes for ever": stubbornPython["writes for ever"],
	"fills /tmp":      stubbornPython["fills /tmp"],
	"holds a lock":    stubbornPython["holds a lock"],
	"computes":        stubbornPython["computes"],
	"fails":           stubbornPython["fails"],
	"exits":           stubbornPython["exits"],
}

const (
	pythonHead = "import os, redis\nstate = redis.Redis.from_url(os.environ['REDIS_URL'], socket_timeout=None)\ndef main(args):\n"
	nodeHead   = `
let connected
const state = () => connected ??= require('redis').createClient({ url: process.env.REDIS_URL }).connect()
exports.main = async args => {
`
	nativeHead = "#!/usr/bin/python3\nimport json, os, sys\nout = os.fdopen(3, 'w')\nfor line in sys.stdin:\n    args = json.loads(line)['value']\n"
)

// TestAheadStubborn has a function of each kind run ahead with an input that turns out wrong: the invocation's answer does not wait
// for it, nothing of it is seen, and its sandbox serves on.
func TestAheadStubborn(t *testing.T) {
	needPackages(t)
	needNode(t)
	ofPython := func(body string) string {
		return pythonHead + "    if args['n'] == 1:\n        " + indented(body) + "\n    return {'right': args['n']}\n"
	}
	for name, c := range map[string]struct {
		kind  string
		fresh bool // annotation fresh-process
		cases map[string]string
		code  func(body string) string
	}{
		"python":      {"python:3", true, stubbornPython, ofPython},
		"python kept": {"python:3", false, stubbornPython, ofPython},
		"node": {"nodejs:default", false, stubbornNode, func(body string) string {
			return nodeHead + "  if (args.n === 1) {" + body + "\n  }\n  return { right: args.n }\n}\n"
		}},
		"native": {"native", false, stubbornNative, func(body string) string {
			code := nativeHead + "    if args['n'] == 1:\n        " + indented(body) + "\n    print(json.dumps({'right': args['n']}), file=out, flush=True)\n"
			return base64.StdEncoding.EncodeToString([]byte(code))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStormy(t, filepath.Join(t.TempDir(), "data"), rand.New(rand.NewPCG(history.Seed(t), 4)))
			putPython(t, s.client, map[string]string{"says": "def main(args):\n    return args\n"})
			for _, name := range slices.Sorted(maps.Keys(c.cases)) {
				// After two wrong guesses in a row a function's result is not guessed again: each case has one of its own.
				putPython(t, s.client, map[string]string{
					"tells": pythonHead + "    import time\n    n = int(state.get('n') or 0)\n    time.sleep(0.04)\n    return {'n': n}\n# for " + name + "\n",
				})
				action := map[string]any{"exec": map[string]any{"kind": c.kind, "code": c.code(c.cases[name])}}
				action["annotations"] = []any{map[string]any{"key": "fresh-process", "value": c.fresh}}
				put(t, s.client, "stubborn", action)
				for sequence, second := range map[string]string{"teaches": "says", "pair": "stubborn"} {
					if err := s.client.PutSequence(t.Context(), sequence, "tells", second); err != nil {
						t.Fatal(err)
					}
				}
				invoke(t, s.client, "stubborn", map[string]int{"n": 0}) // has a sandbox from now on
				s.stubborn(name)
			}
			s.calm()
			s.records()
			s.end()
		})
	}
}

// indented is the body of a function, but its first line, below an if.
func indented(body string) string {
	return strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n        ")
}

// stubborn has "tells" run ahead of its partner, which is expected to get 1 and gets 2.
func (s *stormy) stubborn(name string) {
	s.Helper()
	const least, most = 3, 50 // on a busy machine little runs ahead
	squashed := 0
	for round := 0; round < least || squashed == 0 && round < most; round++ {
		s.set("n", 1)
		if r := invoke(s.T, s.client, "teaches", nil); string(r.Response.Result) != `{"n":1}` {
			s.Fatalf("%s: %s", name, r.Response.Result)
		}
		s.set("n", 2)
		r := invoke(s.T, s.client, "pair", nil)
		if string(r.Response.Result) != `{"right":2}` {
			s.Errorf("%s: the invocation has answered %s", name, r.Response.Result)
		}
		if tally := traceOf(s.T, s.client, r.ActivationID).Trace.Tally; tally != nil {
			squashed += tally.Squashed
		}
	}
	if n, err := s.state.Exists(s.Context(), "wrong").Result(); err != nil || n != 0 {
		s.Errorf("%s: what was squashed has written (%v)", name, err)
	}
	if squashed == 0 {
		s.Errorf("%s: nothing was squashed", name)
	}
}
