package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

const (
	kills     = 20 // of a run that FORERUN_SOAK does not prolong
	soakKills = 50 // of one that it does, at least
	kvWriter  = `
import os, redis
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)

def main(args):
    state.set(args["key"], args["key"])
    return {"wrote": args["key"]}
`
)

// acknowledged is all that a server said it had done.
type acknowledged struct {
	mu          sync.Mutex        // guards all
	actions     map[string]string // their code
	keys        []string          // each holds its own name
	activations map[string]string // results, by activation
	begun       []string          // activations whose ids were told
	increments  int64             // of the key "counter"
	attempts    int64             // to increment it
}

func newAcknowledged() *acknowledged {
	return &acknowledged{actions: make(map[string]string), activations: make(map[string]string)}
}

func (a *acknowledged) add(b *acknowledged) {
	maps.Copy(a.actions, b.actions)
	maps.Copy(a.activations, b.activations)
	a.keys = append(a.keys, b.keys...)
	a.begun = append(a.begun, b.begun...)
	a.increments += b.increments
	a.attempts += b.attempts
}

// TestCrash kills the server, its helper, or first a process in a sandbox and then the server, at random moments under load, and looks
// for everything that was acknowledged. FORERUN_SEED repeats a run's moments, FORERUN_SOAK prolongs it.
func TestCrash(t *testing.T) {
	needPackages(t)
	random, goOn := rand.New(rand.NewPCG(history.Seed(t), 0)), history.Soak(t)
	before := links(t)
	data := filepath.Join(t.TempDir(), "data")
	a, recent := newAcknowledged(), newAcknowledged()
	var slowest time.Duration
	round, least := 0, kills
	if os.Getenv("FORERUN_SOAK") != "" {
		least = soakKills
	}
	for ; round < least || goOn(); round++ {
		s := start(t, server.Options{Data: data, Redis: true})
		if round == 0 {
			putPython(t, client(t, s), map[string]string{
				"write": kvWriter, "echo": "def main(args):\n    return args\n",
				"slow": "import time\n\ndef main(args):\n    time.sleep(0.3)\n    return args\n",
			})
		}
		recent.mustBeThere(t, s) // everything is looked for after the last kill
		a.counterMustBeThere(t, s)
		recent = newAcknowledged()
		l := &load{acknowledged: recent, round: round, left: newFootprint(data)}
		if l.killUnder(t, s, random); l.orphaned {
			start(t, server.Options{Data: data}).Kill() // cgroups stay when their maker is killed, until the next server
		}
		slowest = max(slowest, l.left.mustVanish(t))
		a.add(recent)
	}
	s := start(t, server.Options{Data: data, Redis: true})
	a.mustBeThere(t, s)
	a.counterMustBeThere(t, s)
	interrupted := a.mustHaveEnded(t, s)
	if after := links(t); !slices.Equal(before, after) {
		t.Errorf("the network links were %v and are %v", before, after)
	}
	t.Logf("%d kills; acknowledged and found: %d actions, %d keys, %d increments of %d tried, %d activations, %d begun ones (%d interrupted); the old server was gone %v after its kill at most",
		round, len(a.actions), len(a.keys), a.increments, a.attempts, len(a.activations), len(a.begun), interrupted, slowest.Round(time.Millisecond))
	if len(a.actions) == 0 || len(a.keys) == 0 || a.increments == 0 || len(a.activations) == 0 || interrupted == 0 {
		t.Error("the load did not do everything that it should")
	}
}

// killUnder loads the server and kills it after a while.
func (l *load) killUnder(t *testing.T, s *server.Server, random *rand.Rand) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.client, l.redis = s.Client(32), redisClient(s)
	defer l.client.Close()
	defer l.redis.Close()
	var workers sync.WaitGroup
	for worker, step := range []func(context.Context, string) error{l.putAction, l.writeKey, l.writeKey, l.setKey, l.setKey, l.increment, l.invoke, l.invoke, l.begin} {
		workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := step(ctx, fmt.Sprintf("r%d-w%d-n%d", l.round, worker, n)); err != nil {
					if !l.ending.Load() && !killed(s) && ctx.Err() == nil {
						l.unexpected(t, s, err)
					}
					return
				}
			}
		})
	}
	for end := time.Now().Add(time.Duration(random.Int64N(int64(time.Second)))); time.Now().Before(end); {
		l.left.observe(s.PID())
	}
	l.left.observe(s.PID())
	l.kill(t, s, random)
	cancel()
	workers.Wait()
}

// kill ends the server: itself, by the end of its helper, or after something in a sandbox. What such a load is told from then on
// counts as long as it was acknowledged, but it may be told of the kill.
func (l *load) kill(t *testing.T, s *server.Server, random *rand.Rand) {
	t.Helper()
	l.ending.Store(true)
	helpers := childrenOf(s.PID())
	switch way := random.IntN(4); {
	case way == 0 && len(helpers) > 0:
		l.orphaned = true
		_ = syscall.Kill(helpers[0], syscall.SIGKILL)
		select {
		case <-s.Exited():
			return
		case <-time.After(patience):
			t.Errorf("round %d: the server goes on without its helper\n%s", l.round, s.Log())
		}
	case way == 1 && len(helpers) > 0:
		inside := below(helpers[0])
		for range min(3, len(inside)) {
			_ = syscall.Kill(inside[random.IntN(len(inside))], syscall.SIGKILL)
		}
	}
	s.Kill()
}

func killed(s *server.Server) bool {
	select {
	case <-s.Exited():
		return true
	case <-time.After(patience): // a request can fail a moment before the process has been waited for
		return false
	}
}

func redisClient(s *server.Server) *redis.Client {
	user, key, _ := strings.Cut(s.Auth, ":")
	return redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: key, MaxRetries: -1, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
}

// load does things and writes down those that were acknowledged.
type load struct {
	*acknowledged
	client *server.Client
	redis  *redis.Client
	round  int
	once   sync.Once
	ending atomic.Bool // something is being killed

	left     *footprint // what the server had
	orphaned bool       // its helper was killed
}

func (l *load) unexpected(t *testing.T, s *server.Server, err error) {
	l.once.Do(func() { t.Errorf("round %d: the running server refused: %v\n%s", l.round, err, s.Log()) })
}

func (l *load) putAction(ctx context.Context, id string) error {
	code := "# " + id + "\ndef main(args):\n    return {}\n"
	if err := l.client.PutPython(ctx, id, code); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.actions[id] = code
	return nil
}

// writeKey writes in a function, with redis-py.
func (l *load) writeKey(ctx context.Context, id string) error {
	r, err := l.client.Invoke(ctx, "write", map[string]string{"key": id})
	if err != nil {
		return err
	}
	if !r.Response.Success {
		return fmt.Errorf("the function that writes failed: %s", r.Response.Result)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, id)
	l.activations[r.ActivationID] = string(r.Response.Result)
	return nil
}

// setKey writes from outside.
func (l *load) setKey(ctx context.Context, id string) error {
	if err := l.redis.Set(ctx, id, id, 0).Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, id)
	return nil
}

func (l *load) increment(ctx context.Context, _ string) error {
	l.mu.Lock()
	l.attempts++
	l.mu.Unlock()
	if err := l.redis.Incr(ctx, "counter").Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.increments++
	return nil
}

func (l *load) invoke(ctx context.Context, id string) error {
	r, err := l.client.Invoke(ctx, "echo", map[string]string{"id": id})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.activations[r.ActivationID] = string(r.Response.Result)
	return nil
}

// begin begins an invocation that may be in flight at a kill.
func (l *load) begin(ctx context.Context, id string) error {
	status, answer, err := l.client.Do(ctx, http.MethodPost, "actions/slow", map[string]string{"id": id})
	var told struct{ ActivationID string }
	if err == nil && status == http.StatusAccepted {
		err = json.Unmarshal(answer, &told)
	} else if err == nil {
		err = fmt.Errorf("%d %s", status, answer)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.begun = append(l.begun, told.ActivationID)
	l.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond): // few at a time
	}
	return nil
}

// endings are parts of what records say of invocations whose process, or the server's helper, was killed.
var endings = []string{"killed by signal 9", "exited while it loaded the code", "sandbox", "The server was shut down before"}

// mustHaveEnded asks a server for the records of what was begun, and returns how many say that a server did not live to end it.
func (a *acknowledged) mustHaveEnded(t *testing.T, s *server.Server) (interrupted int) {
	t.Helper()
	c := client(t, s)
	for _, id := range a.begun {
		r, err := c.Activation(t.Context(), id)
		switch {
		case err != nil:
			t.Errorf("activation %s was begun: %v", id, err)
		case strings.Contains(string(r.Response.Result), "stopped before the activation ended"):
			interrupted++
		case slices.ContainsFunc(endings, func(part string) bool { return strings.Contains(string(r.Response.Result), part) }):
		case !r.Response.Success:
			t.Errorf("activation %s ended with %s", id, r.Response.Result)
		}
	}
	return interrupted
}

// mustBeThere asks a server for everything that one before it acknowledged.
func (a *acknowledged) mustBeThere(t *testing.T, s *server.Server) {
	t.Helper()
	c := client(t, s)
	for name, code := range a.actions {
		status, body, err := c.Do(t.Context(), http.MethodGet, "actions/"+name, nil)
		var action struct{ Exec struct{ Code string } }
		if err = errors.Join(err, json.Unmarshal(body, &action)); err != nil || status != http.StatusOK || action.Exec.Code != code {
			t.Errorf("action %s was acknowledged; the server now answers %d %s (%v)", name, status, body, err)
		}
	}
	for id, result := range a.activations {
		r, err := c.Activation(t.Context(), id)
		if err != nil {
			t.Errorf("activation %s was acknowledged: %v", id, err)
			continue
		}
		equalJSON(t, r.Response.Result, result)
	}
	a.keysMustBeThere(t, s)
}

func (a *acknowledged) keysMustBeThere(t *testing.T, s *server.Server) {
	t.Helper()
	r := redisClient(s)
	defer r.Close()
	for some := range slices.Chunk(a.keys, 100) {
		values, err := r.MGet(t.Context(), some...).Result()
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range some {
			if values[i] != key {
				t.Errorf("key %s was acknowledged; it now holds %v", key, values[i])
			}
		}
	}
}

func (a *acknowledged) counterMustBeThere(t *testing.T, s *server.Server) {
	t.Helper()
	r := redisClient(s)
	defer r.Close()
	count, err := r.Get(t.Context(), "counter").Int64()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	if err != nil || count < a.increments || count > a.attempts {
		t.Errorf("the counter is %d (%v); %d increments were acknowledged, %d tried", count, err, a.increments, a.attempts)
	}
}
