package oracle

import (
	"bytes"
	"slices"
)

// choose keeps the hints that are of use.
func (r *search) choose(hints []Hint) {
	for _, h := range hints {
		last, crashes := r.crashes[handled{h.Invocation, h.Action}]
		switch {
		case h.Ended && crashes && h.At <= last, !h.Ended && (h.Action == "" || !r.isPlain(h.Action)):
			r.hints = append(r.hints, h)
		}
	}
}

// pass goes on behind an event, and the hints before it.
func (s *state) pass(r *search) {
	s.at++
	for s.hint < len(r.hints) && r.hints[s.hint].At < s.at {
		s.hint++
	}
}

// hint is what is said to come before the next event, or nil.
func (r *search) hint(s *state) *Hint {
	if s.hint < len(r.hints) && r.hints[s.hint].At == s.at {
		return &r.hints[s.hint]
	}
	return nil
}

// order tells in which order the executions that are ready are tried, as each numbers them: first those that fit the hint.
func (r *search) order(s *state) (order []int, fit int) {
	var ranks [6][]int
	h, i := r.hint(s), 0
	s.each(func(n *node) bool {
		if n.isReady() {
			rank := 5
			switch {
			case h == nil || n.invocation != h.Invocation:
			case n.does(h) && (h.Action != "" || n.acc == h.Acc || h.Acc < 0):
				rank = 0
			case n.does(h):
				rank = 1
			case n.isSilent() && !r.isToCrash(s, n): // who does what is hinted at may begin behind its end
				rank = 2
			case n.willDo(h):
				rank = 3
			default:
				rank = 4
			}
			ranks[rank] = append(ranks[rank], i)
		}
		i++
		return true
	})
	return slices.Concat(ranks[:]...), len(ranks[0])
}

// isSilent tells whether the next step of a function is none that is seen.
func (n *node) isSilent() bool {
	return n.kind == function && (n.next >= len(n.code.Script) || n.code.Script[n.next].Step != Do)
}

// isToCrash tells whether a handler is where one is said to be that crashes.
func (r *search) isToCrash(s *state, n *node) bool {
	if !r.mayCrash(s, n) {
		return false
	}
	return slices.ContainsFunc(r.Events[s.at:], func(e Event) bool { return e.Kind == Crash && n.isWhere(&e) })
}

// isWhere tells whether a handler is where that is said to be whose crash the event is.
func (n *node) isWhere(e *Event) bool {
	return n.invocation == e.Invocation && n.action == e.Action && n.next == e.Next && bytes.Equal(n.input, e.Input)
}

// does tells whether a node's next step is what is hinted at, or leads to the end that is.
func (n *node) does(h *Hint) bool {
	if h.Ended {
		return n.isSilent() && n.action == h.Action && n.invocation == h.Invocation && n.acc == h.Acc
	}
	if h.Action != "" {
		return n.kind == starting && n.action == h.Action && n.invocation == h.Invocation
	}
	if n.kind != function || n.invocation != h.Invocation || n.next >= len(n.code.Script) {
		return false
	}
	in := n.code.Script[n.next]
	return in.Step == Do && in.Issue(n.acc) == h.Command
}

// willDo tells whether it may be a later one.
func (n *node) willDo(h *Hint) bool {
	return h.Action == "" && n.kind == function && slices.ContainsFunc(n.code.Script[min(n.next, len(n.code.Script)):], func(in Instruction) bool {
		c := in.Command
		return in.Step == Do && c.Verb == h.Command.Verb && c.A == h.Command.A && c.B == h.Command.B
	})
}
