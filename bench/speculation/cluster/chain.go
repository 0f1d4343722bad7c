package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// Chain is a sequence of functions each of which is known, and right: what drives the machine with the least beside it.
type Chain struct {
	program   forerun.Program
	input     json.RawMessage
	memo      *table
	predictor *speculate.Predictor
	code      forerun.Digest
}

// NewChain makes a sequence of n functions.
func NewChain(n int) *Chain {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("/_/f%d", i)
	}
	c := &Chain{program: flow.Sequence(names), input: json.RawMessage(`{"n":1}`), memo: newTable(), predictor: speculate.NewPredictor(), code: sha256.Sum256(nil)}
	c.memo.learn(&speculate.Lesson{Code: c.code, Input: c.input, Row: &forerun.Row{Output: c.input}})
	return c
}

// Drive runs invocations until the machine has been told at least n events, and returns how many it was told.
func (c *Chain) Drive(n int) (events int) {
	for events < n {
		events += c.invoke()
	}
	return events
}

// invoke runs one invocation: what is launched returns at once, in the order in which it was launched.
func (c *Chain) invoke() (events int) {
	m, actions := speculate.New(entry, c.input, speculate.Speculate(speculate.All, c.memo, c.predictor, records{}))
	var next []speculate.Event
	for {
		for _, a := range actions {
			switch a := a.(type) {
			case speculate.Resolve:
				if a.Action == entry {
					next = append(next, speculate.Entered{Slot: a.Slot, Program: c.program, Code: c.code, Input: a.Input})
				} else {
					next = append(next, speculate.Resolved{Slot: a.Slot, Code: c.code, Input: a.Input})
				}
			case speculate.Launch:
				next = append(next, speculate.Output{Slot: a.Slot, Result: forerun.Result{Value: c.input}})
			case speculate.Finish:
				return events
			}
		}
		if len(next) == 0 {
			panic("an invocation waits for nothing") // the machine would be wrong
		}
		actions = m.Step(next[0])
		next = next[1:]
		events++
	}
}
