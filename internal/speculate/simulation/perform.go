package simulation

import (
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

func (r *run) perform(a speculate.Action) {
	switch a := a.(type) {
	case speculate.Resolve:
		r.resolve(a)
	case speculate.Launch:
		r.launch(a)
	case speculate.Check:
		r.check(a)
	case speculate.Await:
		r.await(a)
	case speculate.Yield:
		r.landed(r.slots[a.Slot], false)
	case speculate.Skip:
		if s := r.live(a.Slot, a); s != nil {
			s.finished, s.skipped, s.result, s.launched = true, true, &a.Result, true
		}
	case speculate.Fetch:
		r.later(&task{slot: a.Slot, do: func() {
			e := speculate.Fetched{Slot: a.Slot, Op: a.Op}
			if e.Failed = r.world.lacksRoom(); !e.Failed {
				e.Records = r.world.store.fetch(a.Keys)
			}
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
	case speculate.Attach:
		r.attach(a)
	case speculate.Stall:
	default:
		r.world.fail("an unknown action %T", a)
	}
}

// attach makes a slot that runs what a function has called.
func (r *run) attach(a speculate.Attach) {
	r.slots[a.Slot].op = a.Op
	if h := r.slots[a.Caller].handler; h != nil && h.told[a.Op] {
		r.world.fail("slot %d, which ran already, is what slot %d has called under an id that is known", a.Slot, a.Caller)
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

// find takes the code of a slot's action as it is now; that of a program's own function, and of a part of it that was detached,
// as it was when the program began.
func (r *run) find(s *slot) {
	w := r.world
	if s.version = w.version[s.action]; s.self {
		s.version = r.slots[s.parent].version
	}
	s.code, s.digest = w.code(s.action, s.version), w.digest(s.action, s.version, s.self)
	if r.program != nil && s.id == 0 {
		s.version = r.version
		s.code, s.digest = &oracle.Code{Program: r.program}, digestOf(s.action+" detached", s.version, false)
	} else if s.id == 0 || r.mode == speculate.Off { // it is its turn
		r.hintBegin(s)
	}
}

// renew tells which actions are not any more what they were found to be.
func (r *run) renew() {
	var e speculate.Renewed
	for id := range r.next {
		s := r.slots[id]
		if id > 0 && s != nil && s.resolved && !s.over && !s.head && !s.self && (s.digest != r.world.digestNow(s.action) || !r.world.areCurrent(s.below)) {
			e.Slots = append(e.Slots, id)
		}
	}
	if len(e.Slots) > 0 && !r.isOver() {
		r.cover(e, nil, true)
		r.stepMachine(e)
	}
}

func (r *run) resolve(a speculate.Resolve) {
	s := r.add(a.Slot, a.Parent, a.Action, a.Self, a.Function, a.Input)
	s.caller, s.op, s.head = a.Caller, a.Op, r.mode == speculate.Off
	if r.world.prompt {
		r.find(s)
		r.events = append(r.events, r.resolved(s))
		return
	}
	r.later(&task{slot: s.id, do: func() {
		r.find(s)
		r.stepMachine(r.resolved(s))
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
		resolved := speculate.Resolved{Slot: s.id, Code: s.digest, Input: s.input, Cached: a.Cached || a.Pure, Open: r.world.IntN(10) == 0, Stray: r.world.IntN(10) == 0}
		if a.Alone {
			resolved.Alone, resolved.InTurn = forerun.Because(forerun.ReasonNonSpeculative), true
		}
		e = resolved
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
	if s == nil && (r.mode == speculate.Off || a.Detach != nil) {
		r.add(a.Slot, a.Parent, a.Action, a.Self, a.Function, a.Input)
	}
	found := s != nil
	if s = r.live(a.Slot, a); s == nil {
		return
	}
	s.launched, s.head = true, !a.Speculative
	switch {
	case a.Detach != nil:
		s.resolved = true
		r.detach(s, a)
		return
	case r.mode == speculate.Off && !found:
		r.find(s)
		if s.code == nil || s.code.Program != nil && !s.self {
			r.later(&task{slot: s.id, do: func() { r.stepMachine(r.resolved(s)) }})
			return
		}
		s.resolved = true
	case s.code == nil: // it could not be found, and it is the head
		r.world.fail("slot %d is launched, and has no code", s.id)
		return
	case s.head && s.id > 0 && r.mode != speculate.Off: // it was found before
		r.hintBegin(s)
	}
	if a.Speculative {
		s.counted = true
		r.countAhead()
	}
	s.handler = &handler{reach: forerun.Inside, slot: s.id, action: s.action, code: s.code, input: s.input, acc: oracle.Accumulator(s.input), digests: func(action string) forerun.Digest {
		return r.world.digestNow(action)
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
	parent := r.slots[a.Parent]
	r.later(&task{slot: s.id, stores: true, do: func() {
		r.world.begin(&run{world: r.world, number: r.number, apart: true, program: a.Detach, action: parent.action, version: parent.version, limit: r.limit}, r.mode, a.Input)
		e := speculate.Output{Slot: s.id, Result: oracle.Detached, Reach: forerun.Inside} // the machine knows what it is
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
	s.checking, s.below = true, a.Row.Below
	r.later(&task{slot: a.Slot, do: func() {
		e := speculate.Checked{Slot: a.Slot, Current: r.world.areCurrent(a.Row.Below)}
		for _, key := range a.Row.Keys() {
			e.Versions = append(e.Versions, r.world.store.versions[recordOf(key)])
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
	case s.dead: // nobody is left who waits
	case h == nil:
		r.world.fail("a reply for slot %d, which has no handler", s.id)
	case a.Direct && !s.head:
		r.world.fail("slot %d is no head, and reaches the store", s.id)
	case a.Direct:
		r.direct(s, a.Op)
	case a.Data != nil:
		s.told = append(s.told, answer{h.asked[a.Op].command, a.Data.(string)})
		h.replied(a.Op, a.Data.(string))
	default:
		r.hearOf(s, a.Op)
		h.returned(a.Op, a.Result)
	}
}

// hearOf makes what a callee was told a part of what its caller was, which is promoted for both.
func (r *run) hearOf(s *slot, op speculate.OpID) {
	for id := range r.next {
		if c := r.slots[id]; c != nil && !c.over && c.caller == s.id && c.op == op && !s.head {
			s.told = append(s.told, c.told...)
		}
	}
}

// direct lets a head do a command in the store, some time from now.
func (r *run) direct(s *slot, op speculate.OpID) {
	h := s.handler
	asked := h.asked[op]
	c := asked.command
	r.later(&task{slot: s.id, stores: true, do: func() {
		w := r.world
		r.hint(c, asked.acc)
		e := speculate.Done{Slot: s.id, Op: op, Reads: w.store.seen(c.Reads()), Exact: true}
		var reply string
		switch c.Verb {
		case oracle.Effect:
			w.saw(oracle.Event{Kind: oracle.Outside, Invocation: r.family(), Reply: oracle.Text(s.action, c)})
			reply, e.Exact, e.Outside, h.reach = "OK", false, true, forerun.Outside
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
