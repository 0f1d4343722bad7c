package simulation

import (
	"fmt"
	"slices"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// run is an invocation as its controller sees it.
type run struct {
	world    *world
	number   int
	apart    bool // it was detached by another
	program  forerun.Program
	action   string
	mode     speculate.Mode
	limit    int // of the depth
	machine  *speculate.Machine
	slots    map[speculate.SlotID]*slot
	next     speculate.SlotID
	tasks    []*task
	events   []speculate.Event // that arose while actions were carried out
	answered bool
	givenUp  bool
}

// slot is what the controller knows of a slot.
type slot struct {
	id        speculate.SlotID
	action    string
	self      bool
	input     []byte
	parent    speculate.SlotID
	code      *oracle.Code
	digest    forerun.Digest
	version   int
	program   bool
	resolved  bool
	checking  bool
	launched  bool
	counted   bool // it was launched ahead, and is no head yet
	head      bool
	promoting bool
	finished  bool
	committed bool
	over      bool
	skipped   bool
	failed    *forerun.Result // while its promotion was under way
	result    *forerun.Result
	handler   *handler
}

// phase is the state of a slot, as it can be seen.
func (s *slot) phase() Phase {
	switch {
	case s == nil || s.over:
		return Over
	case s.program:
		return Composed
	case !s.resolved:
		return Resolving
	case s.checking:
		return Checking
	case s.finished && s.promoting:
		return FinishedPromoting
	case s.finished:
		return Finished
	case !s.launched:
		return Waiting
	case s.head:
		return Head
	case s.promoting:
		return Promoting
	}
	return Ahead
}

func (r *run) family() int {
	if r.apart {
		return r.number + oracle.Apart
	}
	return r.number
}

func (r *run) isOver() bool {
	if !r.answered {
		return false
	}
	for _, s := range r.slots {
		if !s.over {
			return false
		}
	}
	return true
}

// ready is how many things can happen next.
func (r *run) ready() int {
	n := len(r.tasks)
	for id := range r.next {
		if s := r.slots[id]; s != nil && s.handler != nil && len(s.handler.out) > 0 {
			n++
		}
	}
	return n
}

// whose tells which slot's turn something is.
func (r *run) whose(at int) speculate.SlotID {
	if at < len(r.tasks) {
		return r.tasks[at].slot
	}
	at -= len(r.tasks)
	for id := range r.next {
		if s := r.slots[id]; s != nil && s.handler != nil && len(s.handler.out) > 0 {
			if at--; at < 0 {
				return id
			}
		}
	}
	return speculate.None
}

func (r *run) step(at int) {
	if at < len(r.tasks) {
		t := r.tasks[at]
		r.tasks = slices.Delete(r.tasks, at, at+1)
		t.do()
		return
	}
	s := r.slots[r.whose(at)]
	e := s.handler.out[0]
	s.handler.out = s.handler.out[1:]
	r.deliver(s, e)
}

// deliver tells the machine what a handler sends.
func (r *run) deliver(s *slot, e speculate.Event) {
	late := s.over
	if out, ok := e.(speculate.Output); ok && !late {
		r.cover(e, s, true)
		s.finished, s.result = true, &out.Result
		r.stepMachine(e)
		return
	}
	if late {
		s.handler.out = nil
		r.cover(e, s, false)
		r.tell(speculate.LoadChanged{Depth: r.limit}) // what others taught the predictor has its consequences before
		if actions := r.machine.Step(e); len(actions) > 0 {
			r.world.fail("a late %T of slot %d has consequences: %v", e, s.id, actions)
		}
		return
	}
	r.tell(e)
}

// tell tells the machine an event and carries out what it says.
func (r *run) tell(e speculate.Event) {
	r.cover(e, nil, false)
	r.stepMachine(e)
}

func (r *run) stepMachine(e speculate.Event) {
	r.world.say("  [%d] %v", r.number, saidEvent{e})
	r.carryOut(r.machine.Step(e))
}

func (r *run) later(t *task) { r.tasks = append(r.tasks, t) }

func (r *run) carryOut(actions []speculate.Action) {
	for {
		for _, a := range actions {
			if r.world.problem != nil {
				return
			}
			r.world.say("      [%d] -> %v", r.number, saidAction{a})
			r.perform(a)
		}
		if len(r.events) == 0 {
			return
		}
		e := r.events[0]
		r.events = r.events[1:]
		r.world.say("  [%d] %v", r.number, saidEvent{e})
		actions = r.machine.Step(e)
	}
}

// live returns a slot that an action may be about.
func (r *run) live(id speculate.SlotID, a speculate.Action) *slot {
	s := r.slots[id]
	if s == nil || s.over {
		r.world.fail("%T for slot %d of invocation %d, which is over", a, id, r.number)
		return nil
	}
	return s
}

func (r *run) perform(a speculate.Action) {
	switch a := a.(type) {
	case speculate.Resolve:
		r.resolve(a)
	case speculate.Launch:
		r.launch(a)
	case speculate.Check:
		r.check(a)
	case speculate.Skip:
		if s := r.live(a.Slot, a); s != nil {
			s.finished, s.skipped, s.result, s.launched = true, true, &a.Result, true
		}
	case speculate.Fetch:
		r.later(&task{slot: a.Slot, do: func() {
			e := speculate.Fetched{Slot: a.Slot, Op: a.Op, Records: r.world.store.fetch(a.Keys)}
			r.later(&task{slot: a.Slot, of: fetches, do: func() { r.tell(e) }})
		}})
	case speculate.Reply:
		r.reply(a)
	case speculate.Promote:
		r.promote(a)
	case speculate.Commit:
		r.commit(a)
	case speculate.Squash:
		r.squash(a)
	case speculate.Learn:
		r.learn(a)
	case speculate.Blame:
		r.world.predictor.Blame(a)
	case speculate.Finish:
		r.finish(a)
	case speculate.Attach, speculate.Stall:
	default:
		r.world.fail("an unknown action %T", a)
	}
}

// add makes a slot for what the machine names.
func (r *run) add(id, parent speculate.SlotID, action string, self bool, function *forerun.Function, input []byte) *slot {
	s := &slot{id: id, parent: parent, action: action, self: self, input: input}
	if self {
		s.action = r.slots[parent].action
	}
	if function != nil {
		s.action = function.Code
	}
	r.slots[id] = s
	r.next = max(r.next, id+1)
	return s
}

// find takes the code of a slot's action as it is now.
func (r *run) find(s *slot) {
	s.code, s.version = r.world.code(s.action), r.world.version[s.action]
	s.digest = r.world.digest(s.action, s.self)
	if r.program != nil && s.id == 0 {
		s.code, s.digest = &oracle.Code{Program: r.program}, digestOf(s.action+" detached", s.version, false)
	}
}

func (r *run) resolve(a speculate.Resolve) {
	s := r.add(a.Slot, a.Parent, a.Action, a.Self, a.Function, a.Input)
	if r.world.prompt {
		r.find(s)
		r.events = append(r.events, r.resolved(s))
		return
	}
	r.later(&task{slot: s.id, do: func() {
		r.find(s)
		r.later(&task{slot: s.id, do: func() { r.stepMachine(r.resolved(s)) }})
	}})
}

// resolved tells what the action of a slot is.
func (r *run) resolved(s *slot) (e speculate.Event) {
	switch {
	case s.code == nil:
		e = speculate.Failed{Slot: s.id, Result: oracle.Unknown}
	case s.code.Program != nil && !s.self:
		e = speculate.Entered{Slot: s.id, Program: s.code.Program, Code: s.digest, Input: s.input}
	default:
		a := r.world.actions[s.action]
		e = speculate.Resolved{Slot: s.id, Code: s.digest, Input: s.input, Pure: a.Pure, Cached: a.Cached, Alone: a.Alone, Open: r.world.IntN(10) == 0, Stray: r.world.IntN(10) == 0}
	}
	r.cover(e, s, true)
	if !s.over {
		s.resolved = true
		switch e.(type) {
		case speculate.Entered:
			s.program = true
		case speculate.Failed:
			s.result = &oracle.Unknown
		}
	}
	return e
}

func (r *run) launch(a speculate.Launch) {
	s := r.slots[a.Slot]
	if r.mode == speculate.Off || a.Detach != nil && s == nil {
		r.add(a.Slot, a.Parent, a.Action, a.Self, a.Function, a.Input)
	}
	if s = r.live(a.Slot, a); s == nil {
		return
	}
	s.launched, s.head = true, !a.Speculative
	switch {
	case a.Detach != nil:
		s.resolved = true
		r.detach(s, a)
		return
	case r.mode == speculate.Off:
		r.find(s)
		if s.code == nil || s.code.Program != nil && !s.self {
			r.later(&task{slot: s.id, do: func() { r.stepMachine(r.resolved(s)) }})
			return
		}
		s.resolved = true
	case s.code == nil: // it could not be found, and it is the head
		r.world.fail("slot %d is launched, and has no code", s.id)
		return
	}
	if a.Speculative {
		s.counted = true
		r.countAhead()
	}
	s.handler = &handler{slot: s.id, action: s.action, code: s.code, input: s.input, acc: oracle.Accumulator(s.input), digests: func(action string) forerun.Digest {
		return r.world.digest(action, false)
	}}
	s.handler.run()
}

// countAhead holds the machine to the depth (C5).
func (r *run) countAhead() {
	n := 0
	for _, s := range r.slots {
		if s.counted && !s.over {
			n++
		}
	}
	if n > r.limit {
		r.world.fail("%d slots are launched ahead, and %d may be", n, r.limit)
	}
}

func (r *run) detach(s *slot, a speculate.Launch) {
	if a.Speculative {
		r.world.fail("slot %d, which detaches, is launched ahead", s.id)
		return
	}
	s.digest = digestOf("detach", 0, false)
	action := r.slots[a.Parent].action
	r.later(&task{slot: s.id, stores: true, do: func() {
		r.world.begin(&run{world: r.world, number: r.number, apart: true, program: a.Detach, action: action, limit: r.limit}, r.mode, a.Input)
		e := speculate.Output{Slot: s.id, Result: oracle.Detached}
		r.later(&task{slot: s.id, do: func() {
			r.cover(e, s, true)
			if !s.over {
				s.finished, s.result = true, &oracle.Detached
			}
			r.stepMachine(e)
		}})
	}})
}

func (r *run) check(a speculate.Check) {
	s := r.live(a.Slot, a)
	if s == nil {
		return
	}
	s.checking = true
	r.later(&task{slot: a.Slot, do: func() {
		e := speculate.Checked{Slot: a.Slot, Current: true}
		for _, key := range a.Keys {
			e.Versions = append(e.Versions, r.world.store.versions[recordOf(key)])
		}
		for _, c := range a.Below {
			d := c.Code
			e.Current = e.Current && (d == r.world.digest(c.Action, false) || d == r.world.digest(c.Action, true))
		}
		r.later(&task{slot: a.Slot, of: checks, do: func() {
			r.cover(e, s, true)
			s.checking = false
			r.stepMachine(e)
		}})
	}})
}

func (r *run) reply(a speculate.Reply) {
	s := r.live(a.Slot, a)
	if s == nil {
		return
	}
	h := s.handler
	switch {
	case s.finished && !a.Direct && a.Data == nil: // nobody waits for what it had called
	case h == nil:
		r.world.fail("a reply for slot %d, which has no handler", s.id)
	case a.Direct && !s.head:
		r.world.fail("slot %d is no head, and reaches the store", s.id)
	case a.Direct:
		r.direct(s, a.Op)
	case a.Data != nil:
		h.replied(a.Op, a.Data.(string))
	default:
		h.returned(a.Op, a.Result)
	}
}

// direct lets a head do a command in the store, some time from now.
func (r *run) direct(s *slot, op speculate.OpID) {
	h := s.handler
	c := h.asked[op]
	r.later(&task{slot: s.id, stores: true, do: func() {
		w := r.world
		r.hint(c)
		e := speculate.Done{Slot: s.id, Op: op, Reads: w.store.seen(c.Reads()), Exact: true}
		var reply string
		switch c.Verb {
		case oracle.Effect:
			w.saw(oracle.Event{Kind: oracle.Outside, Invocation: r.family(), Reply: oracle.Text(s.action, c)})
			reply, e.Exact, e.Outside, h.outside = "OK", false, true, true
		case oracle.Clock:
			reply, e.Exact = oracle.ClockReply(w.clock), false
		default:
			reply, e.Wrote = w.store.do(c)
			e.Exact = c.Verb != oracle.Look && !c.Unbuffered()
			w.say("    [%d] slot %d does %v -> %s", r.number, s.id, c, reply)
		}
		r.later(&task{slot: s.id, do: func() {
			r.tell(e)
			if !s.over && s.handler == h {
				h.replied(op, reply)
			}
		}})
	}})
}

func (r *run) promote(a speculate.Promote) {
	for _, id := range a.Slots {
		s := r.live(id, a)
		if s == nil {
			return
		}
		if s.head || s.promoting {
			r.world.fail("slot %d is promoted, and is a head or on its way", id)
			return
		}
	}
	if len(a.Expect) == 0 && len(a.Commands) == 0 {
		r.lead(a.Slots)
		return
	}
	for _, id := range a.Slots {
		r.slots[id].promoting = true
	}
	r.later(&task{slot: a.Slots[0], stores: true, do: func() {
		w := r.world
		var e speculate.Event
		if changed := w.store.changed(a.Expect); len(changed) > 0 {
			e = speculate.Conflict{Slots: a.Slots, Keys: changed}
			if w.quiet {
				w.fail("the promotion of %v is refused because of %v, which nobody else wrote: who read it early should have been squashed", a.Slots, changed)
			}
		} else {
			commands := make([]oracle.Command, len(a.Commands))
			for i, c := range a.Commands {
				commands[i] = c.(oracle.Command)
			}
			_, wrote := w.store.do(commands...)
			r.hint(commands...)
			w.say("    [%d] slots %v are applied: %v wrote %v: %v", r.number, a.Slots, commands, wrote, w.store.values)
			e = speculate.Promoted{Slots: a.Slots, Version: w.store.last}
		}
		r.later(&task{slot: a.Slots[0], of: promotions, do: func() { r.settle(a.Slots, e) }})
	}})
}

// settle tells the outcome of a promotion.
func (r *run) settle(slots []speculate.SlotID, e speculate.Event) {
	for _, id := range slots {
		r.cover(e, r.slots[id], true)
	}
	_, ok := e.(speculate.Promoted)
	for _, id := range slots {
		s := r.slots[id]
		s.promoting = false
		if ok && !s.over && s.failed != nil {
			r.world.saw(oracle.Event{Kind: oracle.Crash, Invocation: r.family(), Action: s.action, Result: *s.failed})
			s.result, s.finished, s.handler = s.failed, true, nil
		}
	}
	if ok {
		r.lead(slots)
	}
	r.stepMachine(e)
}

func (r *run) lead(slots []speculate.SlotID) {
	for _, id := range slots {
		s := r.slots[id]
		s.head, s.counted = true, false
	}
}

func (r *run) commit(a speculate.Commit) {
	s := r.live(a.Slot, a)
	if s == nil {
		return
	}
	s.over, s.committed = true, true
	if !s.program && (s.result == nil || s.result.Status != a.Result.Status || string(s.result.Value) != string(a.Result.Value)) {
		r.world.fail("slot %d is committed with %s, and did not end so", s.id, a.Result.Value)
	}
	if s.program {
		s.result = &a.Result
	}
}

func (r *run) squash(a speculate.Squash) {
	s := r.live(a.Slot, a)
	if s == nil {
		return
	}
	s.over = true
	if s.head && !s.program && !r.givenUp {
		r.world.fail("slot %d is a head, and is squashed", s.id)
	}
	if s.handler != nil && r.world.IntN(2) == 0 {
		s.handler.out = nil
	}
}

func (r *run) finish(a speculate.Finish) {
	if r.answered {
		r.world.fail("invocation %d finishes twice", r.number)
		return
	}
	r.answered = true
	switch {
	case r.apart:
	case r.givenUp:
		r.world.saw(oracle.Event{Kind: oracle.Given, Invocation: r.number})
	default:
		r.world.saw(oracle.Event{Kind: oracle.End, Invocation: r.number, Result: a.Result})
	}
}

// giveUp cancels the invocation; of what is on its way to the store some arrives.
func (r *run) giveUp() {
	r.givenUp = true
	tasks := r.tasks
	r.tasks = nil
	for _, t := range tasks {
		switch {
		case !t.stores:
			r.tasks = append(r.tasks, t)
		case r.world.IntN(2) == 0:
			t.do()
		}
	}
	r.tell(speculate.Cancelled{Reason: "the client has gone"})
	r.world.saw(oracle.Event{Kind: oracle.Gone, Invocation: r.number})
}

// crash ends a handler, which crashed or took too long; of what it sent to the store some arrives.
func (r *run) crash(s *slot, with *forerun.Result) {
	tasks := r.tasks
	r.tasks = nil
	for _, t := range tasks {
		switch {
		case t.slot != s.id || !t.stores || s.promoting:
			r.tasks = append(r.tasks, t)
		case r.world.IntN(2) == 0:
			t.do()
		}
	}
	e := speculate.Failed{Slot: s.id, Result: *with}
	r.cover(e, s, true)
	s.handler = nil
	switch {
	case s.head:
		r.world.saw(oracle.Event{Kind: oracle.Crash, Invocation: r.family(), Action: s.action, Result: *with})
		s.result, s.finished = with, true
	case s.promoting:
		s.failed = with
	}
	r.stepMachine(e)
}

func (r *run) learn(a speculate.Learn) {
	s := r.slots[a.Slot]
	if s == nil || !s.committed {
		r.world.fail("what slot %d did is learnt, and it is not committed", a.Slot)
		return
	}
	if a.Lesson == nil {
		return
	}
	if a.Lesson.Row != nil {
		r.world.memo[string(a.Lesson.Code[:])+string(a.Lesson.Input)] = a.Lesson.Row
		if string(a.Lesson.Row.Output) != string(s.result.Value) {
			r.world.fail("slot %d gave %s, and %s is learnt", s.id, s.result.Value, a.Lesson.Row.Output)
		}
		r.proveRow(s, a.Lesson.Row)
	}
	if a.Lesson.Outcome != nil {
		r.world.predictor.Learn(*a.Lesson.Outcome)
	}
}

// proveRow holds a row that may stand for an execution to what it says (rule R8): with the records as they were, and nothing
// else known, the execution gives that output.
func (r *run) proveRow(s *slot, row *forerun.Row) {
	w := r.world
	if !row.Exact || row.Effects || s.program || s.self {
		return
	}
	seg := &oracle.Segment{Actions: w.actions, Version: map[string]int{s.action: s.version}, Fixed: true}
	for i := range seg.Before {
		seg.Before[i] = oracle.Value{Kind: '?'}
	}
	for _, seen := range row.Reads {
		record := recordOf(seen.Key)
		seg.Before[record] = w.store.past[past{record, seen.Version}]
	}
	for _, c := range row.Below {
		if v, ok := seg.Version[c.Action]; ok && v != w.codes[c.Code] {
			return // it called two versions of an action: the row never stands for it again
		}
		seg.Version[c.Action] = w.codes[c.Code]
	}
	seg.Events = []oracle.Event{{Kind: oracle.Begin, Action: s.action, Input: s.input}, {Kind: oracle.End, Result: forerun.Result{Value: row.Output}}}
	if _, err := oracle.Check(seg); err != nil {
		w.fail("the row of slot %d (%s on %s) is wrong: %v reads %v: %v", s.id, s.action, s.input, fmt.Sprint(string(row.Output)), row.Reads, err)
	}
}
