package simulation

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// finding is a seed with a problem.
type finding struct {
	seed    uint64
	problem error
}

// sweep plays seeds until one has a problem.
func sweep(from, count uint64) (found *finding, coverage *Coverage) {
	var (
		next  atomic.Uint64
		stop  atomic.Bool
		mu    sync.Mutex // guards found and coverage
		group sync.WaitGroup
	)
	coverage = new(Coverage)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			mine := new(Coverage)
			for !stop.Load() {
				i := next.Add(1) - 1
				if i >= count {
					break
				}
				if o := Generate(from+i).Play(mine, false); o.Problem != nil {
					stop.Store(true)
					mu.Lock()
					if found == nil || from+i < found.seed {
						found = &finding{from + i, o.Problem}
					}
					mu.Unlock()
				}
			}
			mu.Lock()
			defer mu.Unlock()
			coverage.Add(mine)
		})
	}
	group.Wait()
	return found, coverage
}

// sweepAll plays seeds, and of many tells now and then how far it has come.
func sweepAll(t *testing.T, from, count uint64) (found *finding, coverage *Coverage) {
	t.Helper()
	const some = 50_000
	coverage = new(Coverage)
	for done := uint64(0); done < count && found == nil; {
		part := min(some, count-done)
		var more *Coverage
		found, more = sweep(from+done, part)
		coverage.Add(more)
		if done += part; count > some {
			t.Logf("%d of %d seeds", done, count)
		}
	}
	return found, coverage
}

// TestSeeds plays FORERUN_SEEDS cases, from FORERUN_SEED on. One with a problem is made smaller, and told.
func TestSeeds(t *testing.T) {
	count := uint64(20_000)
	if underRace {
		count = 500
	}
	count = number(t, "FORERUN_SEEDS", count)
	found, coverage := sweepAll(t, number(t, "FORERUN_SEED", 0), count)
	if found != nil {
		t.Errorf("seed %d: %v\nTo see it again: FORERUN_SEED=%d FORERUN_SEEDS=1 go test -run TestSeeds ./internal/speculate/simulation", found.seed, found.problem, found.seed)
		if os.Getenv("FORERUN_STORY") != "off" {
			c := Generate(found.seed)
			s := c.Shrink()
			t.Logf("made smaller: %d of %d parts are left\n%v\n%s", s.parts(), c.parts(), s, s.Play(nil, true).Story)
		}
		return
	}
	table, share := coverage.Table()
	if !underRace { // else its few seeds say nothing
		t.Logf("events by the states of slots in which they came:\n%s", table)
	}
	if pairs := coverage.Impossible(); len(pairs) > 0 {
		t.Errorf("what coverage.go says cannot be has come: %s", strings.Join(pairs, "; "))
	}
	if count >= 20_000 && share < 0.95 {
		t.Errorf("%.0f%% of the pairs of events and states that can be are covered: at least 95%% must be", share*100)
	}
}

// TestOneSeedIsOneStory plays a case again.
func TestOneSeedIsOneStory(t *testing.T) {
	for seed := range uint64(50) {
		a, b := Generate(seed).Play(nil, true), Generate(seed).Play(nil, true)
		if a.Story != b.Story {
			t.Errorf("seed %d has two stories:\n%s\n%s", seed, a.Story, b.Story)
		}
	}
}

// broken is a program that panics.
type broken struct{ forerun.Program }

func (broken) Start(json.RawMessage) forerun.Stop { panic("no start") }

// TestPanicsAreProblems: a case that panics is told with the place of the panic, and made smaller like any other case.
func TestPanicsAreProblems(t *testing.T) {
	round := Round{Invocations: []Invocation{{Action: "f0", Mode: speculate.All, Depth: 1}}}
	c := &Case{
		Actions: []*Action{{Name: "f0", Action: oracle.Action{Versions: []oracle.Code{{Program: broken{}}}}}},
		Rounds:  []Round{{Others: []Other{{What: Tick}}}, round, round},
	}
	o := c.Play(nil, true)
	if o.Problem == nil || !strings.Contains(o.Problem.Error(), "panic: no start") || !strings.Contains(o.Problem.Error(), "broken.Start") {
		t.Fatalf("the problem is %v", o.Problem)
	}
	if !strings.Contains(o.Story, "\nPROBLEM: panic: no start") {
		t.Errorf("the story does not tell it:\n%s", o.Story)
	}
	if s := c.Shrink(); len(s.Rounds) != 1 || s.Play(nil, false).Problem == nil {
		t.Errorf("made smaller, it is\n%v", s)
	}
}
