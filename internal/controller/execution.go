package controller

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// Bounds of nesting, so that a program that contains itself, or a function that calls itself and waits, ends with an error.
const (
	maxDepth = 64 // programs within programs
	maxCalls = 24 // functions that wait for functions; each occupies a sandbox
)

// execution is one client's invocation with all that its functions call and wait for. It hears the worker's events,
// steps the machine and carries out its actions, all under its lock; what could block is done outside.
type execution struct {
	c           *Controller
	namespace   string
	subject     string
	transaction string

	mu      sync.Mutex // guards the rest
	machine *speculate.Machine
	slots   map[speculate.SlotID]*slot
	active  map[forerun.ActivationID]*slot // the slots whose functions run
	calls   map[speculate.OpID]*tree       // that are not launched yet
	lastOp  speculate.OpID
	events  []speculate.Event // that arose while actions were carried out
}

// tree is a root slot with the slots of its programs: what one client or one calling function waits for. Its records
// are written together.
type tree struct {
	action     *forerun.Action // of the root
	cause      forerun.ActivationID
	calls      int             // functions that wait for this one's root, one for another
	part       forerun.Program // what the root executes, if not all of its action
	invocation *Invocation
	records    []*forerun.Activation
}

// slot is what the controller knows of a slot of the machine.
type slot struct {
	id         speculate.SlotID
	tree       *tree
	parent     *slot // whose program it is part of, or nil
	depth      int   // programs around it
	record     *forerun.Activation
	action     *forerun.Action
	token      string
	program    bool          // it was entered, and has no function
	silent     bool          // it has no record
	detaching  bool          // it begins another execution
	accounting *accounting   // if its program is a conductor's
	memory     int           // MB, the largest limit of what its program ran
	wait       time.Duration // between queued and launched
	initTime   time.Duration
	timedOut   bool
}

// begin starts the invocation of a client.
func (c *Controller) begin(r Request, i *Invocation) {
	e := &execution{
		c: c, namespace: r.Namespace, subject: r.Subject, transaction: r.Transaction,
		slots:  make(map[speculate.SlotID]*slot),
		active: make(map[forerun.ActivationID]*slot),
		calls:  make(map[speculate.OpID]*tree),
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls[0] = e.newTree(r, i)
	var first []speculate.Action
	e.machine, first = speculate.New(r.Action.Name.String(), r.Input)
	e.carryOut(first)
}

// call makes r a call by one of the execution's running functions; false if that has ended.
func (e *execution) call(r Request, i *Invocation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	caller := e.active[r.Cause]
	if caller == nil {
		return false
	}
	e.lastOp++
	t := e.newTree(r, i)
	t.calls = caller.tree.calls + 1
	e.calls[e.lastOp] = t
	e.step(speculate.Call{Slot: caller.id, Op: e.lastOp, Action: r.Action.Name.String(), Input: r.Input})
	return true
}

func (e *execution) newTree(r Request, i *Invocation) *tree {
	e.c.busy.Add(1)
	return &tree{action: r.Action, cause: r.Cause, part: r.part, invocation: i}
}

// give gives the execution up, and returns what is closed when the records of its invocations are written.
func (e *execution) give(reason string) (ends []<-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.slots {
		if s.parent == nil {
			ends = append(ends, s.tree.invocation.done)
		}
	}
	e.step(speculate.Cancelled{Reason: reason})
	return ends
}

// Started implements forerun.WorkerEvents.
func (e *execution) Started(id forerun.ActivationID, at time.Time, initTime time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.active[id]; s != nil {
		s.started(at, initTime)
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
	s.ended(end)
	result := forerun.Result{Status: end.Status, Value: end.Result}
	if end.Status == forerun.Success || end.Status == forerun.ApplicationError {
		e.step(speculate.Output{Slot: s.id, Result: result})
	} else {
		e.step(speculate.Failed{Slot: s.id, Result: result})
	}
}

// step tells the machine an event, and those that arise from carrying out what it says.
func (e *execution) step(event speculate.Event) {
	e.carryOut(e.machine.Step(event))
}

func (e *execution) carryOut(actions []speculate.Action) {
	for {
		for _, action := range actions {
			e.do(action)
		}
		if len(e.events) == 0 {
			return
		}
		event := e.events[0]
		e.events = e.events[1:]
		actions = e.machine.Step(event)
	}
}

func (e *execution) do(action speculate.Action) {
	switch a := action.(type) {
	case speculate.Launch:
		e.launch(a)
	case speculate.Commit:
		e.commit(a)
	case speculate.Squash:
		e.squash(a)
	}
	// Learn, Reply and Finish need nothing here: no table learns yet, and who waits for a result waits for the
	// records of its tree, which commit writes.
}

// launch has the action of a new slot executed, or enters it if it is a program.
func (e *execution) launch(l speculate.Launch) {
	s := e.newSlot(l)
	if l.Detach != nil {
		e.detach(s, l)
		return
	}
	if err := e.prepare(s, l); err != nil {
		status := forerun.DeveloperError
		if _, s.silent = errors.AsType[refusal](err); s.silent {
			status = forerun.ApplicationError
		}
		e.events = append(e.events, speculate.Failed{Slot: s.id, Result: forerun.Failure(status, err.Error())})
	}
	if s.parent != nil && !s.silent {
		s.parent.record.Logs = append(s.parent.record.Logs, string(s.record.ID))
	}
}

func (e *execution) newSlot(l speculate.Launch) *slot {
	s := &slot{id: l.Slot}
	if parent := e.slots[l.Parent]; parent != nil {
		s.tree, s.parent, s.depth = parent.tree, parent, parent.depth+1
		s.record = newRecord(e.namespace, e.subject, forerun.NewActivationID(e.c.Clock.Now()), parent.record.ID)
	} else {
		s.tree = e.calls[l.Op]
		s.record = newRecord(e.namespace, e.subject, s.tree.invocation.id, s.tree.cause)
		delete(e.calls, l.Op)
	}
	e.slots[s.id] = s
	return s
}

// prepare finds the slot's action, merges its input and hands it to the worker, or to the machine if it is a program.
func (e *execution) prepare(s *slot, l speculate.Launch) error {
	program, err := e.resolve(s, l)
	if err != nil {
		return err
	}
	input, err := canonical.Merge(s.parameters(), l.Input)
	if err != nil {
		return err
	}
	if s.tree.calls > maxCalls {
		return forerun.Errorf(forerun.Invalid, "", "More than %d functions wait for each other, the last for %s; does one call itself?", maxCalls, s.action.Name)
	}
	if program == nil {
		e.run(s, input, l.Speculative)
		return nil
	}
	if s.depth >= maxDepth && !s.conducted() { // else what it may run bounds its depth, too
		return forerun.Errorf(forerun.Invalid, "", "Sequences and compositions are nested more than %d deep in %s; does one contain itself?", maxDepth, s.action.Name)
	}
	s.program = true
	s.started(s.record.Timeline.Queued, 0)
	e.events = append(e.events, speculate.Entered{Slot: s.id, Program: program, Input: input})
	return nil
}

// run asks the worker to execute the slot's function.
func (e *execution) run(s *slot, input json.RawMessage, speculative bool) {
	id := s.record.ID
	s.token = e.c.tokens.issue(holder{namespace: e.namespace, subject: e.subject, activation: id})
	e.active[id] = s
	e.c.setRunning(id, e)
	e.c.Worker.Run(&forerun.Run{
		Activation: id, Action: s.action, Input: input, Namespace: e.namespace,
		Token: s.token, Transaction: e.transaction, Speculative: speculative, Events: e,
	})
}

// commit makes a slot final. The end of a tree's root ends the tree.
func (e *execution) commit(a speculate.Commit) {
	s := e.slots[a.Slot]
	e.leave(s)
	if s.silent {
		return
	}
	s.finish(a.Result)
	s.tree.records = append(s.tree.records, s.record)
	if s.parent == nil {
		go e.c.publish(s.tree)
	}
}

// squash kills a slot. An invocation is squashed only when it is given up: its record says so.
func (e *execution) squash(a speculate.Squash) {
	s := e.slots[a.Slot]
	if e.active[s.record.ID] != nil {
		e.c.Worker.Squash(s.record.ID)
	}
	s.record.Timeline.Squashed, s.record.Timeline.Cause = time.Now(), a.Cause
	e.commit(speculate.Commit{Slot: a.Slot, Result: forerun.Failure(forerun.InternalError, a.Cause)})
}

// leave forgets a slot that is over; its token is void from now on.
func (e *execution) leave(s *slot) {
	delete(e.slots, s.id)
	if s.detaching {
		e.c.clearRunning(s.record.ID)
	}
	if e.active[s.record.ID] != nil {
		delete(e.active, s.record.ID)
		e.c.tokens.revoke(s.token)
		e.c.clearRunning(s.record.ID)
	}
}

// publish writes the records of a tree that is over, then lets who waits for it go on.
func (c *Controller) publish(t *tree) {
	defer c.busy.Done()
	i := t.invocation
	if i.note != nil {
		i.note.Stop()
	}
	i.record = t.records[len(t.records)-1]
	for _, record := range t.records {
		c.date(record)
	}
	i.err = c.Records.Put(context.Background(), t.records...)
	if i.err == nil && c.Observe != nil {
		for _, record := range t.records {
			c.Observe(record)
		}
	}
	if i.ended != nil {
		i.ended()
	}
	close(i.done)
	i.forget()
}
