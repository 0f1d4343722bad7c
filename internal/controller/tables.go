package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/behaviour"
	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/memo"
	"forerun.dev/forerun/internal/speculate"
)

// tables are what the committed slots of a namespace taught (C3), and what its invocations share besides.
type tables struct {
	memo      *memo.Tenant
	flights   *flights
	predictor *speculate.Predictor
	ahead     atomic.Int64 // speculative functions of its invocations
	buffered  atomic.Int64 // bytes in their columns
	uses      cacheUses
	suspended suspensions
	samples   samples
	behaviour behaviour.Monitor

	mu      sync.Mutex // guards the rest
	callers map[forerun.Digest]bool
	habits  map[forerun.Digest]*habit
}

// habit is what is known of a function whose answer may be guessed.
type habit struct {
	took  time.Duration // its approximate duration in order; 0: unknown
	cpu   time.Duration // of the processors that it takes; 0: that is not known
	alone time.Duration // its approximate duration in order, without its calls; 0: unknown
	wrong int           // how often in a row it gave something else than on the same input before
	stray int           // how often in a row it called something else
	long  int           // how often in a row it was speculative for half of its time limit

	ahead, squashed float64 // how often it was speculative and right, and how often squashed; older events count less
}

// A function is risky if it was squashed at least this often recently, and in this share of its speculative runs.
const (
	riskyFrom  = 2
	riskyShare = 0.02
	lately     = 0.995 // of what is counted, each time that there is something to count
)

// wrongTooOften is the number of consecutive wrong predictions from which a function's outputs or calls are not
// predicted, until predictions would be right again.
const wrongTooOften = 2

// longTooOften is how many times in a row a function may be speculative for half of its time limit. Then it runs in
// order until it needs less time.
const longTooOften = 2

// maxKnown bounds the functions known to call others, and those whose time is known.
const maxKnown = 10_000

// allTables are the tables of all namespaces.
type allTables struct {
	memo    *memo.Table
	waiting atomic.Int64  // executions that wait for an equal one
	flight  atomic.Uint64 // the number of the last one that others may wait for
	mu      sync.Mutex    // guards of
	of      map[string]*tables
}

func newTables(rows memo.Options) *allTables {
	return &allTables{memo: memo.New(rows), of: make(map[string]*tables)}
}

func (a *allTables) tenant(namespace string) *tables {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.of[namespace]
	if t == nil {
		t = &tables{memo: a.memo.Tenant(namespace), flights: newFlights(&a.waiting, &a.flight), predictor: speculate.NewPredictor(), callers: make(map[forerun.Digest]bool), habits: make(map[forerun.Digest]*habit)}
		a.of[namespace] = t
	}
	return t
}

// tenants are the parts of the memo table, by namespace.
func (a *allTables) tenants() map[string]*memo.Tenant {
	a.mu.Lock()
	defer a.mu.Unlock()
	tenants := make(map[string]*memo.Tenant, len(a.of))
	for namespace, t := range a.of {
		tenants[namespace] = t.memo
	}
	return tenants
}

func (a *allTables) forget(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, namespace)
	a.memo.Forget(namespace)
}

func (t *tables) calls(code forerun.Digest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.callers[code]
}

func (t *tables) noteCaller(code forerun.Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.callers) >= maxKnown {
		clear(t.callers)
	}
	t.callers[code] = true
}

// doubts are reasons not to speculate behind a function, or not to launch it speculatively.
type doubts struct {
	open     bool // its output is not worth predicting
	stray    bool // nor what it calls
	computes bool // it computes for more than a third of its time
	risky    bool // it was squashed more often than others
	long     bool // it was speculative for half of its time limit
}

func (t *tables) doubts(code forerun.Digest, least time.Duration) doubts {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.habits[code]
	if h == nil {
		return doubts{}
	}
	return doubts{
		open: h.wrong >= wrongTooOften || h.took > 0 && h.took < least, stray: h.stray >= wrongTooOften,
		computes: h.took > 0 && h.cpu > h.took/3,
		risky:    h.squashed >= riskyFrom && h.squashed > riskyShare*(h.ahead+h.squashed),
		long:     h.long >= longTooOften,
	}
}

// habit returns a function's habit for modification. The caller holds mu.
func (t *tables) habit(code forerun.Digest) *habit {
	h := t.habits[code]
	if h == nil {
		if len(t.habits) >= maxKnown {
			clear(t.habits)
		}
		h = new(habit)
		t.habits[code] = h
	}
	return h
}

// noteTime notes the duration of a function, its duration without its calls, and its processor time. An increase is
// averaged in slowly, because it mostly comes from the machine's load.
func (t *tables) noteTime(code forerun.Digest, took, alone, cpu time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.habit(code)
	h.took, h.alone, h.cpu = slowly(h.took, took), slowly(h.alone, alone), cpu
}

// slowly is the duration to keep of a function: known is the one before, now the new one.
func slowly(known, now time.Duration) time.Duration {
	if known != 0 && now > known {
		now = known + (now-known)/16
	}
	return max(1, now)
}

// noteFaster notes the duration of a speculative run, if it is shorter than the one that is known of runs in order.
func (t *tables) noteFaster(code forerun.Digest, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.habits[code]; h != nil {
		h.alone = min(h.alone, max(1, took))
	}
}

// alone is the approximate duration of a function that runs in order, without its calls; 0: unknown.
func (t *tables) alone(code forerun.Digest) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.habits[code]; h != nil {
		return h.alone
	}
	return 0
}

// noteRow notes whether a function did what it did on the same input before.
func (t *tables) noteRow(code forerun.Digest, before, now *forerun.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.habit(code)
	h.wrong = inARow(h.wrong, !bytes.Equal(before.Output, now.Output))
	h.stray = inARow(h.stray, !slices.EqualFunc(before.Callees, now.Callees, sameCall))
}

// noteAhead notes the outcome of a speculative run.
func (t *tables) noteAhead(code forerun.Digest, squashed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.habit(code)
	h.ahead, h.squashed = lately*h.ahead, lately*h.squashed
	if squashed {
		h.squashed++
	} else {
		h.ahead++
		h.long = 0
	}
}

// noteLong notes whether a function took half of its time limit, speculatively or in order.
func (t *tables) noteLong(code forerun.Digest, long bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.habit(code)
	h.long = inARow(h.long, long)
}

// forgive slowly clears the squashes of a function that runs in order because of them, so that it can be tried again.
func (t *tables) forgive(code forerun.Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.habit(code).squashed *= lately
}

func inARow(n int, more bool) int {
	if more {
		return n + 1
	}
	return 0
}

func sameCall(a, b forerun.Callee) bool {
	return a.Action == b.Action && a.Code == b.Code && bytes.Equal(a.Input, b.Input)
}

// lookAhead decides how much an invocation speculates. A single function that is not known to call others has nothing to
// speculate about, if its output need not be known. A conductor counts its steps as they happen.
func (e *execution) lookAhead(r Request) []speculate.Option {
	options := e.cache(r)
	e.speculation, e.off = e.c.speculation(r)
	if e.speculation.Mode == speculate.Off {
		return options
	}
	e.mayAhead = true
	tables := e.c.tables.tenant(e.namespace)
	program := r.part
	if program == nil {
		program, _ = e.c.programs.of(r.Action) // its error comes up again when it is resolved
	}
	_, conductor := program.(flow.Conductor)
	alone := conductor || program == nil && !tables.calls(e.c.digests.Deployed(r.Action))
	if alone || !e.permitted(r) {
		e.speculation.Mode = speculate.Off
		if e.off = e.permit.why; conductor {
			e.off = forerun.ReasonConductor
		}
		return options
	}
	e.tables, e.memo = tables, tables.memo
	e.depth, e.changes = e.depthNow(), e.c.Actions.Changes()
	return append(options,
		speculate.Speculate(e.speculation.Mode, tables.memo, tables.predictor, &e.c.executor),
		speculate.Depth(e.depth), speculate.Band(e.speculation.Band),
	)
}

// permitted reports whether there is processor time for the invocation to speculate.
func (e *execution) permitted(r Request) bool {
	if e.speculation.AnyLoad {
		return true
	}
	e.permit = e.c.toll.ask(time.Now(), asked{e.namespace, e.c.digests.Deployed(r.Action), r.part != nil, e.speculation.Mode})
	return e.permit.ahead
}

// speculation returns the settings of the request, or of the action, or of the server, within the server's bounds. off
// names the one that turned speculation off.
func (c *Controller) speculation(r Request) (given speculate.Settings, off forerun.ReasonCode) {
	if given = c.Speculation; given.Mode != speculate.Off && !c.MayAhead() {
		return speculate.NewSettings(speculate.Off), forerun.ReasonOperatorOff
	}
	given.EndSandbox = false
	var text string
	if value := forerun.Lookup(r.Action.Annotations, "speculate"); value != nil && json.Unmarshal(value, &text) == nil {
		if asked, err := given.With(text); err == nil {
			given, off = asked, forerun.ReasonAnnotationOff
		}
	}
	if r.Speculation != nil {
		given, off = *r.Speculation, forerun.ReasonRequestOff
	}
	switch {
	case c.Speculation.Mode == speculate.Off:
		off = forerun.ReasonServerOff
	case given.Mode != speculate.Off:
		off = ""
	}
	given, _ = given.Within(c.Speculation)
	given.EndSandbox = given.EndSandbox && r.Speculation != nil
	return given, off
}

// Ignored names the settings of a request that are not in effect, and the reason; it is empty if all are, or if the
// request has none.
func (c *Controller) Ignored(asked speculate.Settings) string {
	if asked.Mode == speculate.Off {
		return ""
	}
	var ignored []string
	if !c.MayAhead() {
		ignored = append(ignored, asked.Mode.String()+": the operator has switched speculation off (forerun speculation on)")
	}
	if _, denied := asked.Within(c.Speculation); denied != "" {
		ignored = append(ignored, fmt.Sprintf("%s: the server has to be started with that, too, and was with --speculate %q", denied, c.Speculation))
	}
	return strings.Join(ignored, "; ")
}

// noteCaller notes that a committed function (C3), which was not given up, calls others. Its next invocation may then
// speculate.
func (e *execution) noteCaller(s *slot) {
	if s.calls && e.c.Speculation.Mode != speculate.Off && s.record.Status != forerun.InternalError {
		e.c.tables.tenant(e.namespace).noteCaller(e.c.digests.Deployed(s.action))
	}
}

// noteTime learns from a committed function (C3) that was executed in order. From a speculative one it learns only that it
// takes no longer by itself. A function that answers with an error may be faster than usual, but its time counts. A
// function that could not be executed teaches nothing.
func (e *execution) noteTime(s *slot) {
	line := &s.record.Timeline
	if s.program || line.Skipped || line.Launched.IsZero() || s.record.Status == forerun.InternalError {
		return
	}
	tables := e.tables
	if tables == nil && s.parent != nil && e.c.Speculation.Mode != speculate.Off { // the request is in order, others need not be
		tables = e.c.tables.tenant(e.namespace)
	}
	if tables == nil {
		return
	}
	code, took, success := e.code(s), line.Finished.Sub(line.Launched), s.record.Status == forerun.Success
	switch {
	case s.early && success:
		tables.noteFaster(code, s.own())
		return
	case s.early:
		return
	case success:
		tables.noteTime(code, took, s.own(), s.cpu)
	}
	if limit := time.Duration(s.action.Limits.Timeout) * time.Millisecond; took < limit/2 {
		tables.noteLong(code, false)
	}
}

// learnFrom takes the lessons of a list of actions before any of them is carried out. A client that receives a result
// may repeat its request at once, and then finds the lesson learnt.
func (e *execution) learnFrom(actions []speculate.Action) {
	for _, action := range actions {
		if a, ok := action.(speculate.Learn); ok {
			e.learn(a)
		}
	}
}

func (e *execution) learn(a speculate.Learn) {
	l := a.Lesson
	if l == nil {
		return
	}
	if l.Row != nil {
		s := e.slots[a.Slot]
		l.Row.Took = s.own()
		e.heedWeb(s, l.Row)
		if !l.Row.Until.IsZero() {
			l.Row.Since = e.c.Clock.Now()
		}
		l.Row.By, l.Row.Home, l.Row.Input = s.record.ID, e.c.home(s.action), s.shownInput()
		if l.Row.Remembers {
			l.Row = e.unverified(s, l.Row)
		}
		if s.watched {
			e.c.tables.tenant(e.namespace).behaviour.Note(l.Row.Home, behaviour.Execution{Input: l.Input, Row: l.Row, Took: l.Row.Took, CPU: s.cpu})
		}
		if s.suspended != nil { // it does not stand after Resume, either
			l.Row.Bar(s.suspended)
		}
		if e.speculation.Mode == speculate.Off && !s.cache.Kept { // it was followed for that alone
			return
		}
		if before := e.memo.Learn(l.Code, l.Input, l.Row); before != nil {
			e.compare(s, before, l.Row)
			if before.Remembers && l.Row.Remembers && l.Row.IsSeen() { // the input comes again
				s.compared = l.Row
			}
			if e.tables != nil {
				e.tables.noteRow(l.Code, before, l.Row)
			}
		}
		e.landed(s, l.Row.Stands() && e.memo.Keeps(l.Row))
		if e.c.Actions.Changes() != e.found { // the last sweep may have come before the row
			e.c.dropOld(e.namespace, e.memo, l.Row.Homes())
		}
	}
	if l.Outcome != nil {
		e.tables.predictor.Learn(*l.Outcome)
	}
}
