package test

import (
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// traced is what the API tells of an activation when it is asked for the trace.
type traced struct {
	server.Record
	Trace struct {
		Queued, Launched, Finished, Promoted, Committed int64
		Speculative                                     bool
		Predicted, InTurn, Stalled                      string
		Held                                            int64
		Tally                                           *struct {
			Early, Used, Squashed, Skipped, Depth int
			Slots                                 []map[string]any
		}
	}
}

func traceOf(t *testing.T, c *server.Client, id string) (r traced) {
	t.Helper()
	if err := c.Get(t.Context(), "activations/"+id+"?trace=true", &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTrace invokes a sequence until it is known, and once more where it goes on otherwise than expected, and reads the traces.
func TestTrace(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--speculate", "all; load=any"}})
	c := client(t, s)
	wait := "import redis, os, time\nstate = redis.Redis.from_url(os.environ['REDIS_URL'], socket_timeout=None)\ndef main(args):\n    time.sleep(0.05)\n"
	putPython(t, c, map[string]string{
		"one": wait + "    return {'n': int(state.get('n') or 1)}\n", "two": wait + "    return {'n': args['n'] + 1}\n", "three": strings.Replace(wait, "time.sleep", "state.blpop('nothing', 0.01); time.sleep", 1) + "    return {'n': args['n'] * 2}\n",
	})
	if err := c.PutSequence(t.Context(), "chain", "one", "two", "three"); err != nil {
		t.Fatal(err)
	}
	first := traceOf(t, c, invoke(t, c, "chain", nil).ActivationID)
	if first.Trace.Tally != nil {
		t.Errorf("nothing was known, and it ran ahead: %+v", first.Trace)
	}
	var second, last traced
	for tries := 0; last.Trace.Held == 0 && tries < 200; tries++ { // on a busy machine its turn may come before it asks
		second = traceOf(t, c, invoke(t, c, "chain", nil).ActivationID)
		last = traceOf(t, c, second.Logs[2])
	}
	tally := second.Trace.Tally
	if tally == nil || tally.Early == 0 || tally.Used != tally.Early || tally.Depth == 0 || len(tally.Slots) != 0 {
		t.Fatalf("the second time: %+v", second.Trace)
	}
	for i, want := range []string{"", "what one #1 gives on this input was not known", "what two #2 gives"} {
		if x := traceOf(t, c, first.Logs[i]).Trace; !strings.HasPrefix(x.InTurn, want) || (x.InTurn == "") != (want == "") {
			t.Errorf("function %d did not run ahead at first, since %q", i, x.InTurn)
		}
	}
	if x := last.Trace; !x.Speculative || !strings.Contains(x.Predicted, "two #2 ") || x.Launched == 0 || x.Promoted < x.Launched || x.Committed < x.Promoted {
		t.Errorf("the last function's: %+v", x)
	} else if x.Held == 0 || !strings.HasPrefix(x.Stalled, "BLPOP waits for its turn: ") {
		t.Errorf("it asks for something that nobody may do ahead: %+v", x)
	}
	putPython(t, c, map[string]string{"set": wait + "    state.set('n', 5)\n    return {}\n"})
	invoke(t, c, "set", nil)
	third := traceOf(t, c, invoke(t, c, "chain", nil).ActivationID)
	equalJSON(t, third.Response.Result, `{"n":12}`)
	tally = third.Trace.Tally
	if tally == nil || tally.Squashed == 0 || tally.Slots[0]["kind"] != "prediction" {
		t.Fatalf("the third time: %+v", third.Trace)
	}
	begun := 0
	for _, slot := range tally.Slots {
		if slot["launched"] != nil {
			begun++
		}
		for _, member := range []string{"result", "response", "input", "logs", "activationId"} {
			if slot[member] != nil {
				t.Errorf("of a squashed slot there is %v", slot)
			}
		}
	}
	if begun != tally.Squashed {
		t.Errorf("of the squashed slots %d had begun, and %d are counted", begun, tally.Squashed)
	}
	if why := traceOf(t, c, invokeOff(t, c, "chain")).Trace.InTurn; why != "the request says off" {
		t.Errorf("a request has it off, and the trace says %q", why)
	}
	sh := newShell(t, s)
	sh.follow(t, []step{
		{"activation trace " + third.ActivationID, 0, "squashed: one #2 did not give what was expected", ""},
		{"activation trace " + third.ActivationID, 0, "in turn: one #2 did not give what was expected", ""},
		{"activation trace " + second.ActivationID, 0, "(BLPOP waits for its turn: ", ""},
		{"activation trace " + second.ActivationID + " -o jsonl", 0, `"inOrder":`, ""},
		{"activation trace " + second.ActivationID + " --svg trace.svg", 0, "=", "ok: wrote trace.svg"},
		{"activation trace --last", 0, "chain", ""}, // and not only its last function
		{"activation trace --last " + second.ActivationID, 2, "", "an id and --last do not go together"},
		{"activation trace", 2, "", "--last"},
	})
	if _, body, err := c.Do(t.Context(), http.MethodGet, "activations/"+third.ActivationID, nil); err != nil || strings.Contains(string(body), `"trace"`) {
		t.Errorf("who does not ask gets %s (%v)", body, err)
	}
}

// TestTraceOfLate: what is asked for ahead, and whose sandbox is there only when its turn has come, did not run ahead. What has its turn at
// once has no reason for that.
func TestTraceOfLate(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--speculate", "all; load=any"}})
	c := client(t, s)
	one := map[string]string{"kind": "python:3", "code": "import time\ndef main(args):\n    time.sleep(0.05)\n    return {'n': 1}\n"}
	put(t, c, "one", map[string]any{"exec": one, "annotations": []any{map[string]any{"key": "non-speculative", "value": true}}})
	const slow = "import time\ntime.sleep(3)\ndef main(args):\n    return {'n': args['n'] + 1}\n"
	putPython(t, c, map[string]string{"two": slow})
	if err := c.PutSequence(t.Context(), "chain", "one", "two"); err != nil {
		t.Fatal(err)
	}
	for _, why := range []string{"", "one #1 gave this on the same input before"} {
		putPython(t, c, map[string]string{"two": slow + "# " + why}) // of new code there is no sandbox
		answer, body := invokeAhead(t, c, "chain", "all; load=any", `{}`)
		if tally := answer.Header.Get("X-Forerun-Speculation"); body != `{"n":2}` || tally != "early=0, used=0, squashed=0, skipped=0" {
			t.Errorf("it gave %s, and ran ahead %q", body, tally)
		}
		chain := traceOf(t, c, answer.Header.Get("X-Openwhisk-Activation-Id"))
		if x := traceOf(t, c, chain.Logs[0]).Trace; x.Speculative || x.InTurn != "" {
			t.Errorf("the first function's: %+v", x)
		}
		if x := traceOf(t, c, chain.Logs[1]).Trace; x.Predicted != why || x.Speculative != (why != "") || x.Launched != x.Promoted {
			t.Errorf("the last function's: %+v", x)
		}
	}
	newShell(t, s).follow(t, []step{
		{"activation trace --last", 0, "speculative, began in turn: one #2 gave this on the same input before", ""},
		{"activation trace --last", 0, " 0 speculative and right, 0 squashed, 0 skipped; 1 speculative, began in turn.", ""},
	})
}

// invokeOff invokes an action of whose workflow nothing is to run ahead, and returns the activation's id.
func invokeOff(t *testing.T, c *server.Client, name string) string {
	t.Helper()
	answer, body := invokeAhead(t, c, name, "off", `{}`)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	return answer.Header.Get("X-Openwhisk-Activation-Id")
}
