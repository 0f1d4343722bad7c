package controller

import (
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// BenchmarkNote makes the note of a function of a sequence.
func BenchmarkNote(b *testing.B) {
	s := &slot{
		record: newRecord("ns", "ada", "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"), parent: &slot{},
		action: &forerun.Action{Exec: forerun.Exec{Kind: "native"}, Limits: forerun.Limits{Timeout: 60_000, Memory: 256, Logs: 10, Concurrency: 1}},
		wait:   3 * time.Millisecond,
	}
	s.record.Action = forerun.Name{Namespace: "ns", Package: "pkg", Entity: "hello"}
	b.ReportAllocs()
	for b.Loop() {
		s.note()
	}
}
