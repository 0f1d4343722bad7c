// Package cluster plays what two processors cannot show: the pure machine of
// internal/speculate, for many requests at once, on a cluster of many
// processors, in virtual time. Functions are no more than how long they compute
// and wait, and what they call. An adversary of the predictor is here, too.
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

// Cost is what executing a function takes.
type Cost struct {
	CPU  time.Duration // half before it waits, half after
	Call time.Duration // processor time of each call that it makes, in addition
	Wait time.Duration
	Acts bool // it waits for an effect: not before its turn
}

// Application is one that is played.
type Application struct {
	Name      string
	functions map[string]*function
	program   forerun.Program // what is asked; nil: the function first
	first     string
	inputs    int // how many different ones there are of the usual kind
	branches  int
	hits      float64 // how often a branch goes the usual way
}

// function is a function of an application.
type function struct {
	Cost
	calls  []string
	branch int // which of the input's ways it tells, from 1; 0: it is no branch
	code   forerun.Digest
}

func (a *Application) add(c Cost, name string, calls ...string) {
	a.functions[name] = &function{Cost: c, calls: calls, code: sha256.Sum256([]byte(a.Name + " " + name))}
}

// about is a cost whose wait is between half of c's and one and a half.
func (c Cost) about(random *rand.Rand) Cost {
	c.Wait = time.Duration((0.5 + random.Float64()) * float64(c.Wait))
	return c
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
			a.add(cost.about(random), f)
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
	a.program, err = programOf(document)
	return a, err
}

func programOf(document json.RawMessage) (forerun.Program, error) {
	return flow.Of(&forerun.Action{Annotations: []forerun.KeyValue{{Key: "conductor", Value: document}}})
}

// Tested is an application that is there: a composition, or functions that call one another, of which first is asked. costs are
// those of its functions, as they were measured; each function that an if tests goes the usual way at the rate hits.
func Tested(name string, composition json.RawMessage, first string, calls map[string][]string, costs map[string]Cost, hits float64) (*Application, error) {
	a := &Application{Name: name, functions: make(map[string]*function), first: first, inputs: usual, hits: hits}
	for f, c := range costs {
		a.add(c, f, calls[f]...)
	}
	if composition == nil {
		return a, nil
	}
	var document any
	if err := json.Unmarshal(composition, &document); err != nil {
		return nil, err
	}
	a.branch(document)
	var err error
	a.program, err = programOf(composition)
	return a, err
}

// branch finds the functions that the ifs of a document test.
func (a *Application) branch(document any) {
	switch node := document.(type) {
	case []any:
		for _, n := range node {
			a.branch(n)
		}
	case map[string]any:
		if test, ok := node["test"].(map[string]any); ok {
			if name, ok := test["name"].(string); ok {
				a.branches++
				a.functions[bare(name)].branch = a.branches
			}
		}
		for _, n := range node {
			a.branch(n)
		}
	}
}

// Called is an application of n functions that call one another: each that calls has so many callees, down to a depth.
func Called(name string, n, callees, depth int, cost Cost) *Application {
	a := &Application{Name: name, functions: make(map[string]*function), first: "f0", inputs: usual, hits: 1}
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
		a.add(cost.about(random), fmt.Sprintf("f%d", f), calls[f]...)
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
func (a *Application) Alone() (took, cpu time.Duration) {
	run := func(name string) {
		f := a.functions[name]
		used := f.CPU + time.Duration(len(f.calls))*f.Call
		took, cpu = took+used+f.Wait, cpu+used
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
