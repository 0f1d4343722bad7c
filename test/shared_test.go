package test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/apps"
	"forerun.dev/forerun/test/compare"
	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

// How many clients use the same records in TestSharedRecords, and how many invocations each makes without FORERUN_SOAK.
const (
	sharedClients     = 5
	sharedInvocations = 8
)

// Functions that share records with everybody. What they give follows from k, so that it is guessed; what they saw of the counter they
// write into their logs: what they made of it, and what they read.
const sharedHeader = `
import os, redis, random, time, urllib.request
state = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True, socket_timeout=None)
def get():
    n = int(state.get("total") or 0)
    print("get", n)
    return n
def make():
    n = state.incr("total")
    print("made", n)
    return n
`

var sharedFunctions = map[string]string{
	"count": `
def main(args):
    state.rpush("pushed", make())
    time.sleep(0.003)
    return args
`,
	"look": `
def main(args):
    get()
    time.sleep(0.001 * args["k"])
    get()
    return args
`,
	"move": `
def main(args):
    source, target = "account:" + str(args["k"]), "account:" + str((args["k"] + 1) % 3)
    with state.pipeline() as p:
        while True:
            try:
                p.watch(source, target)
                left, right = int(p.get(source)), int(p.get(target))
                p.multi()
                p.set(source, left - 1)
                p.set(target, right + 1)
                p.execute()
                return args
            except redis.WatchError:
                pass
`,
	"audit": `
def main(args):
    sum_ = sum(map(int, state.mget("account:0", "account:1", "account:2")))
    with state.pipeline() as p:
        again = sum(map(int, p.get("account:0").get("account:1").get("account:2").execute()))
    if sum_ != 300 or again != 300:
        return {"error": "the accounts hold %d and %d" % (sum_, again)}
    return args
`,
	"win": `
def main(args):
    if state.setnx("lock:%d" % (get() // 5), "locked"):
        print("won 1")
    return args
`,
	"send": `
def main(args):
    urllib.request.urlopen(OUTSIDE, b"made!%d" % make()).read()
    return args
`,
	"calls": `
import openwhisk
def main(args):
    openwhisk.invoke("count", args)
    openwhisk.invoke("look", args)
    return openwhisk.invoke("chain", args)
`,
}

// sharedOrder is the order in which what has no other order runs: what the function calls.
var sharedOrder = []string{"count", "look", "chain"}

// shared is what one invocation saw.
type shared struct {
	id         string
	name       string
	saw        []saw
	begin, end time.Time
}

// saw is that the counter was read, or made, to be n.
type saw struct {
	what string
	n    int
}

// TestSharedRecords has clients invoke functions that use the same records at the same time, ahead, while another client writes them
// too. What they see must be what they would one after the other: no increment is lost or seen twice, time does not go back for
// anybody, what was moved is neither gone nor there twice, and everything is done and sent once.
func TestSharedRecords(t *testing.T) {
	t.Parallel()
	outside, goOn := needOutside(t), history.Soak(t)
	seed := history.Seed(t)
	side := differing(t, outside, []string{"--egress-allow", outside.String() + "/32", "--speculate", "all; least=0s; load=any"})
	code := make(map[string]string)
	for name, text := range sharedFunctions {
		code[name] = sharedHeader + fmt.Sprintf("OUTSIDE = %q\n", side.Outside.URL) + text
	}
	putPython(t, side.Client, code)
	for _, sequence := range [][]string{
		{"chain", "count", "look", "move", "audit", "count"}, {"short", "win", "look", "count"}, {"effect", "look", "send", "audit", "look", "move"}, {"nested", "calls", "short"},
	} {
		if err := side.Client.PutSequence(t.Context(), sequence[0], sequence[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		side.State.Set(t.Context(), fmt.Sprint("account:", i), 100, 0)
	}
	var all []shared
	var early, used, squashed int
	met := func() bool { return used > 0 && squashed > 0 }
	const rounds = 20 // on a machine that is busy otherwise little runs ahead
	for round := 0; (round == 0 || goOn() || !met() && round < rounds) && !t.Failed(); round++ {
		all = append(all, shareRecords(t, side, uint64(round)<<32^seed, []string{"chain", "short", "effect", "nested"}, countAlong)...)
		checkShared(t, side, all)
		early, used, squashed = side.Tally()
	}
	t.Logf("ahead: %d; of these used: %d, squashed: %d", early, used, squashed)
	if !met() {
		t.Error("nothing ran ahead, or nothing was in each other's way")
	}
}

// otherClient does something to the records as a client of the state that is no function, and tells what it saw.
type otherClient func(ctx context.Context, state *redis.Client) ([]saw, error)

// countAlong counts as functions do.
func countAlong(ctx context.Context, state *redis.Client) ([]saw, error) {
	n, err := state.Incr(ctx, "total").Result()
	return []saw{{"counted", int(n)}}, err
}

// shareRecords lets all clients invoke what they draw of the names, and the others do along with them what they do.
func shareRecords(t *testing.T, side *compare.Side, seed uint64, names []string, others ...otherClient) []shared {
	t.Helper()
	invoked := make(chan struct{})
	var mu sync.Mutex
	var all []shared
	add := func(s shared) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
	}
	var clients, along sync.WaitGroup
	for _, other := range others {
		along.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				s := shared{name: "another client", begin: time.Now()}
				var err error
				if s.saw, err = other(t.Context(), side.State); err != nil {
					t.Errorf("another client: %v", err)
				}
				s.end = time.Now()
				add(s)
				select {
				case <-invoked:
					return
				case <-tick.C:
				}
			}
		})
	}
	for i := range sharedClients {
		clients.Go(func() {
			chance := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range sharedInvocations {
				s, err := invokeShared(t, side, names[chance.IntN(len(names))], chance.IntN(3))
				if err != nil {
					t.Errorf("seed %d, client %d, invocation %d: %s: %v", seed, i, n, s.name, err)
					return
				}
				add(s)
			}
		})
	}
	clients.Wait()
	close(invoked)
	along.Wait()
	return all
}

func invokeShared(t *testing.T, side *compare.Side, name string, k int) (shared, error) {
	t.Helper()
	s := shared{name: name, begin: time.Now()}
	answer, err := side.Do(t.Context(), apps.Step{Method: "POST", Path: "actions/" + name + "?blocking=true", Body: fmt.Sprintf(`{"k":%d}`, k)})
	switch {
	case err == nil && answer.Status == http.StatusAccepted: // the machine is busy
		err = side.Await(t.Context(), answer.IDs[0])
	case err == nil && answer.Status != http.StatusOK:
		err = errors.New(answer.Text)
	}
	s.end = time.Now()
	var r server.Record
	err = cmp.Or(err, json.Unmarshal(answer.Body, &r))
	s.id = r.ActivationID
	return s, err
}

// readLogs fills in what the invocations saw: the logs of their functions, in the order of their programs.
func readLogs(t *testing.T, side *compare.Side, all []shared) {
	t.Helper()
	children := make(map[string][]*server.Record)
	byID := make(map[string]*server.Record)
	for skip := 0; ; skip += 200 {
		var page []*server.Record
		if err := side.Client.Get(t.Context(), fmt.Sprintf("activations?docs=true&limit=200&skip=%d", skip), &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			byID[r.ActivationID] = r
			children[r.Cause] = append(children[r.Cause], r)
		}
		if len(page) < 200 {
			break
		}
	}
	var walk func(r *server.Record) []saw
	walk = func(r *server.Record) (list []saw) {
		isSequence := string(r.Annotation("kind")) == `"sequence"`
		for _, line := range r.Logs {
			var s saw
			if isSequence {
				list = append(list, walk(byID[line])...)
			} else if _, text, ok := strings.Cut(line, "stdout: "); ok {
				_, err := fmt.Sscan(text, &s.what, &s.n)
				if err != nil {
					t.Errorf("%s logged %q", r.Name, line)
				}
				list = append(list, s)
			}
		}
		if isSequence {
			return list
		}
		calls := children[r.ActivationID]
		slices.SortFunc(calls, func(a, b *server.Record) int {
			return cmp.Compare(slices.Index(sharedOrder, a.Name), slices.Index(sharedOrder, b.Name))
		})
		for _, c := range calls {
			list = append(list, walk(c)...)
		}
		return list
	}
	for i := range all {
		if r := byID[all[i].id]; r != nil {
			all[i].saw = walk(r)
		} else if all[i].id != "" {
			t.Errorf("there is no record of %s", all[i].id)
		}
	}
}

// checkShared checks what all saw, and what is there now.
func checkShared(t *testing.T, side *compare.Side, all []shared) {
	t.Helper()
	readLogs(t, side, all)
	checkCounter(t, side, all)
	sum := 0
	for i := range 3 {
		n, err := side.State.Get(t.Context(), fmt.Sprint("account:", i)).Int()
		if err != nil {
			t.Error(err)
		}
		sum += n
	}
	if sum != 300 {
		t.Errorf("the accounts hold %d", sum)
	}
	wins := len(sawOf(all, "won"))
	different(t, "pushed", side.State.LRange(t.Context(), "pushed", 0, -1).Val())
	different(t, "sent", side.Outside.Sent())
	if locks := len(side.State.Keys(t.Context(), "lock:*").Val()); locks != wins {
		t.Errorf("%d locks were won %d times", locks, wins)
	}
}

// sawOf are the numbers that were seen as something.
func sawOf(all []shared, what string) (numbers []int) {
	for _, s := range all {
		for _, saw := range s.saw {
			if saw.what == what {
				numbers = append(numbers, saw.n)
			}
		}
	}
	return numbers
}

// checkCounter checks that the counter was what one that is there once can be, and that what was made of it was pushed or sent.
func checkCounter(t *testing.T, side *compare.Side, all []shared) {
	t.Helper()
	made := make(map[int]string)
	slices.SortFunc(all, func(a, b shared) int { return a.end.Compare(b.end) })
	most := make([]int, len(all)) // that invocations saw which ended up to this one
	top, functions := 0, 0
	for i, s := range all {
		before := 0 // what had been seen when it began
		if n, _ := slices.BinarySearchFunc(all[:i], s.begin, func(a shared, at time.Time) int { return cmp.Or(a.end.Compare(at), 1) }); n > 0 {
			before = most[n-1]
		}
		for _, saw := range s.saw {
			if !slices.Contains([]string{"get", "made", "counted"}, saw.what) {
				continue
			}
			if saw.n < before || saw.what != "get" && saw.n == before {
				t.Errorf("%s %s: the counter was %d, then %s %d: %v", s.name, s.id, before, saw.what, saw.n, s.saw)
			}
			before = max(before, saw.n)
			if saw.what == "get" {
				continue
			}
			if made[saw.n] != "" {
				t.Errorf("%s and %s %s both made the counter %d", made[saw.n], s.name, s.id, saw.n)
			}
			made[saw.n] = s.name
			if saw.what == "made" {
				functions++
			}
		}
		top = max(top, before)
		most[i] = top
	}
	if now := side.State.Get(t.Context(), "total").Val(); now != strconv.Itoa(len(made)) {
		t.Errorf("the counter is %s after %d increments", now, len(made))
	}
	if told := int(side.State.LLen(t.Context(), "pushed").Val()) + len(side.Outside.Sent()); told != functions {
		t.Errorf("functions counted %d times, and pushed or sent what they counted %d times", functions, told)
	}
}

// different checks that no two are the same.
func different(t *testing.T, what string, list []string) {
	t.Helper()
	slices.Sort(list)
	if n := len(slices.Compact(slices.Clone(list))); n != len(list) {
		t.Errorf("%d were %s, but only %d different ones: %q", len(list), what, n, list)
	}
}
