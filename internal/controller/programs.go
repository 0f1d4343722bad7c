package controller

import (
	"sync"

	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
)

// maxPrograms bounds the compiled programs kept; the cache starts anew when it is full.
const maxPrograms = 1000

// programs keeps what actions compiled to. An action is immutable, so its pointer is the key.
type programs struct {
	mu       sync.Mutex // guards compiled
	compiled map[*forerun.Action]*flow.Program
}

// of returns the program that an action is, or nil if it is a function.
func (p *programs) of(a *forerun.Action) (*flow.Program, error) {
	p.mu.Lock()
	program, ok := p.compiled[a]
	p.mu.Unlock()
	if ok {
		return program, nil
	}
	program, err := flow.Of(a)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.compiled == nil || len(p.compiled) >= maxPrograms {
		p.compiled = make(map[*forerun.Action]*flow.Program)
	}
	p.compiled[a] = program
	return program, nil
}
