package oracle

import (
	"encoding/json"
	"fmt"
	"strconv"

	"forerun.dev/forerun/internal/forerun"
)

// Action is what a name stands for: its code, the newest last.
type Action struct {
	Versions            []Code
	Pure, Cached, Alone bool // annotations
}

// Code is a function, or a program; both if the program has steps of the action itself.
type Code struct {
	Script  []Instruction
	Truth   bool // the function returns true or false
	Range   int  // it returns one of so many numbers
	Counts  bool // what it returns depends on its input alone: one less; or, if it returns true or false, whether that is more than 0
	Inline  bool // it is code that a composition brings along, and returns what the composition expects of that
	Program forerun.Program
}

// Step is what an instruction of a function does.
type Step byte

// The steps.
const (
	Do     Step = iota // Command, with an argument from the accumulator
	Call               // Action, and wait
	Both               // Action and Other at once, and wait for both
	Send               // Action, and do not wait
	Post               // Command, and do not wait for its reply
	SkipIf             // the next instruction, if the accumulator is odd
	FailIf             // the accumulator divided by four leaves Command.A
)

// Instruction is a step of a function. Its accumulator takes in each reply.
type Instruction struct {
	Step    Step
	Command Command
	Action  string
	Other   string
	Own     bool // the input of a call is the function's own
	Told    bool // if the accumulator is even, who calls may be told the callee's id before that ends: it is not to be another then
}

func (i Instruction) String() string {
	own := ""
	if i.Own {
		own = " on its own input"
	}
	switch i.Step {
	case Call:
		if i.Told {
			own += ", told its id if even"
		}
		return "call " + i.Action + own
	case Both:
		return "call " + i.Action + " and " + i.Other + own
	case Send:
		return "send " + i.Action + own
	case Post:
		return "post " + i.Command.String()
	case SkipIf:
		return "skip one if odd"
	case FailIf:
		return fmt.Sprintf("fail if %d mod 4", i.Command.A)
	}
	return i.Command.String()
}

// Issue is the command of an instruction with its argument.
func (i Instruction) Issue(acc int) Command {
	c := i.Command
	c.Argument = acc % 5
	return c
}

// Fails tells whether FailIf fails.
func (i Instruction) Fails(acc int) bool { return acc%4 == i.Command.A%4 }

// Mix lets an accumulator take in a reply.
func Mix(acc int, reply string) int {
	for _, c := range []byte(reply) {
		acc = (acc*31 + int(c)) % 97
	}
	return (acc*31 + 7) % 97
}

// MixResult lets it take in the result of a call.
func MixResult(acc int, r forerun.Result) int {
	return Mix(acc, strconv.Itoa(int(r.Status))+string(r.Value))
}

// Accumulator is what it begins with on an input.
func Accumulator(input json.RawMessage) int { return Number(input) % 97 }

// Input is the input of a call.
func (i Instruction) Input(acc int, own json.RawMessage) json.RawMessage {
	if i.Own {
		return own
	}
	return Object(acc % 3)
}

// Object is a number as input or output.
func Object(n int) json.RawMessage { return json.RawMessage(`{"value":` + strconv.Itoa(n) + `}`) }

// Number is the number of an input or output.
func Number(object json.RawMessage) int {
	const before = len(`{"value":`)
	if len(object) > before {
		if n, err := strconv.Atoi(string(object[before : len(object)-1])); err == nil {
			return n
		}
	}
	return Mix(0, string(object)) % 8
}

// Return is what a function returns that was called with an input and ends with an accumulator.
func (c Code) Return(acc int, input json.RawMessage) forerun.Result {
	number, truth := acc%c.Range, acc%c.Range != 0 || c.Range == 1
	if c.Counts {
		number = max(0, Number(input)%4-1)
		truth = Number(input)%4 > 0
	}
	value := Object(number)
	if c.Truth {
		value = json.RawMessage(`{"value":` + strconv.FormatBool(truth) + `}`)
	}
	if c.Inline {
		value = json.RawMessage(`{"params":` + string(value) + `,"variables":{"x":` + strconv.Itoa(number) + `}}`)
	}
	return forerun.Result{Value: value}
}

// Error is what a function returns that fails.
func Error(acc int) forerun.Result {
	return forerun.Result{Status: forerun.ApplicationError, Value: json.RawMessage(`{"error":` + strconv.Itoa(acc%3) + `}`)}
}

// Crashed is the result of a handler that crashed, TimedOut that of one that took too long, Died that of one whose worker died, Unknown
// that of an action that does not exist, Detached that of beginning an invocation of its own.
var (
	Crashed  = forerun.Failure(forerun.DeveloperError, "It crashed.")
	TimedOut = forerun.Failure(forerun.DeveloperError, "It took too long.")
	Died     = forerun.Failure(forerun.InternalError, "The worker died.")
	Unknown  = forerun.Failure(forerun.ApplicationError, "There is no such action.")
	Detached = forerun.Result{Value: Object(1)}
)
