package controller

import (
	"encoding/json"
	"sync"
	"time"

	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/memo"
	"forerun.dev/forerun/internal/speculate"
)

// tables are what the committed slots of a namespace taught (C3).
type tables struct {
	memo      *memo.Tenant
	predictor *speculate.Predictor

	mu      sync.Mutex // guards the rest
	callers map[forerun.Digest]bool
	took    map[forerun.Digest]time.Duration // about how long each function takes when it does not run ahead
}

// maxKnown bounds the functions known to call others, and those whose time is known.
const maxKnown = 10_000

// allTables are those of all namespaces.
type allTables struct {
	memo *memo.Table
	mu   sync.Mutex // guards of
	of   map[string]*tables
}

func newTables() *allTables {
	return &allTables{memo: memo.New(memo.Options{}), of: make(map[string]*tables)}
}

func (a *allTables) tenant(namespace string) *tables {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.of[namespace]
	if t == nil {
		t = &tables{memo: a.memo.Tenant(namespace), predictor: speculate.NewPredictor(), callers: make(map[forerun.Digest]bool), took: make(map[forerun.Digest]time.Duration)}
		a.of[namespace] = t
	}
	return t
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

func (t *tables) isQuick(code forerun.Digest, least time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	took, known := t.took[code]
	return known && took < least
}

// noteTime notes how long a function took. What made it slower than before is taken in slowly: mostly it was the machine's load.
func (t *tables) noteTime(code forerun.Digest, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, known := t.took[code]
	switch {
	case !known && len(t.took) >= maxKnown:
		clear(t.took)
	case known && took > before:
		took = before + (took-before)/16
	}
	t.took[code] = took
}

// lookAhead decides how far an invocation runs ahead. A function that is not known to call others has nothing to run ahead of,
// and a conductor counts its steps as it goes.
func (e *execution) lookAhead(r Request) []speculate.Option {
	e.speculation = e.c.speculation(r)
	if e.speculation.Mode == speculate.Off {
		return nil
	}
	tables := e.c.tables.tenant(e.namespace)
	program := r.part
	if program == nil {
		program, _ = e.c.programs.of(r.Action) // its error comes up again when it is resolved
	}
	_, conductor := program.(flow.Conductor)
	if conductor || program == nil && !tables.calls(e.c.digests.Of(r.Action)) {
		e.speculation.Mode = speculate.Off
		return nil
	}
	e.tables = tables
	e.depth = e.c.depth(e.speculation)
	return []speculate.Option{
		speculate.Speculate(e.speculation.Mode, tables.memo, tables.predictor, &e.c.executor),
		speculate.Depth(e.depth), speculate.Band(e.speculation.Band),
	}
}

// speculation is what the request says, or the action, or the server. Nobody gets more than the server allows.
func (c *Controller) speculation(r Request) speculate.Settings {
	given := c.Speculation
	var word string
	if json.Unmarshal(forerun.Lookup(r.Action.Annotations, "speculate"), &word) == nil {
		if mode, ok := speculate.ParseMode(word); ok {
			given.Mode = min(given.Mode, mode)
		}
	}
	if r.Speculation != nil {
		allowed := c.Speculation.Mode
		given = *r.Speculation
		given.Mode = min(given.Mode, allowed)
	}
	return given
}

// noteCaller notes that a function calls others, so that its next invocation may run ahead.
func (e *execution) noteCaller(s *slot) {
	if e.c.Speculation.Mode != speculate.Off {
		e.c.tables.tenant(e.namespace).noteCaller(e.c.digests.Of(s.action))
	}
}

// noteTime learns from a function that is committed (C3) and did not run ahead.
func (e *execution) noteTime(s *slot) {
	line := &s.record.Timeline
	if e.tables != nil && !s.program && !line.Speculative && !line.Launched.IsZero() && s.record.Status == forerun.Success {
		e.tables.noteTime(e.c.digests.Of(s.action), line.Finished.Sub(line.Launched))
	}
}

func (e *execution) learn(a speculate.Learn) {
	l := a.Lesson
	if l == nil {
		return
	}
	if l.Row != nil {
		e.tables.memo.Learn(l.Code, l.Input, l.Row)
	}
	if l.Outcome != nil {
		e.tables.predictor.Learn(*l.Outcome)
	}
}
