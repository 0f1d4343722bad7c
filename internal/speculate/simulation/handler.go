package simulation

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// handler executes a function for a slot: it sends events, and goes on when it has the replies that it waits for.
type handler struct {
	slot    speculate.SlotID
	action  string
	code    *oracle.Code
	input   json.RawMessage
	acc     int
	next    int
	op      speculate.OpID
	awaits  []speculate.OpID // of calls, in order; or of one command
	results map[speculate.OpID]forerun.Result
	command bool
	asked   map[speculate.OpID]ask
	told    map[speculate.OpID]bool // calls whose callees' ids are known
	out     []speculate.Event
	reach   forerun.Reach
	digests func(action string) forerun.Digest
}

// ask is a command that a handler asked for, and its accumulator then.
type ask struct {
	command oracle.Command
	acc     int
}

// run goes on until the handler waits.
func (h *handler) run() {
	for len(h.awaits) == 0 {
		if h.next >= len(h.code.Script) {
			h.end(h.code.Return(h.acc, h.input))
			return
		}
		in := h.code.Script[h.next]
		h.next++
		switch in.Step {
		case oracle.Do:
			h.send(in.Issue(h.acc))
			h.awaits, h.command = []speculate.OpID{h.op}, true
		case oracle.Post:
			h.send(in.Issue(h.acc))
		case oracle.Call:
			h.call(in, in.Action, true)
		case oracle.Both:
			h.call(in, in.Action, true)
			h.call(in, in.Other, true)
		case oracle.Send:
			h.call(in, in.Action, false)
		case oracle.SkipIf:
			h.next += h.acc % 2
		case oracle.FailIf:
			if in.Fails(h.acc) {
				h.end(oracle.Error(h.acc))
				return
			}
		}
	}
}

func (h *handler) end(r forerun.Result) {
	h.awaits = []speculate.OpID{-1} // it is over
	h.out = append(h.out, speculate.Output{Slot: h.slot, Result: r, Reach: h.reach})
}

func (h *handler) call(in oracle.Instruction, action string, wait bool) {
	h.op++
	if wait {
		h.awaits = append(h.awaits, h.op)
	}
	known := in.Told && h.acc%2 == 0
	if known {
		if h.told == nil {
			h.told = make(map[speculate.OpID]bool)
		}
		h.told[h.op] = true
	}
	h.out = append(h.out, speculate.Call{Slot: h.slot, Op: h.op, Action: action, Input: in.Input(h.acc, h.input), Code: h.digests(action), Known: known})
}

// send asks for a command.
func (h *handler) send(c oracle.Command) {
	h.op++
	if h.asked == nil {
		h.asked = make(map[speculate.OpID]ask)
	}
	h.asked[h.op] = ask{c, h.acc}
	inexact := ""
	if c.Verb == oracle.Look || c.Verb == oracle.Clock {
		inexact = "inexact"
	}
	switch {
	case c.Unbuffered():
		h.out = append(h.out, speculate.Hold{Slot: h.slot, Op: h.op})
	case len(c.Writes()) > 0:
		h.out = append(h.out, speculate.Write{
			Slot: h.slot, Op: h.op, Keys: keysOf(c.Writes()), Reads: keysOf(c.Reads()), Command: c, Inexact: inexact,
		})
	default:
		h.out = append(h.out, speculate.Read{Slot: h.slot, Op: h.op, Keys: keysOf(c.Reads()), Command: c, Inexact: inexact})
	}
}

// replied takes the reply of a command.
func (h *handler) replied(op speculate.OpID, reply string) {
	if !h.command || h.awaits[0] != op {
		return
	}
	h.command, h.awaits = false, nil
	h.acc = oracle.Mix(h.acc, reply)
	h.run()
}

// hangUp is the end of the handler's process: what was not sent never is, and what was asked for is not waited for any more.
func (h *handler) hangUp() {
	h.out = nil
	if h.command {
		h.out = append(h.out, speculate.Withdrawn{Slot: h.slot, Op: h.awaits[0]})
	}
}

// hasAsked tells whether the handler waits for a command that it has asked for.
func (h *handler) hasAsked() bool { return h.command && len(h.out) == 0 }

// giveUp ends the wait for a command, which is asked for once more, or has failed.
func (h *handler) giveUp(again bool) {
	h.command, h.awaits = false, nil
	if again {
		h.next--
	} else {
		h.acc = oracle.Mix(h.acc, "gave up")
	}
	h.run()
}

// returned takes the result of a call.
func (h *handler) returned(op speculate.OpID, r forerun.Result) {
	if h.results == nil {
		h.results = make(map[speculate.OpID]forerun.Result)
	}
	h.results[op] = r
	if h.command || len(h.awaits) == 0 || h.awaits[0] < 0 {
		return
	}
	for _, awaited := range h.awaits {
		if _, ok := h.results[awaited]; !ok {
			return
		}
	}
	for _, awaited := range h.awaits {
		h.acc = oracle.MixResult(h.acc, h.results[awaited])
	}
	h.awaits = nil
	h.run()
}

// isBetween tells whether one of two calls that are made at once is on its way, and the other not yet.
func (h *handler) isBetween() bool {
	if len(h.out) != 1 || len(h.awaits) != 2 {
		return false
	}
	_, ok := h.out[0].(speculate.Call)
	return ok
}
