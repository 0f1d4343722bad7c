package controller

import (
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

func TestQuick(t *testing.T) {
	tables := newTables().tenant("ns")
	code := forerun.Digest{1}
	quick := func() bool { return tables.isQuick(code, time.Millisecond) }
	if quick() {
		t.Error("a function of which nothing is known is quick")
	}
	tables.noteTime(code, 5*time.Millisecond)
	if quick() {
		t.Error("5 ms are quick")
	}
	tables.noteTime(code, 500*time.Microsecond)
	tables.noteTime(code, 5*time.Millisecond) // the machine was busy
	if !quick() {
		t.Error("0.5 ms are not quick")
	}
	for range 50 {
		tables.noteTime(code, 5*time.Millisecond)
	}
	if quick() {
		t.Error("it has become slow, which nobody notices")
	}
}

func TestTimesAreBounded(t *testing.T) {
	tables := newTables().tenant("ns")
	for i := range 3 * maxKnown {
		tables.noteTime(forerun.Digest{byte(i), byte(i >> 8), byte(i >> 16)}, time.Second)
	}
	if n := len(tables.took); n > maxKnown {
		t.Errorf("the times of %d functions are kept", n)
	}
}
