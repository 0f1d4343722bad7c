package controller

import (
	"sync"
	"weak"

	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
)

// maxPrograms bounds the compiled programs kept; the cache starts anew when it is full.
const maxPrograms = 1000

// programs keeps what compositions compiled to. An action is immutable, so its pointer is the key; it is not kept alive.
type programs struct {
	mu       sync.Mutex // guards compiled
	compiled map[weak.Pointer[forerun.Action]]forerun.Program
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
		Updated: composition.Updated, // who deploys it again wants what is known of its functions forgotten, too
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
	program, err := flow.Of(a)
	if program == nil || err != nil {
		return nil, err // that it is a function is seen at once
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.compiled == nil || len(p.compiled) >= maxPrograms {
		p.compiled = make(map[weak.Pointer[forerun.Action]]forerun.Program)
	}
	p.compiled[key] = program
	return program, nil
}
