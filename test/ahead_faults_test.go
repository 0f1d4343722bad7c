package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

// The functions of a chain that runs ahead: each notes its invocation in a list and counts, and passes on a number that others
// change, so that what was expected of it is often wrong. It waits more than it computes, so that it runs ahead under load, too. The
// second also sends a message, which waits for its turn, and the third calls another function, which runs ahead of the call.
const (
	chainLength = 4
	link        = `
import openwhisk, os, redis, time
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)

def main(args):
    state.rpush("did:NUMBER", os.environ["__OW_TRANSACTION_ID"])
    n = int(state.get("n") or 0) if NUMBER in (1, 3) else args["n"]
    time.sleep(0.02)
    state.incr("count:NUMBER")
    if NUMBER == 2: state.publish("news", "x")
    if NUMBER == 3: n = openwhisk.invoke("leaf", {"n": n})["n"]
    print(os.environ["__OW_ACTIVATION_ID"], "of NUMBER")
    return {"n": n}
`
)

// chain deploys the functions and their sequence.
func chain(t *testing.T, c *server.Client) {
	t.Helper()
	putPython(t, c, map[string]string{"leaf": "import time\ndef main(args):\n    time.sleep(0.02)\n    return args\n"})
	var links []string
	for n := 1; n <= chainLength; n++ {
		name := fmt.Sprint("link", n)
		putPython(t, c, map[string]string{name: strings.ReplaceAll(link, "NUMBER", fmt.Sprint(n))})
		links = append(links, name)
	}
	if err := c.PutSequence(context.WithoutCancel(t.Context()), "chain", links...); err != nil {
		t.Fatal(err)
	}
}

// stormy is a server whose chains run ahead while faults happen to them.
type stormy struct {
	*testing.T
	server *server.Server
	client *server.Client
	state  *redis.Client
	random *rand.Rand

	mu        sync.Mutex // guards the rest
	well, ill int        // invocations by how they ended
	why       string     // the last one ended so
	gone      int        // whose clients went away
}

func newStormy(t *testing.T, data string, random *rand.Rand) *stormy {
	t.Helper()
	return newStormyOf(t, binary, data, random)
}

// newStormyOf starts a binary that is not the one that all tests use, with further arguments.
func newStormyOf(t *testing.T, binary, data string, random *rand.Rand, args ...string) *stormy {
	t.Helper()
	s, err := server.Start(t.Context(), server.Options{Binary: binary, Data: data, Redis: true, Args: append(args, "--speculate", "all; least=0s; load=any")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-s.Exited():
		default: // the test has failed
			s.Kill()
			t.Logf("the server said:\n%s", s.Log())
		}
	})
	return &stormy{T: t, server: s, client: client(t, s), state: outside(t, s), random: random}
}

// invoke sends one request, whose client waits for at most as long as ctx.
func (s *stormy) invoke(ctx context.Context) {
	status, answer, err := s.client.Do(ctx, http.MethodPost, "actions/chain?blocking=true", map[string]int{"n": 0})
	s.mu.Lock()
	defer s.mu.Unlock()
	var r server.Record
	switch {
	case err != nil:
		s.gone++
	case errors.Join(err, json.Unmarshal(answer, &r)) != nil || r.ActivationID == "":
		s.Errorf("an invocation has no record: %d %s", status, answer)
	case r.Response.Success && len(r.Logs) == chainLength:
		s.well++
	case !r.Response.Success && strings.Contains(string(r.Response.Result), `"error"`):
		s.ill++
		s.why = string(r.Response.Result)
	default:
		s.Errorf("an invocation ended %s %s with %q", r.Response.Status, r.Response.Result, r.Logs)
	}
}

func (s *stormy) wentWell() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.well
}

// blow invokes chains on several lanes, changes what they read and looks at what they wrote, until ctx ends.
func (s *stormy) blow(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for ctx.Err() == nil {
				s.invoke(ctx)
			}
		})
	}
	running.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_ = s.state.Set(ctx, "n", n%3, 0).Err() // the server may be dead
			s.look(ctx)
			time.Sleep(7 * time.Millisecond)
		}
	})
	return running.Wait
}

// did is what the chains have written: by link, how often each invocation noted itself.
type did [chainLength]map[string]int

// look reads all lists at one moment, and reports false if the server does not answer. No invocation is noted by a link before
// the one before it has noted it, and none twice, whoever looks and whatever happens.
func (s *stormy) look(ctx context.Context) (all did, ok bool) {
	s.Helper()
	var lists [chainLength]*redis.StringSliceCmd
	var counts [chainLength]*redis.StringCmd
	_, err := s.state.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i := range chainLength {
			lists[i], counts[i] = p.LRange(ctx, fmt.Sprint("did:", i+1), 0, -1), p.Get(ctx, fmt.Sprint("count:", i+1))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return all, false
	}
	for i := range all {
		all[i] = map[string]int{}
		for _, transaction := range lists[i].Val() {
			all[i][transaction]++
			if all[i][transaction] > 1 {
				s.Errorf("link %d has noted %s twice", i+1, transaction)
			}
			if i > 0 && all[i-1][transaction] == 0 {
				s.Errorf("link %d has noted %s, and link %d has not", i+1, transaction, i)
			}
		}
		// A function that is killed between its two writes leaves one, as it does without speculation.
		if n, _ := counts[i].Int(); n > len(all[i]) {
			s.Errorf("link %d has counted %d and noted %d", i+1, n, len(all[i]))
		}
	}
	return all, true
}

// records looks at all that the server tells of activations: logs and results are their own activation's, and of what was squashed
// there is nothing.
func (s *stormy) records() {
	s.Helper()
	for skip := 0; ; skip += 200 {
		var page []server.Record
		if err := s.client.Get(s.Context(), fmt.Sprintf("activations?docs=true&limit=200&skip=%d", skip), &page); err != nil {
			s.Fatal(err)
		}
		for i := range page {
			r := &page[i]
			own := r.ActivationID + " of " + strings.TrimPrefix(r.Name, "link")
			for _, line := range append(r.Logs, string(r.Response.Result)) {
				if strings.Contains(line, "wrong") || strings.Contains(line, " of ") && !strings.Contains(line, own) {
					s.Errorf("the record of %s says %q", r.ActivationID, line)
				}
			}
		}
		if len(page) < 200 {
			return
		}
	}
}

// calm waits until nothing runs any more: all sandboxes have their first process and at most the handlers that wait.
func (s *stormy) calm() {
	s.Helper()
	eventually(s.T, func() bool {
		for _, helper := range childrenOf(s.server.PID()) {
			for _, first := range childrenOf(helper) {
				if len(below(first)) > 2 { // the one that serves, and one that stands by
					return false
				}
			}
		}
		return true
	})
}

// awaitAhead waits until the test has done what it is for: some predictions were right and some were wrong.
func (s *stormy) awaitAhead() {
	s.Helper()
	for _, outcome := range []string{"right", "wrong"} {
		eventually(s.T, func() bool {
			n := gauge(s.T, s.server, `forerun_predictions_total{outcome="`+outcome+`"}`)
			return n != "" && n != "0"
		})
	}
}

// end stops the server, after which nothing of it is left.
func (s *stormy) end() {
	s.Helper()
	f := newFootprint(s.server.Options.Data)
	f.observe(s.server.PID())
	if err := s.server.Stop(); err != nil {
		s.Error(err)
	}
	f.mustVanish(s.T)
	if strings.Contains(s.server.Log(), "could not be removed") || s.Failed() {
		s.Errorf("the server said:\n%s", s.server.Log())
	}
}

// TestAheadDeathsInside kills handlers and first processes of sandboxes while chains run ahead, at moments that a seed draws.
func TestAheadDeathsInside(t *testing.T) {
	needPackages(t)
	goOn := history.Soak(t)
	s := newStormy(t, filepath.Join(t.TempDir(), "data"), rand.New(rand.NewPCG(history.Seed(t), 1)))
	chain(t, s.client)
	s.invoke(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := s.blow(ctx)
	s.awaitAhead()
	killed := 0
	for round := 0; round < 40 || goOn(); round++ {
		time.Sleep(time.Duration(s.random.IntN(30_000)) * time.Microsecond)
		var victims []int
		for _, helper := range childrenOf(s.server.PID()) {
			for _, first := range childrenOf(helper) {
				if round%4 == 0 {
					victims = append(victims, first)
				} else {
					victims = append(victims, below(first)...)
				}
			}
		}
		if len(victims) > 0 && syscall.Kill(victims[s.random.IntN(len(victims))], syscall.SIGKILL) == nil {
			killed++
		}
	}
	before := s.wentWell()
	eventually(t, func() bool { return s.wentWell() > before })
	cancel()
	wait()
	s.calm()
	s.look(t.Context())
	s.records()
	s.end()
	t.Logf("%d kills; %d invocations went well, %d did not: %s", killed, s.well, s.ill, s.why)
	if killed == 0 || s.well == 0 {
		t.Error("the test did not do what it is for")
	}
}

// TestAheadClientsVanish: an invocation whose client has gone, at whatever moment, goes on to its end, ahead as before.
func TestAheadClientsVanish(t *testing.T) {
	needPackages(t)
	goOn := history.Soak(t)
	s := newStormy(t, filepath.Join(t.TempDir(), "data"), rand.New(rand.NewPCG(history.Seed(t), 2)))
	chain(t, s.client)
	for range 3 {
		s.invoke(t.Context())
	}
	var all did
	for round := 0; round < 10 || goOn(); round++ {
		s.set("n", round/2%3)
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+s.random.IntN(40_000))*time.Microsecond)
			s.invoke(ctx)
			cancel()
		}
		s.invoke(t.Context())
		eventually(t, func() bool {
			all, _ = s.look(t.Context())
			return len(all[0]) == len(all[chainLength-1])
		})
	}
	s.awaitAhead()
	s.calm()
	s.records()
	s.end()
	t.Logf("%d clients went, %d stayed; %d invocations were carried out", s.gone, s.well, len(all[0]))
	if s.ill > 0 || s.well == 0 || len(all[0]) < s.well {
		t.Errorf("%d invocations went ill: %s", s.ill, s.why)
	}
}

// TestAheadServerDies kills the server while chains run ahead, again and again: on disk is always what a server without
// speculation could have left.
func TestAheadServerDies(t *testing.T) {
	needPackages(t)
	random, goOn := rand.New(rand.NewPCG(history.Seed(t), 3)), history.Soak(t)
	data := filepath.Join(t.TempDir(), "data")
	var before did
	for round := 0; round < 6 || goOn(); round++ {
		s := newStormy(t, data, random)
		if round == 0 {
			chain(t, s.client)
		}
		all, ok := s.look(t.Context())
		if !ok {
			t.Fatal("the state cannot be read")
		}
		for i := range before {
			for transaction := range before[i] {
				if all[i][transaction] == 0 {
					t.Errorf("link %d had noted %s before the server was killed", i+1, transaction)
				}
			}
		}
		s.invoke(t.Context())
		f := newFootprint(data)
		f.observe(s.server.PID())
		ctx, cancel := context.WithCancel(t.Context())
		wait := s.blow(ctx)
		time.Sleep(time.Duration(100_000+random.IntN(200_000)) * time.Microsecond)
		if before, ok = s.look(t.Context()); !ok {
			t.Fatal("the state cannot be read")
		}
		s.server.Kill()
		cancel()
		wait()
		f.mustVanish(t)
		if s.well == 0 {
			t.Errorf("round %d: nothing went well before the server was killed", round)
		}
	}
	s := newStormy(t, data, random)
	s.look(t.Context())
	s.invoke(t.Context())
	s.end()
}

func (s *stormy) set(key string, value int) {
	s.Helper()
	if err := s.state.Set(s.Context(), key, value, 0).Err(); err != nil {
		s.Fatal(err)
	}
}

// letGo lets a function go on that waits for it.
func (s *stormy) letGo() {
	s.Helper()
	if err := s.state.RPush(s.Context(), "go", "1").Err(); err != nil {
		s.Fatal(err)
	}
}
