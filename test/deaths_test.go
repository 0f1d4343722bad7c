package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

// TestDeathsInside kills handlers and first processes of sandboxes at random moments under load. Each invocation ends with a
// record, one whose process was killed with one that says so, and the next goes well.
func TestDeathsInside(t *testing.T) {
	random, goOn := rand.New(rand.NewPCG(history.Seed(t), 0)), history.Soak(t)
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"work": "import time\n\ndef main(args):\n    time.sleep(0.01)\n    return args\n"})
	invoke(t, c, "work", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &workload{T: t, client: c}
	for range 4 {
		w.running.Go(func() { w.run(ctx) })
	}
	killed := 0
	for round := 0; round < 16 || goOn(); round++ {
		before, more := w.wentWell(), 1+random.IntN(20)
		eventually(t, func() bool { return w.wentWell() >= before+more })
		for _, helper := range childrenOf(s.PID()) {
			firsts := childrenOf(helper)
			var victims []int
			if round%2 == 0 {
				victims = firsts
			} else {
				for _, pid := range firsts {
					victims = append(victims, below(pid)...)
				}
			}
			if len(victims) > 0 && syscall.Kill(victims[random.IntN(len(victims))], syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	cancel()
	w.running.Wait()
	for range 4 {
		if r := invoke(t, c, "work", map[string]string{"a": "b"}); !r.Response.Success {
			t.Errorf("an invocation after all: %s", r.Response.Result)
		}
	}
	f := newFootprint(s.Options.Data)
	f.observe(s.PID())
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	f.mustVanish(t)
	t.Logf("%d kills; %d invocations went well, %d did not", killed, w.well, w.ill)
	if killed == 0 || w.well == 0 || w.ill == 0 {
		t.Error("the test did not do what it is for")
	}
}

// workload invokes an action again and again.
type workload struct {
	*testing.T
	client  *server.Client
	running sync.WaitGroup

	mu        sync.Mutex // guards the rest
	well, ill int
}

func (w *workload) wentWell() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.well
}

func (w *workload) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		status, answer, err := w.client.Do(w.Context(), http.MethodPost, "actions/work?blocking=true", map[string]int{"n": n})
		var r server.Record
		if err = errors.Join(err, json.Unmarshal(answer, &r)); err != nil || r.ActivationID == "" {
			w.Errorf("an invocation has no record: %d %s %v", status, answer, err)
			return
		}
		w.mu.Lock()
		switch result := string(r.Response.Result); {
		case r.Response.Success && result == fmt.Sprintf(`{"n":%d}`, n):
			w.well++
		case !r.Response.Success && strings.Contains(result, `"error"`):
			w.ill++
		default:
			w.Errorf("the answer to %d is %s %s", n, r.Response.Status, result)
		}
		w.mu.Unlock()
		if stored, err := w.client.Activation(w.Context(), r.ActivationID); err != nil || string(stored.Response.Result) != string(r.Response.Result) {
			w.Errorf("the record of an invocation that was answered %s: %v", r.Response.Result, err)
		}
	}
}

// TestDeathOfTheHelper: without it no function can run, so the server says so and ends; the next one ends what was begun.
func TestDeathOfTheHelper(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.Context(), server.Options{Binary: binary, Data: filepath.Join(t.TempDir(), "data"), Redis: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	c, state := client(t, s), outside(t, s)
	putPython(t, c, map[string]string{"waiting": waiting})
	var told struct{ ActivationID string }
	status, answer, err := c.Do(t.Context(), http.MethodPost, "actions/waiting", nil)
	if err = errors.Join(err, state.BLPop(t.Context(), 0, "began").Err()); err != nil {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	decode(t, answer, &told)
	f := newFootprint(s.Options.Data)
	f.observe(s.PID())
	for _, helper := range childrenOf(s.PID()) {
		if err := syscall.Kill(helper, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	<-s.Exited()
	if !strings.Contains(s.Log(), "sandbox helper has ended") {
		t.Errorf("the server said\n%s", s.Log())
	}
	next := start(t, server.Options{Data: s.Options.Data})
	f.mustVanish(t)
	if r := stored(t, client(t, next), told.ActivationID); r.Response.Success || !strings.Contains(string(r.Response.Result), "error") {
		t.Errorf("what was under way ended with %s %s", r.Response.Status, r.Response.Result)
	}
}

// childrenOf lists the children of a process.
func childrenOf(pid int) (pids []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, file := range files {
		text, _ := os.ReadFile(file) // empty if the thread has ended
		for _, child := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(child); err == nil {
				pids = append(pids, id)
			}
		}
	}
	return pids
}

// below lists the descendants of a process.
func below(pid int) (pids []int) {
	for _, child := range childrenOf(pid) {
		pids = slices.Concat(pids, []int{child}, below(child))
	}
	return pids
}
