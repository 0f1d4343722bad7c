package test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// talks says something, waits until the test lets it go on, and says more.
const talks = `
import os, redis, sys
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)

def main(args):
    print("before", args["n"], flush=True)
    print("aside", args["n"], file=sys.stderr, flush=True)
    state.blpop("go", 0)
    print("after", args["n"])
    print("the end", end="")
    return {}
`

// begun invokes an action without waiting for it, and returns the id of the activation.
func begun(t *testing.T, c *server.Client, name string, params any) string {
	t.Helper()
	status, body, err := c.Do(t.Context(), "POST", "actions/"+name, params)
	var accepted struct{ ActivationID string }
	if err == nil {
		err = json.Unmarshal(body, &accepted)
	}
	if err != nil || status != http.StatusAccepted {
		t.Fatalf("%s: %d %s (%v)", name, status, body, err)
	}
	return accepted.ActivationID
}

// until reads what a follower shows, to a line that holds the text.
func (r *running) until(t *testing.T, text string) (lines []string) {
	t.Helper()
	for line := range r.lines {
		if lines = append(lines, line); strings.Contains(line, text) {
			return lines
		}
	}
	t.Fatalf("it ended, or took too long, without %q; it wrote:\n%s", text, strings.Join(lines, "\n"))
	return nil
}

// TestFollowRunning: a follower sees each line while the function runs, in order and once; so does one that comes later.
func TestFollowRunning(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{Redis: true})
	c, state, sh := client(t, s), outside(t, s), newShell(t, s)
	putPython(t, c, map[string]string{"talks": talks, "other": "def main(args):\n    print('of another')\n    return {}\n"})
	first := sh.begin(t, "logs -f talks")
	id := begun(t, c, "talks", map[string]int{"n": 1})
	lines := first.until(t, "before 1")
	if !strings.Contains(strings.Join(lines, "\n"), "aside 1") {
		lines = append(lines, first.until(t, "aside 1")...)
	}
	invoke(t, c, "other", nil)
	second := sh.begin(t, "logs -f -o jsonl")
	later := second.until(t, "aside 1")
	if err := state.RPush(t.Context(), "go", "on").Err(); err != nil {
		t.Fatal(err)
	}
	lines = append(lines, first.until(t, "the end")...)
	later = append(later, second.until(t, "the end")...)
	record := awaitRecord(t, c, id)
	var want []string
	for _, line := range record.Logs {
		want = append(want, "talks "+line)
	}
	if !slices.Equal(lines, want) {
		t.Errorf("a follower was shown\n%s\nand the record has\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	var texts []string
	for _, line := range later {
		var shown struct{ ActivationID, Text string }
		if err := json.Unmarshal([]byte(line), &shown); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if shown.ActivationID == id {
			texts = append(texts, shown.Text)
		}
	}
	if want := []string{"before 1", "aside 1", "after 1", "the end"}; !slices.Equal(slices.Sorted(slices.Values(texts)), slices.Sorted(slices.Values(want))) {
		t.Errorf("a follower that came later was shown %q", texts)
	}
	for _, follower := range []*running{first, second} {
		if code := follower.interrupt(t); code != 0 {
			t.Errorf("a follower ended with %d after Ctrl-C", code)
		}
	}
}

// TestFollowOddOutput: a follower shows what the record has, whatever a function writes and however it ends.
func TestFollowOddOutput(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c, sh := client(t, s), newShell(t, s)
	for name, body := range map[string]string{
		"bytes":   `os.write(1, b"\xff\xfe\x00 caf\xc3\xa9\n\n\r\n")`,
		"large":   `os.write(1, b"x" * 900_000 + b"\n")`,
		"beyond":  `[os.write(1, b"line %d " % n + b"y" * 50_000 + b"\n") for n in range(40)]`,
		"endless": `os.write(1, b"z" * 3_000_000)`,
		"killed":  `os.write(1, b"last words\n"); os.kill(os.getpid(), 9)`,
		"fails":   `print("failing"); raise ValueError("no")`,
		"quiet":   `pass`,
	} {
		err := c.Put(t.Context(), name, map[string]any{
			"exec":   map[string]string{"kind": "python:3", "code": "import os\ndef main(args):\n    " + body + "\n    return {}\n"},
			"limits": map[string]int{"logs": 1},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	putPython(t, c, map[string]string{"ready": "def main(args):\n    print('ready')\n    return {}\n"})
	follower := sh.begin(t, "logs -f -l 0 -o jsonl")
	invoke(t, c, "ready", nil)
	follower.until(t, "ready")
	for _, name := range []string{"bytes", "large", "beyond", "endless", "killed", "fails", "quiet"} {
		record := awaitRecord(t, c, begun(t, c, name, map[string]int{}))
		invoke(t, c, "ready", nil)
		var shown []string
		for _, line := range follower.until(t, `"text":"ready"`) {
			var l struct{ ActivationID, Time, Stream, Text string }
			if json.Unmarshal([]byte(line), &l) == nil && l.ActivationID == record.ActivationID { // else it tells of the failure
				shown = append(shown, l.Time+" "+l.Stream+": "+l.Text)
			}
		}
		if !slices.Equal(shown, record.Logs) {
			t.Errorf("%s: a follower was shown %.300q (%d lines), and the record has %.300q (%d)", name, shown, len(shown), record.Logs, len(record.Logs))
		}
	}
	if code := follower.interrupt(t); code != 0 {
		t.Errorf("the follower ended with %d after Ctrl-C", code)
	}
}

// TestFollowSpeculative: what a squashed function wrote is never shown, and what a promoted one wrote is, while the workflow runs.
func TestFollowSpeculative(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{Redis: true, Args: []string{"--speculate", "all; least=0s; load=any"}})
	c, state, sh := client(t, s), outside(t, s), newShell(t, s)
	const waits = `
import os, redis
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None, decode_responses=True)

def main(args):
    return {"n": state.blpop("%s", 0)[1], "input": args.get("n")}
`
	putPython(t, c, map[string]string{
		"first": strings.ReplaceAll(waits, "%s", "first"), "last": strings.ReplaceAll(waits, "%s", "last"),
		"says": "def main(args):\n    print('says', args['n'], flush=True)\n    return args\n",
	})
	if err := c.PutSequence(t.Context(), "seq", "first", "says", "last"); err != nil {
		t.Fatal(err)
	}
	let := func(name, n string) {
		t.Helper()
		if err := state.RPush(t.Context(), name, n).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		let("first", "guess")
		let("last", "end")
		invoke(t, c, "seq", map[string]string{})
	}
	follower := sh.begin(t, "logs -f -l 0 says")
	id := begun(t, c, "seq", map[string]string{})
	eventually(t, func() bool { return gauge(t, s, "forerun_sandboxes_busy") == "3" })
	let("first", "truth")
	shown := follower.until(t, "stdout: says truth")
	let("last", "end")
	record := awaitRecord(t, c, id)
	invoke(t, c, "says", map[string]string{"n": "at last"})
	shown = append(shown, follower.until(t, "at last")...)
	if len(shown) != 2 {
		t.Errorf("a follower was shown\n%s", strings.Join(shown, "\n"))
	}
	var trace struct {
		Trace struct{ Tally struct{ Squashed int } }
	}
	if err := c.Get(t.Context(), "activations/"+record.ActivationID+"?trace=true", &trace); err != nil || trace.Trace.Tally.Squashed == 0 {
		t.Errorf("nothing was squashed: %+v (%v)", trace, err)
	}
}

// TestFollowOwnTenant: a tenant's follower sees nothing of another's activations.
func TestFollowOwnTenant(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	ada, bob := as(t, s, operate(t, s, "create", "ada")), as(t, s, operate(t, s, "create", "bob"))
	for name, c := range map[string]*server.Client{"ada": ada, "bob": bob} {
		putPython(t, c, map[string]string{"hello": "def main(args):\n    print('of " + name + "', args['n'])\n    return {}\n"})
	}
	follower := newShell(t, nil).begin(t, "logs -f --apihost "+s.URL+" --auth "+bob.Auth)
	invoke(t, bob, "hello", map[string]int{"n": 1})
	shown := follower.until(t, "of bob 1")
	invoke(t, ada, "hello", map[string]int{"n": 1})
	invoke(t, bob, "hello", map[string]int{"n": 2})
	if shown = append(shown, follower.until(t, "of bob 2")...); len(shown) != 2 {
		t.Errorf("bob was shown\n%s", strings.Join(shown, "\n"))
	}
	if code, answer := ask(t, bob, "GET", "ada/feed", ""); code != http.StatusForbidden {
		t.Errorf("ada's feed is answered to bob with %d %s", code, answer)
	}
}
