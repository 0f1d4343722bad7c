package controller

import (
	"encoding/json"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

func TestQuick(t *testing.T) {
	tables := newTables().tenant("ns")
	code := forerun.Digest{1}
	quick := func() bool { open, _ := tables.doubts(code, time.Millisecond); return open }
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

func TestWrongGuesses(t *testing.T) {
	tables := newTables().tenant("ns")
	code := forerun.Digest{1}
	row := func(output string, callees ...string) *forerun.Row {
		r := &forerun.Row{Output: json.RawMessage(output)}
		for _, name := range callees {
			r.Callees = append(r.Callees, forerun.Callee{Action: name})
		}
		return r
	}
	before := row("1", "f")
	for i, c := range []struct {
		now         *forerun.Row
		open, stray bool
	}{
		{row("2", "f"), false, false},
		{row("1", "f"), false, false},
		{row("2", "g"), false, false},
		{row("3"), true, true},
		{row("4", "f"), true, false},
		{row("1", "f"), false, false},
	} {
		tables.noteRow(code, before, c.now)
		if open, stray := tables.doubts(code, 0); open != c.open || stray != c.stray {
			t.Errorf("after %d rows: %v %v", i+1, open, stray)
		}
	}
}

func TestHabitsAreBounded(t *testing.T) {
	tables := newTables().tenant("ns")
	for i := range 3 * maxKnown {
		tables.noteTime(forerun.Digest{byte(i), byte(i >> 8), byte(i >> 16)}, time.Second)
	}
	if n := len(tables.habits); n > maxKnown {
		t.Errorf("the habits of %d functions are kept", n)
	}
}
