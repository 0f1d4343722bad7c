package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

// How much the functions of TestAheadLarge read and write.
const (
	largeRecord = 16 << 20
	manyRecords = 10_000
)

// Functions that read or write much; they read again what they wrote, say by their process's name that
// they have done all, and wait for their turn.
const largeHeader = `
import ctypes, os, redis
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)
def done(args, **numbers):
    made = state.get("made:%d" % args["n"])
    ctypes.CDLL(None).prctl(15, b"done")  # PR_SET_NAME
    state.publish("made", "x")
    return args | numbers | {"made": [len(made), made[-1]]}
`

var largeFunctions = map[string]string{
	"first": `
def main(args):
    state.blpop("go")
    return {"n": int(state.get("n"))}
`,
	"reads": `
def main(args):
    keys = ["key:%d" % i for i in range(MANY)]
    at_once = sum(map(int, state.mget(keys)))
    with state.pipeline(transaction=False) as p:
        for key in keys:
            p.get(key)
        one_by_one = sum(map(int, p.execute()))
    state.set("made:%d" % args["n"], at_once)
    return done(args, at_once=at_once, one_by_one=one_by_one)
`,
	"writes": `
def main(args):
    key = "made:%d" % args["n"]
    state.set(key, bytes([97 + args["n"]]) * (LARGE - 1))
    return done(args, size=state.append(key, "!"))
`,
}

// TestAheadLarge has a function that reads 10,000 records, and one that writes one of 16 MB, run ahead: where the guess was right
// all of it counts, where it was wrong, or others wrote one of the records, nothing.
func TestAheadLarge(t *testing.T) {
	needPackages(t)
	l := &large{stormy: newStormy(t, filepath.Join(t.TempDir(), "data"), rand.New(rand.NewPCG(history.Seed(t), 6)))}
	for name, text := range largeFunctions {
		code := strings.NewReplacer("MANY", fmt.Sprint(manyRecords), "LARGE", fmt.Sprint(largeRecord)).Replace(largeHeader + text)
		put(t, l.client, name, map[string]any{
			"exec":        map[string]any{"kind": "python:3", "code": code},
			"annotations": []any{map[string]any{"key": "fresh-process", "value": true}}, // a kept process keeps the name that says so
		})
	}
	var records []any
	for i := range manyRecords {
		records = append(records, fmt.Sprint("key:", i), i)
	}
	if err := l.state.MSet(t.Context(), records...).Err(); err != nil {
		t.Fatal(err)
	}
	l.learn("reads")
	l.run(largeRun{function: "reads", gives: 1})
	l.run(largeRun{function: "reads", gives: 1, others: true, squashed: "conflict"})
	l.run(largeRun{function: "reads", gives: 2, squashed: "prediction"})
	l.learn("writes")
	l.run(largeRun{function: "writes", gives: 1})
	l.run(largeRun{function: "writes", gives: 2, squashed: "prediction"})
	l.records()
	l.end()
}

// large is a server whose chain, "first" and one of the functions, waits in "first".
type large struct {
	*stormy
	more int // by which the sum of the records has grown
}

// largeRun is one invocation of the chain, in which "first" is expected to give 1.
type largeRun struct {
	function string
	gives    int
	others   bool   // write one of the records when all has run ahead
	squashed string // why it was, if so
}

// run invokes the chain. When all has run ahead nothing of it is to be seen; in the end there is what the input gives that it had.
func (l *large) run(run largeRun) {
	l.Helper()
	l.state.Del(l.Context(), "made:1", "made:2")
	l.set("n", run.gives)
	eventually(l.T, func() bool { return !l.hasDone() })
	ended := make(chan *server.Record, 1)
	go func() {
		r, err := l.client.Invoke(context.WithoutCancel(l.Context()), "chain", nil)
		if err != nil {
			l.Error(err)
		}
		ended <- r
	}()
	eventually(l.T, l.hasDone)
	if made := l.state.Exists(l.Context(), "made:1", "made:2").Val(); made != 0 {
		l.Errorf("%+v: what it made ahead is seen", run)
	}
	if run.others {
		l.more++
		l.set("key:7777", 7777+l.more)
	}
	l.letGo()
	r := traceOf(l.T, l.client, (<-ended).ActivationID)
	l.calm()
	l.mustHaveMade(run, r)
	tally := r.Trace.Tally
	if tally == nil || tally.Early == 0 || (tally.Squashed > 0) != (run.squashed != "") || run.squashed == "" && tally.Used != 1 {
		l.Fatalf("%+v: %+v", run, tally)
	}
	if run.squashed != "" && tally.Slots[0]["kind"] != run.squashed {
		l.Errorf("%+v: %v", run, tally.Slots)
	}
}

// mustHaveMade looks at the result and at the state.
func (l *large) mustHaveMade(run largeRun, r traced) {
	l.Helper()
	sum := manyRecords*(manyRecords-1)/2 + l.more
	right, says := fmt.Sprint(sum), fmt.Sprintf(`"at_once":%d,"one_by_one":%d`, sum, sum)
	if run.function == "writes" {
		right, says = strings.Repeat(string(rune('a'+run.gives)), largeRecord-1)+"!", fmt.Sprintf(`"size":%d`, largeRecord)
	}
	equalJSON(l.T, r.Response.Result, fmt.Sprintf(`{%s,"made":[%d,%d],"n":%d}`, says, len(right), right[len(right)-1], run.gives))
	made := l.state.MGet(l.Context(), fmt.Sprint("made:", run.gives), fmt.Sprint("made:", 3-run.gives)).Val()
	if made[0] != right || made[1] != nil {
		l.Errorf("%+v: it made %.20q, of the other input there is %.20q", run, made[0], made[1])
	}
}

// learn has a chain run until it is known that it begins with 1.
func (l *large) learn(function string) {
	l.Helper()
	if err := l.client.PutSequence(l.Context(), "chain", "first", function); err != nil {
		l.Fatal(err)
	}
	l.set("n", 1)
	for range learning {
		l.letGo()
		invoke(l.T, l.client, "chain", nil)
	}
}

// hasDone tells whether a function has said that it has done all.
func (l *large) hasDone() bool {
	for _, first := range firsts(l.server) {
		for _, pid := range below(first) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(name)) == "done" {
				return true
			}
		}
	}
	return false
}
