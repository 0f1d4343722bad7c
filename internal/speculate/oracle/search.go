package oracle

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// search is a depth-first search that remembers the states which failed. It is done several times: first as hinted, then with few
// departures from that, as one that is wrong far above costs all that is below it else, and then whole.
type search struct {
	*Segment
	hints   []Hint           // of use
	updates map[string][]int // events that update an action
	ticks   []int            // events
	crashes map[handled]int  // the last event that is a crash: what such handlers do until then is not done at once, since they may crash before
	begin   []int            // events, by invocation
	given   []bool           // by invocation
	posts   map[*Instruction]*Code
	numbers map[any]uint64
	walks   map[string]forerun.Stop // that were walked
	seen    map[string]int          // the allowance that a state was tried with
	buffer  []byte
	states  int
	limit   int  // of states
	out     bool // it was reached
	far     int  // events that some state explained
}

// all is the allowance with which everything is tried.
const all = math.MaxInt

// choices are what could come next in a state: the first costs nothing of the allowance, what the hints fit as well 1, another 2.
type choices struct {
	allowance int
	some      bool
}

// take is what is left of the allowance behind one more choice; less than 0: it is not to be tried.
func (c *choices) take(fits bool) int {
	switch {
	case !c.some || c.allowance == all:
		c.some = true
		return c.allowance
	case fits:
		return c.allowance - 1
	}
	return c.allowance - 2
}

// handled are the handlers of an action in an invocation.
type handled struct {
	invocation int
	action     string
}

// DefaultBudget is how many states a search may visit.
const DefaultBudget = 3_000_000

// Check looks for an execution without speculation that explains a segment. It returns how many states that took.
func Check(seg *Segment) (states int, err error) {
	r := &search{Segment: seg, updates: make(map[string][]int), crashes: make(map[handled]int), posts: make(map[*Instruction]*Code), numbers: make(map[any]uint64), walks: make(map[string]forerun.Stop), seen: make(map[string]int)}
	for i, e := range seg.Events {
		switch e.Kind {
		case Begin:
			r.begin, r.given = append(r.begin, i), append(r.given, false)
		case Given:
			r.given[e.Invocation] = true
		case Update:
			r.updates[e.Action] = append(r.updates[e.Action], i)
		case Tick:
			r.ticks = append(r.ticks, i)
		case Crash:
			r.crashes[handled{e.Invocation, e.Action}] = i
		}
	}
	r.choose(seg.Hints)
	budget := seg.Budget
	if budget == 0 {
		budget = DefaultBudget
	}
	ok := r.run(budget)
	switch {
	case r.out:
		return r.states, fmt.Errorf("the search ran out after %d states; %d of %d events are explained", budget, r.far, len(seg.Events))
	case !ok && r.far < len(seg.Events):
		return r.states, fmt.Errorf("no execution without speculation explains event %d: %v", r.far+1, seg.Events[r.far])
	case !ok && seg.After == nil:
		return r.states, fmt.Errorf("no execution without speculation that explains all events ends")
	case !ok:
		return r.states, fmt.Errorf("no execution without speculation that explains all events leaves the store as it is: %v", *seg.After)
	}
	return r.states, nil
}

// run searches with more and more allowance.
func (r *search) run(budget int) bool {
	for _, allowance := range []int{0, 1, 2, 3, 4, 6, all} {
		if r.limit = budget; allowance < all {
			r.limit = min(budget, r.states+budget/30)
		}
		if r.explain(&state{store: r.Before, roots: make([]*node, len(r.begin))}, allowance) {
			return true
		}
	}
	return false
}

// count tells how many of some events are before one.
func count(events []int, before int) (n int) {
	for _, at := range events {
		if at < before {
			n++
		}
	}
	return n
}

// span are the times that a clock showed during an invocation up to now.
func (r *search) span(invocation, now int) (low, high int) {
	return r.Clock + count(r.ticks, r.begin[invocation%Apart]), r.Clock + count(r.ticks, now)
}

// explain tries everything that could come next.
func (r *search) explain(s *state, allowance int) bool {
	if allowance < 0 {
		return false
	}
	if r.out = r.states >= r.limit; r.out {
		return false
	}
	r.states++
	for _, n := range s.roots {
		if n != nil {
			r.settle(s, n)
		}
	}
	for i := 0; i < len(s.loose); i++ { // more may come
		r.settle(s, s.loose[i])
	}
	kept := s.loose[:0]
	for _, n := range s.loose {
		if n.kind != done {
			kept = append(kept, n)
		}
	}
	s.loose = kept
	r.far = max(r.far, s.at)
	if s.at == len(r.Events) && r.isOver(s) {
		return true
	}
	key := r.key(s)
	if failed, ok := r.seen[key]; ok && failed >= allowance {
		return false
	}
	r.seen[key] = allowance
	c := &choices{allowance: allowance}
	if r.hint(s) != nil {
		return r.trySteps(s, c) || r.tryEvent(s, c)
	}
	return r.tryEvent(s, c) || r.trySteps(s, c)
}

func (r *search) isOver(s *state) bool {
	for _, n := range s.roots {
		if n != nil {
			return false
		}
	}
	return len(s.loose) == 0 && (r.After == nil || s.store == *r.After)
}

// tryEvent lets the next event happen.
func (r *search) tryEvent(s *state, choices *choices) bool {
	if s.at == len(r.Events) {
		return false
	}
	e := &r.Events[s.at]
	if e.Kind == Crash {
		return r.tryCrashes(s, e, choices)
	}
	c := s.clone()
	c.pass(r)
	switch e.Kind {
	case Begin:
		c.roots[e.Invocation] = &node{invocation: e.Invocation, action: e.Action, input: e.Input}
	case End:
		n := c.roots[e.Invocation]
		if n == nil || n.kind != done || n.result.Status != e.Result.Status || !bytes.Equal(n.result.Value, e.Result.Value) {
			return false
		}
		c.roots[e.Invocation] = nil
	case Other:
		if e.Command.Apply(&c.store) != e.Reply {
			return false
		}
	case Outside:
		return false // a step says it
	case Gone:
		c.roots[e.Invocation] = nil
		kept := c.loose[:0]
		for _, n := range c.loose {
			if n.invocation != e.Invocation {
				kept = append(kept, n)
			}
		}
		c.loose = kept
	}
	return r.explain(c, choices.take(false))
}

// tryCrashes lets each handler crash that the event could mean: first those that are where it is said to be.
func (r *search) tryCrashes(s *state, e *Event, choices *choices) bool {
	var ranks [2][]int
	i := 0
	s.each(func(n *node) bool {
		if n.kind == function && !n.posted && n.invocation == e.Invocation && n.action == e.Action {
			rank := 1
			if n.isWhere(e) {
				rank = 0
			}
			ranks[rank] = append(ranks[rank], i)
		}
		i++
		return true
	})
	for i, at := range slices.Concat(ranks[:]...) {
		c := s.clone()
		c.pass(r)
		n := c.node(at)
		n.calls = slices.DeleteFunc(n.calls, func(x *node) bool { return x.posted }) // it went with the handler
		c.leave(n)
		n.end(e.Result)
		if r.explain(c, choices.take(i < len(ranks[0]))) {
			return true
		}
	}
	return false
}

// leave lets go of what a function has called.
func (s *state) leave(n *node) {
	for _, x := range n.calls {
		if x.kind != done {
			s.loose = append(s.loose, x)
		}
	}
	n.calls = nil
}

// trySteps lets each execution do its next step.
func (r *search) trySteps(s *state, choices *choices) bool {
	order, fit := r.order(s)
	for i, at := range order {
		for choice := 0; ; choice++ {
			c := s.clone()
			it := c.node(at)
			h, followed := r.hint(c), c.hint
			follows := h != nil && it.does(h)
			ok, last := r.step(c, it, choice)
			if follows && (!h.Ended || it.kind == done) {
				c.hint = max(c.hint, followed+1) // an effect is an event, and has passed it
			}
			if ok && r.explain(c, choices.take(i < fit)) {
				return true
			}
			if last {
				break
			}
		}
	}
	return false
}

// isReady tells whether a settled node has a step to do.
func (n *node) isReady() bool {
	if n.kind == starting {
		return true
	}
	if n.kind != function {
		return false
	}
	for _, x := range n.calls {
		if !x.sent {
			return false
		}
	}
	return true
}

// step does the next step of an execution, of several possible ones; last says that there are no more.
func (r *search) step(s *state, n *node, choice int) (done, last bool) {
	if n.kind == starting && n.detach != nil {
		r.detach(s, n)
		return true, true
	}
	if n.kind == starting {
		r.start(s, n)
		return true, true
	}
	if n.isSilent() {
		r.doAlone(s, n)
		return true, true
	}
	in := n.code.Script[n.next]
	n.next++
	c := in.Issue(n.acc)
	switch c.Verb {
	case Effect:
		if s.at == len(r.Events) {
			return false, true
		}
		if e := &r.Events[s.at]; e.Kind != Outside || e.Invocation != n.invocation || e.Reply != Text(n.action, c) {
			return false, true
		}
		s.pass(r)
		n.acc = Mix(n.acc, "OK")
	case Clock:
		low, high := r.span(n.invocation, s.at)
		n.acc = Mix(n.acc, ClockReply(low+choice))
		return true, low+choice >= high
	default:
		n.acc = Mix(n.acc, c.Apply(&s.store))
	}
	return true, true
}

// ClockReply is what Clock replies.
func ClockReply(tick int) string { return fmt.Sprint("t", tick) }

// start begins an execution with the code that its action has now; a program's own function has the program's.
func (r *search) start(s *state, n *node) {
	if !n.self {
		a, version := r.Actions[n.action], r.Version[n.action]
		if !r.Fixed {
			version += count(r.updates[n.action], s.at)
		} else if _, ok := r.Version[n.action]; !ok {
			n.kind = barred
			return
		}
		n.code = &a.Versions[min(version, len(a.Versions)-1)]
	}
	if n.code.Program != nil && !n.self {
		n.kind, n.program, n.owner = walk, n.code.Program, n.action
		r.goTo(s, n, r.begins(n.program, n.input))
		return
	}
	n.kind, n.acc = function, Accumulator(n.input)
}

// detach begins an invocation that nobody waits for.
func (r *search) detach(s *state, n *node) {
	loose := &node{kind: walk, invocation: n.invocation%Apart + Apart, code: n.code, program: n.detach, owner: n.action}
	r.goTo(s, loose, r.begins(n.detach, n.input))
	s.loose = append(s.loose, loose)
	n.end(Detached)
}

// isPlain reports whether it is no matter when an execution of an action begins: its code is the same all the time.
func (r *search) isPlain(action string) bool { return r.Fixed || len(r.updates[action]) == 0 }

// settle does all that nobody can see.
func (r *search) settle(s *state, n *node) {
	for _, x := range n.calls {
		r.settle(s, x)
	}
	for {
		switch {
		case n.kind == starting && n.detach != nil && n.invocation < Apart && r.given[n.invocation]: // it may be given up before
			return
		case n.kind == starting && n.detach != nil:
			r.detach(s, n)
		case n.kind == starting && r.Actions[n.action] == nil:
			n.end(Unknown)
		case n.kind == starting && (n.self || r.isPlain(n.action)):
			r.start(s, n)
		case n.kind == walk && r.walkOn(s, n), n.kind == function && r.goOn(s, n):
		default:
			return
		}
		for _, x := range n.calls {
			r.settle(s, x)
		}
	}
}

// walkOn goes on behind what a walk waited for.
func (r *search) walkOn(s *state, n *node) bool {
	results := make([]forerun.Result, len(n.calls))
	for i, x := range n.calls {
		if x.kind != done {
			return false
		}
		results[i] = *x.result
	}
	r.goTo(s, n, r.goesOn(n, results))
	return true
}

// goTo begins what a walk waits for.
func (r *search) goTo(s *state, n *node, stop forerun.Stop) {
	n.at, n.fork, n.calls = stop.Cursor, stop.Join, nil
	x := &node{invocation: n.invocation, action: stop.Action, input: stop.Input}
	switch {
	case stop.End:
		n.end(stop.Result)
		return
	case stop.Join:
		for _, first := range stop.Fork {
			branch := &node{kind: walk, invocation: n.invocation, code: n.code, program: n.program, owner: n.owner}
			r.goTo(s, branch, first)
			n.calls = append(n.calls, branch)
		}
		return
	case stop.Detach != nil:
		x.detach, x.action, x.code = stop.Detach, n.owner, n.code
	case stop.Self:
		x.action, x.self, x.code = n.owner, true, n.code
	case stop.Function != nil:
		x.action = stop.Function.Code
	}
	n.calls = []*node{x}
}

// goOn does what a function does alone, up to the next command.
func (r *search) goOn(s *state, n *node) bool {
	if !r.hear(n) || r.mayCrash(s, n) || !n.isSilent() {
		return false
	}
	r.doAlone(s, n)
	return true
}

// mayCrash tells whether a handler may before it does anything more.
func (r *search) mayCrash(s *state, n *node) bool {
	last, ok := r.crashes[handled{n.invocation, n.action}]
	return ok && s.at <= last && !n.posted
}

// doAlone does the next step of a function, which is no command.
func (r *search) doAlone(s *state, n *node) {
	if n.next >= len(n.code.Script) {
		s.leave(n)
		n.end(n.code.Return(n.acc, n.input))
		return
	}
	in := n.code.Script[n.next]
	call := func(action string, sent bool) {
		n.calls = append(n.calls, &node{invocation: n.invocation, action: action, input: in.Input(n.acc, n.input), sent: sent})
	}
	switch in.Step {
	case Call, Send:
		call(in.Action, in.Step == Send)
	case Both:
		call(in.Action, false)
		call(in.Other, false)
	case Post:
		n.calls = append(n.calls, &node{kind: function, invocation: n.invocation, action: n.action, posted: true, code: r.alone(&n.code.Script[n.next]), acc: n.acc, sent: true})
	case SkipIf:
		n.next += n.acc % 2
	case FailIf:
		if in.Fails(n.acc) {
			s.leave(n)
			n.end(Error(n.acc))
			return
		}
	}
	n.next++
}

// alone makes a function of one command.
func (r *search) alone(in *Instruction) *Code {
	if r.posts[in] == nil {
		r.posts[in] = &Code{Script: []Instruction{{Command: in.Command}}, Range: 1}
	}
	return r.posts[in]
}

// hear takes in the results of calls, unless the function still waits for one.
func (r *search) hear(n *node) bool {
	for _, x := range n.calls {
		if !x.sent && x.kind != done {
			return false
		}
	}
	running := n.calls[:0]
	for _, x := range n.calls {
		switch {
		case !x.sent:
			n.acc = MixResult(n.acc, *x.result)
		case x.kind != done:
			running = append(running, x)
		}
	}
	n.calls = running
	return true
}
