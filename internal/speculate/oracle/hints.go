package oracle

import "slices"

// choose keeps the hints that are of use.
func (r *search) choose(hints []Hint) {
	for _, h := range hints {
		if h.Action == "" || !r.isPlain(h.Action) {
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

// order tells in which order the executions that are ready are tried: the one that is hinted at comes first.
func (r *search) order(s *state) []int {
	var ranks [5][]int
	h, i := r.hint(s), 0
	s.each(func(n *node) bool {
		if n.isReady() {
			rank := 4
			switch {
			case h == nil || n.invocation != h.Invocation:
			case n.does(h) && (h.Action != "" || n.acc == h.Acc || h.Acc < 0):
				rank = 0
			case n.does(h):
				rank = 1
			case n.willDo(h):
				rank = 2
			default:
				rank = 3
			}
			ranks[rank] = append(ranks[rank], i)
			i++
		}
		return true
	})
	return slices.Concat(ranks[:]...)
}

// does tells whether a node's next step is what is hinted at.
func (n *node) does(h *Hint) bool {
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
