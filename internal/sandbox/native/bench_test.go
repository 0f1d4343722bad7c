package native

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// tell reports the middle and the tail of the measured times.
func tell(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) float64 { return float64(took[int(float64(len(took)-1)*share)].Microseconds()) }
	b.ReportMetric(at(0.5), what+"-p50-us")
	b.ReportMetric(at(0.99), what+"-p99-us")
}

// BenchmarkStart measures a sandbox from the request to the initializer's execve, and its end.
func BenchmarkStart(b *testing.B) {
	m := startHelper(b, Config{})
	var start, end []time.Duration
	for n := 0; b.Loop(); n++ {
		begin := time.Now()
		s := startSleeper(b, m, fmt.Sprintf("s-%d", n))
		started := time.Now()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		start, end = append(start, started.Sub(begin)), append(end, time.Since(started))
	}
	tell(b, "start", start)
	tell(b, "close", end)
}

// BenchmarkReset measures the end of an activation that has left nothing.
func BenchmarkReset(b *testing.B) {
	s := startSleeper(b, startHelper(b, Config{}), "a")
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if _, err := s.Reset(b.Context()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	tell(b, "reset", took)
}
