package history

import (
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Seed is the seed of a test's random choices: the environment variable FORERUN_SEED if it is set, a random seed in a
// soak, else always the same. The test logs it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if os.Getenv("FORERUN_SOAK") != "" {
		seed = rand.Uint64N(1 << 32)
	}
	if text := os.Getenv("FORERUN_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FORERUN_SEED is not a number: %v", err)
		}
	}
	t.Logf("FORERUN_SEED=%d", seed)
	return seed
}

// Rounds yields a seed and a source of random choices for each round of a test: one round, or as many as fit into
// FORERUN_SOAK. It ends when the test has failed.
func Rounds(t testing.TB) iter.Seq2[uint64, *rand.Rand] {
	return func(yield func(uint64, *rand.Rand) bool) {
		t.Helper()
		seed, goOn := Seed(t), Soak(t)
		for round := uint64(0); (round == 0 || goOn()) && !t.Failed(); round++ {
			if !yield(seed+round, rand.New(rand.NewPCG(seed+round, 0))) {
				return
			}
		}
	}
}

// tellEvery is how often a test that goes on says how far it is.
const tellEvery = 15 * time.Second

// Soak says whether a test that could go on for ever is to go on: for the duration FORERUN_SOAK ("5m"), if that is given. It is asked
// once a round, and logs now and then how many there were.
func Soak(t testing.TB) (goOn func() bool) {
	t.Helper()
	text := os.Getenv("FORERUN_SOAK")
	if text == "" {
		return func() bool { return false }
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("FORERUN_SOAK is not a duration: %v", err)
	}
	begin, told, rounds := time.Now(), time.Now(), 0
	return func() bool {
		rounds++
		if now := time.Now(); now.Sub(told) > tellEvery {
			told = now
			t.Logf("%v of %v, %d more rounds", now.Sub(begin).Round(time.Second), duration, rounds)
		}
		return time.Since(begin) < duration
	}
}
