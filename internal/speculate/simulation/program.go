package simulation

import (
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// Program is a small workflow: lines, which are walked one after the other. Its first line is 0; behind its last one it ends.
type Program struct {
	Lines []Line
	first int // line; of what another program detaches
}

// Line is a step of a program.
type Line struct {
	What   What
	Action string
	To     int   // a line: of Jump, of Test if it is false, of Try if there is an error, of Fork and Map behind the join
	Starts []int // lines: of the branches of Fork, of the one of Map, of Detach
	Times  int   // of Loop

	function *forerun.Function
	detached *Program
}

// compile makes what lines refer to, once: a walk that comes by again finds the same.
func (p *Program) compile() *Program {
	for i := range p.Lines {
		switch l := &p.Lines[i]; l.What {
		case Bring:
			l.function = &forerun.Function{Code: l.Action}
		case Detach:
			l.detached = &Program{Lines: p.Lines, first: l.Starts[0]}
		}
	}
	return p
}

// What is the kind of a line.
type What byte

// The kinds of lines.
const (
	Run   What = iota // Action on the value, which becomes its output
	Own               // the program's own action as a function
	Bring             // Action as code that the program brings along
	Test              // Action on the value, which stays; goes on, or elsewhere
	Jump
	Loop   // goes to To, so many times; then goes on
	Try    // an error from here on goes to To, with the value {"value": N}
	Done   // no more
	Fork   // branches at Starts
	Map    // as many branches at Starts[0] as the value says, each on its number
	Detach // what begins at Starts[0]
	Stop   // the branch, or the program, ends
)

func (l Line) String() string {
	switch l.What {
	case Run:
		return "run " + l.Action
	case Own:
		return "run itself as a function"
	case Bring:
		return "run the code of " + l.Action
	case Test:
		return fmt.Sprintf("test %s, else to %d", l.Action, l.To)
	case Jump:
		return fmt.Sprintf("go to %d", l.To)
	case Loop:
		return fmt.Sprintf("go to %d, %d times", l.To, l.Times)
	case Try:
		return fmt.Sprintf("on an error go to %d", l.To)
	case Done:
		return "on an error fail again"
	case Fork:
		return fmt.Sprintf("fork to %v, then go to %d", l.Starts, l.To)
	case Map:
		return fmt.Sprintf("map to %v, then go to %d", l.Starts, l.To)
	case Detach:
		return fmt.Sprintf("detach what is at %v", l.Starts)
	}
	return "stop"
}

// place is where a walk is. It is comparable.
type place struct {
	line  int
	value string // before a test
	tries string // lines to go to on an error
	loops string // how often each was done: pairs of line and count
}

// Start walks to the first stop.
func (p *Program) Start(input json.RawMessage) forerun.Stop {
	return p.walk(place{line: p.first}, forerun.Result{Value: input})
}

// Resume goes on behind an action.
func (p *Program) Resume(cursor forerun.Cursor, r forerun.Result) forerun.Stop {
	at := cursor.(place)
	l := p.Lines[at.line]
	at.line++
	if r.Status == forerun.Success && l.What == Test {
		if !strings.Contains(string(r.Value), `"value":true`) {
			at.line = l.To
		}
		r.Value, at.value = json.RawMessage(at.value), ""
	}
	return p.walk(at, r)
}

// Join goes on behind a fork: with the first error, or what the results make.
func (p *Program) Join(cursor forerun.Cursor, branches []forerun.Result) forerun.Stop {
	at := cursor.(place)
	at.line = p.Lines[at.line].To
	acc := 0
	for _, r := range branches {
		if r.Status != forerun.Success {
			return p.walk(at, r)
		}
		acc = oracle.MixResult(acc, r)
	}
	return p.walk(at, forerun.Result{Value: oracle.Object(acc % 6)})
}

// walk goes on at a line with a value, or an error.
func (p *Program) walk(at place, r forerun.Result) forerun.Stop {
	for {
		if r.Status != forerun.Success {
			if at.tries == "" {
				return forerun.Stop{End: true, Result: r}
			}
			last := len(at.tries) - 1
			at.line, at.tries = int(at.tries[last]), at.tries[:last]
			r = forerun.Result{Value: oracle.Object(oracle.Number(r.Value) % 6)}
		}
		if at.line >= len(p.Lines) {
			return forerun.Stop{End: true, Result: r}
		}
		switch l := p.Lines[at.line]; l.What {
		case Jump:
			at.line = l.To
		case Loop:
			at.line++
			if at.again(l) {
				at.line = l.To
			}
		case Try:
			at.tries += string(byte(l.To))
			at.line++
		case Done:
			if len(at.tries) > 0 {
				at.tries = at.tries[:len(at.tries)-1]
			}
			at.line++
		case Stop:
			return forerun.Stop{End: true, Result: r}
		default:
			return p.stop(at, l, r.Value)
		}
	}
}

// again counts a turn of a loop, if there is one left.
func (at *place) again(l Line) bool {
	line := byte(at.line)
	loops := []byte(at.loops)
	for i := 0; i < len(loops); i += 2 {
		if loops[i] == line {
			if int(loops[i+1]) >= l.Times {
				return false
			}
			loops[i+1]++
			at.loops = string(loops)
			return true
		}
	}
	at.loops += string([]byte{line, 1})
	return l.Times > 0
}

// stop is what is to be done at a line.
func (p *Program) stop(at place, l Line, value json.RawMessage) forerun.Stop {
	stop := forerun.Stop{Cursor: at, Place: at.line + 1, Input: value}
	switch l.What {
	case Run:
		stop.Action = l.Action
	case Own:
		stop.Self = true
	case Bring:
		stop.Function = l.function
	case Test:
		at.value = string(value)
		stop.Cursor, stop.Action, stop.Branch = at, l.Action, true
	case Detach:
		stop.Detach = l.detached
	case Fork:
		stop.Join = true
		for _, start := range l.Starts {
			stop.Fork = append(stop.Fork, p.walk(place{line: start}, forerun.Result{Value: value}))
		}
	case Map:
		stop.Join = true
		for i := range oracle.Number(value) % 3 {
			stop.Fork = append(stop.Fork, p.walk(place{line: l.Starts[0]}, forerun.Result{Value: oracle.Object(i)}))
		}
	}
	return stop
}
