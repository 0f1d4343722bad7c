package test

import (
	"fmt"
	"net/http"
	"testing"

	"forerun.dev/forerun/test/server"
)

// The functions of TestAheadOfImpatientClients: the first is slow if there is to be a pause; the clients of the others do not wait for
// long, but ask again.
const impatient = `
import base64, os, redis, urllib.request
from redis.backoff import NoBackoff
from redis.retry import Retry
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=0.8, retry=Retry(NoBackoff(), 100))
def ask(path):
    r = urllib.request.Request(os.environ["__OW_API_HOST"] + "/api/v1/namespaces/_/" + path, method="POST", data=b"{}")
    r.add_header("Authorization", "Basic " + base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode())
    r.add_header("Content-Type", "application/json")
    while True:
        try:
            with urllib.request.urlopen(r, timeout=0.8) as answer:
                return answer.status
        except TimeoutError:
            pass
`

var impatients = map[string]string{
	"slow": `
import os, redis, time
state = redis.Redis.from_url(os.environ["REDIS_URL"])
def main(args):
    time.sleep(float(state.get("pause")))
    if args["to"] == "waits":
        state.incr("pushed")
        state.rpush("list", "x")
    return {}
`,
	"pops":      impatient + "def main(args):\n    return {'popped': state.spop('pool') is not None}\n",
	"waits":     impatient + "def main(args):\n    return {'popped': state.blpop('list') is not None}\n",
	"publishes": impatient + "def main(args):\n    return {'heard': state.publish('news', 'x')}\n",
	"transacts": impatient + `
def main(args):
    p = state.pipeline()
    p.incr("count")
    p.spop("set")
    return {"done": len(p.execute())}
`,
	"asks":    impatient + "def main(args):\n    return {'answer': ask('actions/counted')}\n",
	"counted": impatient + "def main(args):\n    return {'counted': state.incr('counted')}\n",
}

// TestAheadOfImpatientClients: what a function's client gives up after a while, and asks for again, because the function is ahead of its turn
// happens as often as where nothing runs ahead.
func TestAheadOfImpatientClients(t *testing.T) {
	needPackages(t)
	t.Parallel()
	s := start(t, server.Options{Redis: true, Args: []string{"--speculate", "all; load=any"}})
	c, state := client(t, s), outside(t, s)
	putPython(t, c, impatients)
	many := []any{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"}
	for _, set := range []string{"pool", "set"} {
		if err := state.SAdd(t.Context(), set, many...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	news := state.Subscribe(t.Context(), "news")
	defer news.Close()
	if _, err := news.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := news.Channel()
	count := func(key string) int {
		n, _ := state.Get(t.Context(), key).Int() // 0 if there is none
		return n
	}
	for name, happened := range map[string]func() int{
		"pops":      func() int { return len(many) - int(state.SCard(t.Context(), "pool").Val()) },
		"waits":     func() int { return count("pushed") - int(state.LLen(t.Context(), "list").Val()) },
		"publishes": func() int { return len(heard) },
		"transacts": func() int { return len(many) - int(state.SCard(t.Context(), "set").Val()) },
		"asks":      func() int { return count("counted") },
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.PutSequence(t.Context(), "slow-"+name, "slow", name); err != nil {
				t.Fatal(err)
			}
			var plain string
			for i, how := range []struct{ pause, speculate, tally string }{
				{"0", "off", ""},
				{"0", "all; least=0s; load=any", "early=0, used=0, squashed=0, skipped=0"}, // it becomes known
				{"2.5", "all; least=0s; load=any", "early=1, used=0, squashed=1, skipped=0"},
			} {
				if err := state.Set(t.Context(), "pause", how.pause, 0).Err(); err != nil {
					t.Fatal(err)
				}
				answer, body := invokeAhead(t, c, "slow-"+name, how.speculate, fmt.Sprintf(`{"to":%q}`, name))
				if i == 0 {
					plain = body
				}
				if answer.StatusCode != http.StatusOK || body != plain {
					t.Errorf("with %s it gave %d %s, and %s with speculation off", how.speculate, answer.StatusCode, body, plain)
				}
				if tally := answer.Header.Get("X-Forerun-Speculation"); tally != how.tally {
					t.Errorf("with %s it ran ahead %q, want %q", how.speculate, tally, how.tally)
				}
				eventually(t, func() bool { return happened() > i })
				if n := happened(); n != i+1 {
					t.Errorf("%d invocations have done it %d times", i+1, n)
				}
			}
		})
	}
}
