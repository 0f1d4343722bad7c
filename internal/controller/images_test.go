package controller

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/clock"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state/command"
)

// TestExecutorKeepsWhatIsNil: to the machine, no list of writes, a list without any and an image that is nil are three things.
func TestExecutorKeepsWhatIsNil(t *testing.T) {
	e := &executor{clock: clock.New(nil)}
	execute := func(line string, reads ...speculate.Image) []speculate.Image {
		_, writes := e.Execute(command.NewStep("space", time.UnixMilli(1000), bytes.Fields([]byte(line))), reads)
		return writes
	}
	made := execute("SET a 1")
	if len(made) != 1 || made[0] == nil || made[0].Absent() {
		t.Fatalf("SET makes %v", made)
	}
	if writes := execute("LPUSH a x", made[0]); writes != nil {
		t.Errorf("what is refused makes %v", writes)
	}
	if writes := execute("GET a", made[0]); writes == nil || len(writes) != 0 {
		t.Errorf("what only reads makes %v", writes)
	}
	if writes := execute("SETNX a 2", made[0]); len(writes) != 1 || writes[0] != nil {
		t.Errorf("what changes nothing makes %v", writes)
	}
	if writes := execute("DEL a", made[0]); len(writes) != 1 || writes[0] == nil || !writes[0].Absent() {
		t.Errorf("DEL makes %v", writes)
	}
}

// TestExecutorLeavesForLater what takes long.
func TestExecutorLeavesForLater(t *testing.T) {
	e := &executor{clock: clock.New(nil)}
	execute := func(line string, reads ...speculate.Image) (any, []speculate.Image) {
		return e.Execute(command.NewStep("space", time.UnixMilli(1000), bytes.Fields([]byte(line))), reads)
	}
	_, made := execute("SET a " + strings.Repeat("x", 24<<20))
	reply, writes := execute("APPEND a x", made...)
	if why, ok := reply.(speculate.Later); !ok || writes != nil || why.Why.String() != "takes_long(APPEND)" {
		t.Errorf("it replies %v, and writes %v", reply, writes)
	}
	if reply, _ := execute("STRLEN a", made...); reply.(command.Outcome).Replies[0].Int != 24<<20 {
		t.Errorf("what takes no time replies %v", reply)
	}
}
