package controller

import (
	"encoding/json"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/memo"
	"forerun.dev/forerun/internal/speculate"
)

func TestQuick(t *testing.T) {
	tables := newTables(memo.Options{}).tenant("ns")
	code := forerun.Digest{1}
	quick := func() bool { return tables.doubts(code, time.Millisecond).open }
	if quick() {
		t.Error("a function of which nothing is known is quick")
	}
	tables.noteTime(code, 5*time.Millisecond, 5*time.Millisecond, 0)
	if quick() {
		t.Error("5 ms are quick")
	}
	tables.noteTime(code, 500*time.Microsecond, 500*time.Microsecond, 0)
	tables.noteTime(code, 5*time.Millisecond, 5*time.Millisecond, 0) // the machine was busy
	if !quick() {
		t.Error("0.5 ms are not quick")
	}
	for range 50 {
		tables.noteTime(code, 5*time.Millisecond, 5*time.Millisecond, 0)
	}
	if quick() {
		t.Error("it has become slow, which nobody notices")
	}
}

// TestTablesAreBounded has one namespace run more functions than are remembered; another's are not forgotten for that.
func TestTablesAreBounded(t *testing.T) {
	all := newTables(memo.Options{})
	mine, theirs := all.tenant("mine"), all.tenant("theirs")
	mine.noteCaller(forerun.Digest{1})
	mine.noteTime(forerun.Digest{1}, time.Microsecond, time.Microsecond, 0)
	row := &forerun.Row{Output: json.RawMessage(`1`)}
	for n := range 3 * maxKnown {
		code := forerun.Digest{2, byte(n), byte(n >> 8), byte(n >> 16)}
		theirs.noteCaller(code)
		theirs.noteTime(code, time.Second, time.Second, 0)
		theirs.noteRow(code, row, row)
		if len(theirs.callers) > maxKnown || len(theirs.habits) > maxKnown {
			t.Fatalf("%d callers and %d habits are known", len(theirs.callers), len(theirs.habits))
		}
	}
	if !mine.doubts(forerun.Digest{1}, time.Millisecond).open || !mine.calls(forerun.Digest{1}) {
		t.Error("another's functions have pushed a function out")
	}
}

func TestComputes(t *testing.T) {
	tables := newTables(memo.Options{}).tenant("ns")
	for cpu, want := range map[time.Duration]bool{0: false, 1 * time.Millisecond: false, 4 * time.Millisecond: true, 9 * time.Millisecond: true} {
		tables.noteTime(forerun.Digest{1}, 6*time.Millisecond, 6*time.Millisecond, cpu)
		if got := tables.doubts(forerun.Digest{1}, 0).computes; got != want {
			t.Errorf("%v of processors in 6 ms: %v", cpu, got)
		}
	}
}

func TestRisky(t *testing.T) {
	tables := newTables(memo.Options{}).tenant("ns")
	code := forerun.Digest{1}
	for i, c := range []struct {
		squashed, right int // times, one after the other
		risky           bool
	}{{1, 0, false}, {3, 0, true}, {0, 40, true}, {0, 400, false}, {5, 0, true}} {
		for range c.squashed {
			tables.noteAhead(code, true)
		}
		for range c.right {
			tables.noteAhead(code, false)
		}
		if got := tables.doubts(code, 0).risky; got != c.risky {
			t.Errorf("step %d: risky %v, of %+v", i, got, *tables.habits[code])
		}
	}
}

// TestRiskIsForgiven: a function that was squashed too often is speculative again after a while, when it may do better.
func TestRiskIsForgiven(t *testing.T) {
	code := forerun.Digest{1}
	e := &execution{tables: newTables(memo.Options{}).tenant("ns"), c: &Controller{Config: Config{Load: func(string) forerun.Load { return forerun.Load{Busy: 1} }}}}
	barred := func() (times int) {
		for e.forbids(code, e.tables.doubts(code, 0)) && times < 1000 {
			times++
		}
		return times
	}
	for range 3 {
		e.tables.noteAhead(code, true)
	}
	if n := barred(); n < 50 || n > 200 {
		t.Errorf("after three squashes it does not run ahead %d times", n)
	}
	e.tables.noteAhead(code, true)
	if n := barred(); n < 50 || n > 200 {
		t.Errorf("after another it does not run ahead %d times", n)
	}
}

func TestForbids(t *testing.T) {
	for _, c := range []struct {
		doubts doubts
		busy   float64
		want   bool
	}{
		{doubts{}, 1, false},
		{doubts{computes: true}, 0.5, false},
		{doubts{computes: true}, 0.51, true},
		{doubts{risky: true}, 0.5, false},
		{doubts{risky: true}, 0.51, true},
		{doubts{open: true, stray: true}, 1, false},
	} {
		e := &execution{tables: newTables(memo.Options{}).tenant("ns"), c: &Controller{Config: Config{Load: func(string) forerun.Load { return forerun.Load{Busy: c.busy} }}}}
		if got := e.forbids(forerun.Digest{1}, c.doubts); got != c.want {
			t.Errorf("%+v, %v busy: %v", c.doubts, c.busy, got)
		}
		e.speculation.AnyLoad = true
		if e.forbids(forerun.Digest{1}, c.doubts) {
			t.Errorf("%+v, any load: something is forbidden", c.doubts)
		}
	}
	if e := (&execution{c: new(Controller)}); e.forbids(forerun.Digest{1}, doubts{computes: true, risky: true}) {
		t.Error("without a measure of the load something is forbidden")
	}
}

// TestRunsAheadAgain: a function that was ahead for too long runs ahead again once it is fast enough in its turn, also with errors.
func TestRunsAheadAgain(t *testing.T) {
	const limit = 1000 // ms
	for _, c := range []struct {
		status forerun.Status
		took   time.Duration
		long   bool
	}{
		{forerun.Success, 100 * time.Millisecond, false},
		{forerun.ApplicationError, 100 * time.Millisecond, false},
		{forerun.DeveloperError, 100 * time.Millisecond, false},
		{forerun.DeveloperError, limit * time.Millisecond, true},
		{forerun.ApplicationError, 600 * time.Millisecond, true},
		{forerun.InternalError, 100 * time.Millisecond, true},
	} {
		e := &execution{tables: newTables(memo.Options{}).tenant("ns"), c: new(Controller)}
		action := &forerun.Action{Limits: forerun.Limits{Timeout: limit}}
		code := e.c.digests.Deployed(action)
		for range longTooOften {
			e.tables.noteLong(code, true)
		}
		launched := time.Unix(1, 0)
		line := forerun.Timeline{Launched: launched, Finished: launched.Add(c.took)}
		e.noteTime(&slot{action: action, record: &forerun.Activation{Status: c.status, Timeline: line}})
		if got := e.tables.doubts(code, 0).long; got != c.long {
			t.Errorf("%v after %v in its turn: it is left for its turn: %v", c.status, c.took, got)
		}
		if took := e.tables.habits[code].took; (took > 0) != (c.status == forerun.Success) {
			t.Errorf("%v: it takes %v", c.status, took)
		}
	}
}

// TestSkipsTakeNoTime: that a function was not executed says nothing of how long it takes.
func TestSkipsTakeNoTime(t *testing.T) {
	e := &execution{tables: newTables(memo.Options{}).tenant("ns"), c: new(Controller)}
	action := &forerun.Action{Limits: forerun.Limits{Timeout: 1000}}
	code := e.c.digests.Deployed(action)
	e.tables.noteTime(code, 800*time.Millisecond, 800*time.Millisecond, 700*time.Millisecond)
	for range longTooOften {
		e.tables.noteLong(code, true)
	}
	before := *e.tables.habits[code]
	s := &slot{action: action, record: new(forerun.Activation)}
	e.slots = map[speculate.SlotID]*slot{1: s}
	e.skip(speculate.Skip{Slot: 1, Row: new(forerun.Row)})
	e.noteTime(s)
	if now := *e.tables.habits[code]; now != before {
		t.Errorf("it was %+v, and is %+v", before, now)
	}
}

func TestWrongGuesses(t *testing.T) {
	tables := newTables(memo.Options{}).tenant("ns")
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
		if d := tables.doubts(code, 0); d.open != c.open || d.stray != c.stray {
			t.Errorf("after %d rows: %+v", i+1, d)
		}
	}
}

func TestHabitsAreBounded(t *testing.T) {
	tables := newTables(memo.Options{}).tenant("ns")
	for i := range 3 * maxKnown {
		tables.noteTime(forerun.Digest{byte(i), byte(i >> 8), byte(i >> 16)}, time.Second, time.Second, 0)
	}
	if n := len(tables.habits); n > maxKnown {
		t.Errorf("the habits of %d functions are kept", n)
	}
}

// The server's word is the most that anybody gets. Below it the request's counts, then the action's.
func TestSwitches(t *testing.T) {
	const off, branches, all = speculate.Off, speculate.Branches, speculate.All
	asks := func(m speculate.Mode) *speculate.Settings {
		return &speculate.Settings{Mode: m, Depth: 7, AnyLoad: true, EndSandbox: true}
	}
	for name, c := range map[string]struct {
		server     speculate.Settings
		annotation string
		request    *speculate.Settings
		killed     bool
		want       speculate.Settings
		off        forerun.ReasonCode
	}{
		"as the server says":          {server: speculate.Settings{Mode: all, Depth: 3}, want: speculate.Settings{Mode: all, Depth: 3}},
		"the action's is less":        {server: speculate.Settings{Mode: all, Depth: 3}, annotation: `"branches"`, want: speculate.Settings{Mode: branches, Depth: 3}},
		"the action's is more":        {server: speculate.Settings{Mode: branches}, annotation: `"all"`, want: speculate.Settings{Mode: branches}},
		"the action names a depth":    {server: speculate.Settings{Mode: all, Depth: 3, Band: 0.3}, annotation: `"all; depth=5; load=any; squash=sandbox"`, want: speculate.Settings{Mode: all, Depth: 5, Band: 0.3}},
		"no action ends sandboxes":    {server: speculate.Settings{Mode: all, EndSandbox: true}, annotation: `"all; squash=sandbox"`, want: speculate.Settings{Mode: all}},
		"the action has it off":       {server: speculate.Settings{Mode: all}, annotation: `"off"`, want: speculate.Settings{Mode: off}, off: forerun.ReasonAnnotationOff},
		"the action's cannot be read": {server: speculate.Settings{Mode: all}, annotation: `"always"`, want: speculate.Settings{Mode: all}},
		"the action's is no word":     {server: speculate.Settings{Mode: all}, annotation: `true`, want: speculate.Settings{Mode: all}},
		"the request's is before it":  {server: speculate.Settings{Mode: all}, annotation: `"off"`, request: asks(all), want: speculate.Settings{Mode: all, Depth: 7}},
		"the request has it off":      {server: speculate.Settings{Mode: all}, annotation: `"all"`, request: asks(off), want: speculate.Settings{Mode: off, Depth: 7}, off: forerun.ReasonRequestOff},
		"the server has it off":       {server: speculate.Settings{Mode: off}, annotation: `"all"`, request: asks(all), want: speculate.Settings{Mode: off, Depth: 7}, off: forerun.ReasonServerOff},
		"the kill switch":             {server: speculate.Settings{Mode: all}, annotation: `"all"`, request: asks(all), killed: true, want: speculate.NewSettings(off), off: forerun.ReasonOperatorOff},
		"both have it off":            {server: speculate.Settings{Mode: off}, killed: true, want: speculate.Settings{Mode: off}, off: forerun.ReasonServerOff},
		"all have it off":             {server: speculate.Settings{Mode: off}, annotation: `"off"`, request: asks(off), want: speculate.Settings{Mode: off, Depth: 7}, off: forerun.ReasonServerOff},
		"at any load":                 {server: speculate.Settings{Mode: all, AnyLoad: true}, request: asks(all), want: speculate.Settings{Mode: all, Depth: 7, AnyLoad: true}},
		"squashes end sandboxes":      {server: speculate.Settings{Mode: all, EndSandbox: true}, request: asks(all), want: speculate.Settings{Mode: all, Depth: 7, EndSandbox: true}},
		"but nobody else's":           {server: speculate.Settings{Mode: all, EndSandbox: true}, want: speculate.Settings{Mode: all}},
	} {
		action := new(forerun.Action)
		if c.annotation != "" {
			action.Annotations = []forerun.KeyValue{{Key: "speculate", Value: json.RawMessage(c.annotation)}}
		}
		controller := &Controller{Config: Config{Speculation: c.server}}
		controller.LetAhead(!c.killed)
		got, off := controller.speculation(Request{Action: action, Speculation: c.request})
		if got != c.want || off != c.off {
			t.Errorf("%s: %+v, %q; want %+v, %q", name, got, off, c.want, c.off)
		}
	}
}

// TestIgnored: a setting of a request that is not in effect is named, with the setting that forbids it.
func TestIgnored(t *testing.T) {
	for _, c := range []struct {
		server, request string
		killed          bool
		want            string
	}{
		{"all", "all; depth=64", false, ""},
		{"all", "off; load=any", true, ""},
		{"off", "off", false, ""},
		{"all", "all; load=any", false, `load=any: the server has to be started with that, too, and was with --speculate "all; depth=32; band=0.1; least=1ms"`},
		{"all", "all; load=any", true, `all: the operator has switched speculation off (forerun speculation on); load=any: the server has to be started with that, too, and was with --speculate "all; depth=32; band=0.1; least=1ms"`},
		{"off", "all", true, `all: the operator has switched speculation off (forerun speculation on); all: the server has to be started with that, too, and was with --speculate "off; depth=32; band=0.1; least=1ms"`},
		{"all", "branches", true, "branches: the operator has switched speculation off (forerun speculation on)"},
	} {
		server, err := speculate.ParseSettings(c.server)
		request, err2 := speculate.ParseSettings(c.request)
		controller := &Controller{Config: Config{Speculation: server}}
		controller.LetAhead(!c.killed)
		if got := controller.Ignored(request); got != c.want || err != nil || err2 != nil {
			t.Errorf("%s of %s, killed %v: %q, want %q", c.request, c.server, c.killed, got, c.want)
		}
	}
}
