package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/memo"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/trace"
)

// Bounds of nesting, so that a program that contains itself, or a function that calls itself and waits, ends with an error.
const (
	maxDepth = 64 // programs within programs
	maxCalls = 24 // functions that wait for functions; each occupies a sandbox
)

// maxCommitted is how many activations an invocation may have, so that a program that does not end is ended.
const maxCommitted = 10_000

// lastInTurn is how many of the last activations run in order. It exceeds the number of slots that may be speculative,
// because a whole group that is promoted together counts even if its last slot is one too many.
const lastInTurn = 1000

// largeRecords are so many bytes of results and logs that they are written although their tree is not over.
const largeRecords = 4 << 20

// execution is one client's invocation, including all calls that its functions make and wait for. It hears the worker's
// events, steps the machine and carries out its actions, all under its lock. Blocking work is done outside of the lock.
type execution struct {
	c           *Controller
	namespace   string
	subject     string
	transaction string
	age         uint64 // those that began before have lower ones

	speculation speculate.Settings
	tables      *tables            // of the namespace; nil with speculation off
	memo        *memo.Tenant       // of the namespace; nil with speculation and cache off
	flights     *flights           // of the namespace; nil with the cache off
	permit      permit             // to speculate, if one was asked for
	mayAhead    bool               // speculation is not off for it; other conditions may still prevent it
	cacheOff    forerun.ReasonCode // why no row stands for an execution; empty: rows do
	off         forerun.ReasonCode // why nothing of it does, although it might
	changes     uint64             // the count of action changes when the speculative slots were resolved
	found       uint64             // the count when the first action was
	rehearsal   *rehearsal         // that it is; nil: it is an invocation

	mu         sync.Mutex // guards the rest
	machine    *speculate.Machine
	depth      int  // that the machine was told last
	ahead      int  // speculative functions, as the controller counts them
	buffered   int  // bytes in columns, as it does
	full       bool // the value that the machine was told last
	slots      map[speculate.SlotID]*slot
	active     map[forerun.ActivationID]*slot // the slots whose functions run, and the finished speculative ones that are not committed
	calls      map[speculate.OpID]*tree       // that are not over; 0: the client's
	operations map[speculate.OpID]*operation  // of functions, that are not answered; made by the first
	posed      *operation                     // that the machine is being told of; nil: none
	lastOp     speculate.OpID
	events     []speculate.Event // that arose while actions were carried out
	committed  int               // slots
	publishing []*publication    // of calls, but for those that went well
	tally      forerun.Tally
	inOrder    estimate
	concurrent bool // a function had two calls under way
}

// tree is a root slot with the slots of its programs. One client or one calling function waits for it. Its records are
// written together, unless they are large.
type tree struct {
	action     *forerun.Action // of the root
	changes    uint64          // of actions, as of before that was found
	cause      forerun.ActivationID
	caller     *slot           // whose function waits for it, or nil
	op         speculate.OpID  // that call
	called     time.Time       // since when that waits; zero: it was answered
	asked      time.Time       // since when its caller has waited, if the caller was speculative; else zero
	stalled    bool            // it waits for another call
	idle       span            // when it waited only for its caller to become a head
	calls      int             // functions that wait for this one's root, one for another
	part       forerun.Program // the part of the action's program that the root executes; zero: all
	begun      bool            // its root was, under the id that the invocation had first
	invocation *Invocation
	records    []*forerun.Activation // to be written
	bytes      int                   // of their results and logs
	written    <-chan error          // tells of those before; nil: there are none
}

// begin starts the invocation of a client.
func (c *Controller) begin(r Request, i *Invocation) {
	e := c.newExecution(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls[0] = e.newTree(r, i)
	if c.closed.Load() && i.kept.Load() == nil { // for what is accepted Close waits
		i.end(i.accepted, errClosed())
		c.busy.end(e.namespace)
		return
	}
	c.setGoing(e)
	var first []speculate.Action
	e.machine, first = speculate.New(r.Action.Name.String(), r.Input, e.lookAhead(r)...)
	e.carryOut(first)
}

func (c *Controller) newExecution(r Request) *execution {
	return &execution{
		c: c, namespace: r.Namespace, subject: r.Subject, transaction: r.Transaction, age: c.begun.Add(1),
		slots:  make(map[speculate.SlotID]*slot),
		active: make(map[forerun.ActivationID]*slot),
		calls:  make(map[speculate.OpID]*tree),
		found:  c.Actions.Changes(),
	}
}

// call makes r a call by one of the execution's running functions; false if that has ended.
func (e *execution) call(r Request, i *Invocation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	caller := e.asker(r.Cause)
	if caller == nil {
		return false
	}
	caller.calls = true
	e.concurrent = e.concurrent || e.waits(caller)
	e.lastOp++
	t := e.newTree(r, i)
	t.caller, t.op, t.called, t.calls = caller, e.lastOp, time.Now(), caller.tree.calls+1
	if caller.ahead {
		t.asked = t.called
		i.noteNever()
		i.leave = func() { e.tell(speculate.Withdrawn{Slot: caller.id, Op: t.op}) }
	} else {
		i.begin()
	}
	if e.speculation.Mode == speculate.Off {
		i.settleID()
	}
	e.calls[t.op] = t
	e.step(speculate.Call{
		Slot: caller.id, Op: t.op, Action: r.Action.FoundAs(), Input: r.Input, Code: e.c.digests.Deployed(r.Action), Known: r.Short || i.kept.Load() != nil, Bypass: r.Bypass,
	})
	if e.changes > r.Changes { // an action may have changed since its resolution, and this was not checked yet
		e.changes = r.Changes
		e.renew()
	}
	return true
}

// waits reports whether a function waits for a call.
func (e *execution) waits(caller *slot) bool {
	for _, t := range e.calls {
		if t.caller == caller && !t.called.IsZero() {
			return true
		}
	}
	return false
}

// asker is the slot of a function that may make a request. It is nil after the function's end, because no process would
// receive the answer.
func (e *execution) asker(id forerun.ActivationID) *slot {
	if s := e.active[id]; s != nil && !s.over {
		return s
	}
	return nil
}

func (e *execution) newTree(r Request, i *Invocation) *tree {
	e.c.busy.begin(e.namespace)
	return &tree{action: r.Action, changes: r.Changes, cause: r.Cause, part: r.part, invocation: i}
}

// Started implements forerun.WorkerEvents.
func (e *execution) Started(id forerun.ActivationID, at time.Time, initTime time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.active[id]; s != nil {
		e.began(s)
		s.started(at, initTime)
		e.show(s)
		if e.depth < e.speculation.Depth { // perhaps as this had no sandbox
			e.breathe()
		}
	}
}

// Ended implements forerun.WorkerEvents.
func (e *execution) Ended(id forerun.ActivationID, end forerun.RunEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.active[id]
	if s == nil {
		return
	}
	s.over = true
	s.ended(end)
	e.show(s)
	result := forerun.Result{Status: end.Status, Value: end.Result}
	switch gives := end.Status == forerun.Success || end.Status == forerun.ApplicationError; {
	case gives && end.Unheard:
		e.step(speculate.Failed{Slot: s.id, Result: result, Why: forerun.Because(forerun.ReasonLeftSends)})
	case gives:
		e.step(speculate.Output{Slot: s.id, Result: result, Reach: end.Reach, Remembers: end.Remembers})
	default:
		e.step(speculate.Failed{Slot: s.id, Result: result})
	}
}

// Wanted implements forerun.WorkerEvents. A speculative slot that is not being promoted, and has not just ended, makes way: it runs again as
// the head.
func (e *execution) Wanted(id forerun.ActivationID, kind forerun.SquashKind, why *forerun.Reason) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.active[id]; s != nil && s.ahead && !s.promoting && !s.over {
		if kind == forerun.Overdue {
			e.tables.noteLong(e.code(s), true)
		}
		e.rehearsal.wanted(kind)
		e.step(speculate.Failed{Slot: s.id, Result: forerun.Failure(forerun.InternalError, trace.Sentence(why)), Kind: kind, Why: why})
	}
}

// step tells the machine an event, and those that arise from carrying out what it says.
func (e *execution) step(event speculate.Event) {
	e.breathe()
	e.renew()
	e.carryOut(e.machine.Step(event))
}

func (e *execution) carryOut(actions []speculate.Action) {
	for {
		e.noteAhead()
		e.noteBuffered()
		e.learnFrom(actions)
		for _, action := range actions {
			e.do(action)
		}
		if len(e.events) == 0 {
			break
		}
		event := e.events[0]
		e.events = e.events[1:]
		actions = e.machine.Step(event)
	}
	if len(e.slots) == 0 {
		e.c.clearGoing(e)
	}
}

func (e *execution) do(action speculate.Action) {
	switch a := action.(type) {
	case speculate.Resolve:
		e.find(a)
	case speculate.Launch:
		e.launch(a)
	case speculate.Check:
		e.check(a)
	case speculate.Await:
		e.awaitEqual(a)
	case speculate.Yield:
		e.landed(e.slots[a.Slot], false)
	case speculate.Skip:
		e.skip(a)
	case speculate.Attach:
		e.attach(a)
	case speculate.Fetch:
		e.fetch(a)
	case speculate.Stall:
		e.stalled(a)
	case speculate.Reply:
		e.reply(a)
	case speculate.Promote:
		e.promote(a)
	case speculate.Commit:
		e.commit(a)
	case speculate.Squash:
		e.squash(a)
	case speculate.Blame:
		e.tables.predictor.Blame(a)
	case speculate.Rehearsed:
		e.rehearsal.row, e.rehearsal.disturbed, e.rehearsal.why = a.Row, a.Disturbed, a.Why
	case speculate.Finish:
		e.finishRehearsal()
	}
	// Learn needs nothing here: learnFrom came first.
}

// launch has the action of a slot executed. A new one is found first, and entered if it is a program.
func (e *execution) launch(l speculate.Launch) {
	s := e.slots[l.Slot]
	switch {
	case s != nil:
		e.lead(s, !l.Speculative)
		s.record.Timeline.Queued = time.Now() // it was found before
		e.run(s, s.input, l)
	case l.Detach != nil:
		s = e.newSlot(l.Slot, l.Parent, l.Caller, l.Op)
		e.lead(s, !l.Speculative)
		e.detach(s, l)
	default:
		s = e.newSlot(l.Slot, l.Parent, l.Caller, l.Op)
		e.prepare(s, place(l), func(input json.RawMessage) { e.run(s, input, l) })
	}
}

func (e *execution) newSlot(id, parent, caller speculate.SlotID, op speculate.OpID) *slot {
	s := &slot{id: id, ahead: e.speculation.Mode != speculate.Off}
	switch p := e.slots[parent]; {
	case p != nil:
		s.tree, s.parent, s.depth = p.tree, p, p.depth+1
		s.record = newRecord(e.namespace, e.subject, e.c.newID(), p.record.ID)
	case caller != speculate.None && op == 0: // the call is to come
		s.tree = e.expectTree(e.slots[caller])
		s.record = newRecord(e.namespace, e.subject, e.c.newID(), s.tree.cause)
	default:
		s.tree = e.calls[op]
		s.tree.goesOn()
		s.record = newRecord(e.namespace, e.subject, e.newID(s.tree), s.tree.cause)
		if op == 0 && e.off != "" {
			s.record.Timeline.InTurn = forerun.Because(e.off)
		}
	}
	s.record.Timeline.Slot = int(id)
	e.slots[s.id] = s
	return s
}

// prepare finds a slot's action and merges its input: begin goes on with a function, the machine with a program.
func (e *execution) prepare(s *slot, at placement, begin func(input json.RawMessage)) {
	program, input, err := e.resolved(s, at)
	switch {
	case err != nil:
		status := forerun.DeveloperError
		if _, s.silent = errors.AsType[refusal](err); s.silent {
			status = forerun.ApplicationError
		}
		e.events = append(e.events, speculate.Failed{Slot: s.id, Result: forerun.Failure(status, err.Error())})
	case program != nil:
		s.program = true
		e.noteCached(s, nil)
		s.started(s.record.Timeline.Queued, 0)
		e.show(s)
		e.events = append(e.events, speculate.Entered{Slot: s.id, Name: e.name(s), Program: program, Code: e.c.digests.Deployed(s.action), Input: input})
	default:
		begin(input)
	}
}

func (e *execution) resolved(s *slot, at placement) (forerun.Program, json.RawMessage, error) {
	program, err := e.resolve(s, at)
	if err != nil {
		return nil, nil, err
	}
	if _, err := forerun.Environment(s.parameters()); err != nil {
		return nil, nil, err
	}
	given := at.Input
	if s.cache.Key != nil && program == nil {
		if given, err = s.cache.Key.Pick(given); err != nil {
			return nil, nil, err
		}
	}
	input, err := canonical.Merge(s.parameters(), given)
	switch {
	case err != nil:
		return nil, nil, err
	case s.tree.calls > maxCalls:
		err = forerun.Errorf(forerun.Invalid, "", "More than %d functions wait for each other, the last for %s; does one call itself?", maxCalls, s.action.Name)
	case program != nil && s.depth >= maxDepth && !s.conducted(): // else what it may run bounds its depth, too
		err = forerun.Errorf(forerun.Invalid, "", "Sequences and compositions are nested more than %d deep in %s; does one contain itself?", maxDepth, s.action.Name)
	}
	return program, input, err
}

// run asks the worker to execute the slot's function.
func (e *execution) run(s *slot, input json.RawMessage, l speculate.Launch) {
	id := s.record.ID
	s.followed = l.Followed
	e.noteCached(s, l.Cached)
	rights, outside := annotation.APIKey(s.action.Annotations)
	token := e.c.tokens.issue(Speaker{Namespace: e.namespace, Subject: e.subject, Activation: id, Rights: rights, outside: outside})
	e.active[id] = s
	e.c.setRunning(id, e)
	if line := &s.record.Timeline; l.Speculative {
		line.Speculative, line.Predicted = true, l.Why
	} else if l.Why != nil {
		line.InTurn = l.Why
	}
	e.c.Worker.Run(&forerun.Run{
		Activation: id, Action: s.action, Input: input, Namespace: e.namespace, Token: token, Transaction: e.transaction,
		Caller:      s.tree.waiting(),
		Fresh:       e.rehearsal != nil && e.rehearsal.before.Remembers,
		Rehearsed:   e.rehearsal != nil,
		Speculative: l.Speculative, Bridged: s.followed, EndSandbox: l.Speculative && e.speculation.EndSandbox,
		Events: e, Wrote: e.wrote(s),
		Noted: !s.followed && s.isPart(),
	})
}

// waiting is the activation that waits for what a tree's root gives; "" if none does, or not yet.
func (t *tree) waiting() forerun.ActivationID {
	if t.caller == nil || t.op == 0 {
		return ""
	}
	return t.caller.record.ID
}

// commit makes a slot final. The end of a tree's root ends the tree.
func (e *execution) commit(a speculate.Commit) {
	s := e.slots[a.Slot]
	e.letGo(s)
	if s.record.Timeline.Skipped {
		e.tally.Skipped++
	}
	e.refuse(s) // unanswered requests from before the failure
	e.leave(s)
	if s.silent {
		return
	}
	if s.parent != nil {
		s.parent.record.Logs = append(s.parent.record.Logs, string(s.record.ID))
	}
	s.finish(a.Result)
	e.countCache(s)
	e.verify(s)
	if !s.program {
		e.c.toll.ended()
	}
	e.noteTime(s)
	e.estimate(s)
	e.noteCaller(s)
	s.tree.noteIdle(s)
	e.keep(s)
	if s.parent == nil {
		s.tree.noteCall(e)
		e.end(s.tree)
	}
}

// keep takes the record of a slot that is final.
func (e *execution) keep(s *slot) {
	t := s.tree
	t.records = append(t.records, s.record)
	t.bytes += len(s.record.Result)
	for _, line := range s.record.Logs {
		t.bytes += len(line)
	}
	if t.bytes > largeRecords && s.parent != nil {
		e.c.writeSome(t)
	}
	switch e.committed++; e.committed {
	case maxCommitted - lastInTurn: // skipped slots may reach the last one without any event of a function
		e.depth = 0
		e.events = append(e.events, speculate.LoadChanged{Depth: e.depth, Full: e.full})
	case maxCommitted:
		e.events = append(e.events, speculate.Cancelled{
			Error: fmt.Sprintf("The invocation was ended after %d activations; does a loop in it never end?", maxCommitted),
		})
	}
}

// squash kills a slot. A head is squashed only when the invocation is given up: its record says so. Of others nothing is left.
func (e *execution) squash(a speculate.Squash) {
	s := e.slots[a.Slot]
	if e.active[s.record.ID] != nil {
		e.c.Worker.Squash(s.record.ID)
	}
	e.refuse(s)
	if e.rehearsal != nil {
		e.leave(s)
	} else if s.ahead && !s.mayCount() && !(a.Kind == forerun.GivenUp && s.isDue()) {
		e.wasted(s, a)
		e.leave(s)
	} else { // a slot that is being promoted may count, and callers of a head hear how it ended
		e.lead(s, true)
		s.squashed(a)
		e.commit(speculate.Commit{Slot: a.Slot, Result: forerun.Failure(forerun.InternalError, trace.Sentence(a.Cause))})
	}
	e.abandon(s)
}

// leave forgets a slot that is over; its token is void from now on.
func (e *execution) leave(s *slot) {
	delete(e.slots, s.id)
	e.unclaim(s)
	e.ground(s)
	if e.active[s.record.ID] != nil {
		delete(e.active, s.record.ID)
		e.c.tokens.revoke(s.record.ID)
		e.c.clearRunning(s.record.ID)
	}
}

// end ends a tree whose root is committed.
func (e *execution) end(t *tree) {
	delete(e.calls, t.op)
	if e.calls[0] == nil && !e.isAwaited(t) {
		e.sum(t)
	}
	if t.caller == nil {
		e.c.toll.answered(e.permit, t.records[len(t.records)-1].Status, time.Now())
	}
	c, p := e.c, &publication{namespace: e.namespace, invocation: t.invocation, done: make(chan struct{})} // the execution itself need not be kept until then
	var calls []*publication
	switch {
	case t.caller == nil:
		calls = slices.Clone(e.publishing)
	case e.speculation.Mode != speculate.Off:
		e.publishing = append(slices.DeleteFunc(e.publishing, func(p *publication) bool { return p.well.Load() }), p)
	}
	c.aside.Go(func() { c.publish(t, calls, p) })
}
