package simulation

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
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

// sweep plays seeds until one has a problem, and returns the first such seed.
func sweep(from, count uint64) (seed uint64, found bool) {
	var (
		next  atomic.Uint64
		stop  atomic.Bool
		mu    sync.Mutex // guards seed and found
		group sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for !stop.Load() {
				i := next.Add(1) - 1
				if i >= count {
					return
				}
				if _, problem := Generate(from + i).Play(false); problem != nil {
					stop.Store(true)
					mu.Lock()
					if !found || from+i < seed {
						seed, found = from+i, true
					}
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return seed, found
}

// TestSeeds plays FORERUN_SEEDS cases, from FORERUN_SEED on. One with a problem is made smaller, and told.
func TestSeeds(t *testing.T) {
	count := uint64(20_000)
	if underRace {
		count = 500
	}
	seed, found := sweep(number(t, "FORERUN_SEED", 0), number(t, "FORERUN_SEEDS", count))
	if !found {
		return
	}
	c := Generate(seed)
	_, problem := c.Play(false)
	t.Errorf("seed %d: %v\nTo see it again: FORERUN_SEED=%d FORERUN_SEEDS=1 go test -run TestSeeds ./internal/schedule/simulation", seed, problem, seed)
	s := c.Shrink()
	story, _ := s.Play(true)
	t.Logf("made smaller: %d of %d events are left\n%v\n%s", len(s.Ops), len(c.Ops), s, story)
}

// TestOneSeedIsOneStory plays cases again.
func TestOneSeedIsOneStory(t *testing.T) {
	for seed := range uint64(50) {
		a, _ := Generate(seed).Play(true)
		b, _ := Generate(seed).Play(true)
		if a != b {
			t.Errorf("seed %d has two stories:\n%s\n%s", seed, a, b)
		}
	}
}
