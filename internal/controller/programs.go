package controller

import (
	"sync"
	"weak"

	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
)

// Bounds on the number and bytes of cached compiled programs. A full cache is emptied.
const (
	maxPrograms     = 1000
	maxProgramBytes = 64 << 20
)

// largeDocument is from how many bytes on compositions are compiled one at a time: meanwhile one takes a hundred times as much memory.
const largeDocument = 16 << 10

// programs keeps what compositions compiled to. An action is immutable, so its pointer is the key; it is not kept alive.
type programs struct {
	large sync.Mutex // held while a large document is compiled

	mu       sync.Mutex // guards the rest
	compiled map[weak.Pointer[forerun.Action]]forerun.Program
	bytes    int // that these take
	inlined  map[inlineKey]*forerun.Action
}

// inlineKey names the functions of one kind that a composition brings along.
type inlineKey struct {
	composition weak.Pointer[forerun.Action]
	kind        string
}

// inline returns the action that executes the functions of a composition: it goes by its name and has its limits.
func (p *programs) inline(composition *forerun.Action, kind string) *forerun.Action {
	key := inlineKey{weak.Make(composition), kind}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.inlined[key]; known != nil {
		return known
	}
	if p.inlined == nil || len(p.inlined) >= maxPrograms {
		p.inlined = make(map[inlineKey]*forerun.Action)
	}
	a := &forerun.Action{
		Name: composition.Name, Version: composition.Version, Exec: flow.FunctionExec(kind), Limits: composition.Limits,
		Updated: composition.Updated, // a new deployment also discards what was learnt of its functions
	}
	p.inlined[key] = a
	return a
}

// of returns the program that an action is, or nil if it is a function.
func (p *programs) of(a *forerun.Action) (forerun.Program, error) {
	key := weak.Make(a)
	p.mu.Lock()
	program, ok := p.compiled[key]
	p.mu.Unlock()
	if ok {
		return program, nil
	}
	program, err := p.compile(a)
	if program == nil || err != nil {
		return nil, err // that it is a function is seen at once
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.compiled[key]; ok {
		return known, nil
	}
	size := sizeOf(program)
	if p.compiled == nil || len(p.compiled) >= maxPrograms || p.bytes+size > maxProgramBytes {
		p.compiled, p.bytes = make(map[weak.Pointer[forerun.Action]]forerun.Program), 0
	}
	p.compiled[key] = program
	p.bytes += size
	return program, nil
}

// compile returns what of does, and keeps nothing.
func (p *programs) compile(a *forerun.Action) (forerun.Program, error) {
	if len(forerun.Lookup(a.Annotations, "conductor")) > largeDocument {
		p.large.Lock()
		defer p.large.Unlock()
	}
	return flow.Of(a)
}

// CheckFlow reports whether an action that runs others can be compiled.
func (c *Controller) CheckFlow(a *forerun.Action) error {
	_, err := c.programs.compile(a)
	return err
}

// sizeOf is about how many bytes a program takes; a conductor takes none.
func sizeOf(p forerun.Program) int {
	if compiled, ok := p.(*flow.Program); ok {
		return compiled.Size()
	}
	return 0
}
