package history

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Seed is where a test's chance comes from: the environment variable FORERUN_SEED, which repeats a run, or chance. It is logged.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64N(1 << 32)
	if text := os.Getenv("FORERUN_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FORERUN_SEED is no number: %v", err)
		}
	}
	t.Logf("FORERUN_SEED=%d", seed)
	return seed
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
		t.Fatalf("FORERUN_SOAK is no duration: %v", err)
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
