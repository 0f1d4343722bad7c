// Package cluster plays what two processors cannot show: the pure machine of
// internal/speculate, for many requests at once, on a cluster of many
// processors, in virtual time. Functions are no more than how long they compute
// and wait, and what they call.
package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
)

// Cost is what executing functions takes.
type Cost struct {
	CPU  time.Duration // of each function: half before it waits, half after
	Call time.Duration // processor time of each call that it makes, in addition
	Wait time.Duration // of each function, on average, between half of it and one and a half
}

// Application is one that is played.
type Application struct {
	Name      string
	functions map[string]*function
	program   forerun.Program // what is asked; nil: the function "f0"
	inputs    int             // how many different ones there are of the usual kind
	branches  int
	hits      float64 // how often a branch goes the usual way
}

// function is a function of an application.
type function struct {
	wait   time.Duration
	calls  []string
	branch int // which of the input's ways it tells, from 1; 0: it is no branch
	code   forerun.Digest
}

func (a *Application) add(random *rand.Rand, c Cost, name string, calls ...string) {
	a.functions[name] = &function{
		wait: time.Duration((0.5 + random.Float64()) * float64(c.Wait)), calls: calls, code: sha256.Sum256([]byte(a.Name + " " + name)),
	}
}

// output is what a function makes of its input. Which way a branch goes does not follow from the input, as in the paper.
func (f *function) output(input json.RawMessage, ways []bool) forerun.Result {
	if f.branch == 0 {
		return forerun.Result{Value: input}
	}
	return forerun.Result{Value: json.RawMessage(fmt.Sprintf(`{"value":%v}`, ways[f.branch-1]))}
}

// usual is how many different inputs an application has: requests come again, as most do in the paper.
const usual = 50

// Composed is an application from a composition: n functions in a row, each given the request's input, with as many branches
// among them, evenly.
func Composed(name string, n, branches int, hits float64, cost Cost) (*Application, error) {
	a := &Application{Name: name, functions: make(map[string]*function), inputs: usual, branches: branches, hits: hits}
	random := rand.New(rand.NewPCG(uint64(n), uint64(branches)))
	every := n
	if branches > 0 {
		every = max(1, (n-1)/branches)
	}
	var build func(at int, side string) map[string]any
	build = func(at int, side string) map[string]any {
		f := fmt.Sprintf("f%d%s", at, side)
		if a.functions[f] == nil {
			a.add(random, cost, f)
		}
		action := map[string]any{"type": "action", "name": "/_/" + f}
		if at == n-1 {
			return action
		}
		if at%every == every/2 && at/every < branches {
			a.functions[f].branch = at/every + 1
			return map[string]any{"type": "if", "test": action, "consequent": build(at+1, "a"), "alternate": build(at+1, "b")}
		}
		return map[string]any{"type": "sequence", "components": []any{action, build(at+1, side)}}
	}
	document, err := json.Marshal(build(0, "a"))
	if err != nil {
		return nil, err
	}
	action := &forerun.Action{Annotations: []forerun.KeyValue{{Key: "conductor", Value: document}}}
	a.program, err = flow.Of(action)
	return a, err
}

// Called is an application of n functions that call one another: each that calls has so many callees, down to a depth.
func Called(name string, n, callees, depth int, cost Cost) *Application {
	a := &Application{Name: name, functions: make(map[string]*function), inputs: usual, hits: 1}
	random := rand.New(rand.NewPCG(uint64(n), uint64(depth)))
	calls, level := make([][]string, n), make([]int, n)
	for f := 1; f < n; f++ {
		caller := f - 1 // a first line of calls reaches the depth
		if f >= depth {
			caller = 0
			for level[caller] == depth-1 || len(calls[caller]) == callees {
				caller++
			}
		}
		calls[caller] = append(calls[caller], fmt.Sprintf("f%d", f))
		level[f] = level[caller] + 1
	}
	for f := range n {
		a.add(random, cost, fmt.Sprintf("f%d", f), calls[f]...)
	}
	return a
}

// draw draws the input of a request, and the ways that its branches go.
func (a *Application) draw(random *rand.Rand) (input json.RawMessage, ways []bool) {
	ways = make([]bool, a.branches)
	for i := range ways {
		ways[i] = random.Float64() < a.hits
	}
	return json.RawMessage(fmt.Sprintf(`{"n":%d}`, random.IntN(a.inputs))), ways
}

// Alone is how long a request takes without speculation when nothing else happens, and its processor time.
func (a *Application) Alone(c Cost) (took, cpu time.Duration) {
	run := func(names ...string) {
		for _, name := range names {
			f := a.functions[name]
			used := c.CPU + time.Duration(len(f.calls))*c.Call
			took, cpu = took+used+f.wait, cpu+used
		}
	}
	if a.program == nil {
		for name := range a.functions {
			run(name)
		}
		return took, cpu
	}
	ways := make([]bool, a.branches)
	for i := range ways {
		ways[i] = true
	}
	s := a.program.Start(json.RawMessage(`{}`))
	for !s.End {
		run(bare(s.Action))
		s = a.program.Resume(s.Cursor, a.functions[bare(s.Action)].output(s.Input, ways))
	}
	return took, cpu
}
