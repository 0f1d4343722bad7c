package controller

import (
	"cmp"
	"context"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// operation is what a function asks of the platform and waits for: a step on its state, or leave for something that cannot be
// taken back.
type operation struct {
	id    speculate.OpID
	slot  speculate.SlotID
	step  *command.Step   // nil: leave
	why   *forerun.Reason // the reason for which it is held until its slot is a head
	first bool            // later requests of its slot wait until it is done
	fetch func()          // reads the records it needs; nil: it needs none, or another step reads them
	ready chan answer     // has room for all that can come: that it is stalled, and the answer
	since time.Time       // when a speculative slot asked for it; zero: a head did
	waits bool            // for something that the trace tells
}

// answer is how an operation ends: with an outcome; or direct, the slot being a head, which does it itself.
type answer struct {
	stalled bool // no reply yet: it waits until its slot is a head, or for other clients. Sent once
	direct  bool
	refused bool
	outcome command.Outcome
}

// Bridge implements state.Bridge: it is made before the worker, and used when the controller is there.
type Bridge struct{ c *Controller }

// Do implements state.Bridge.
func (b *Bridge) Do(ctx context.Context, by state.Asker, o state.Command) (state.Reply, forerun.Version, error) {
	outcome, version, err := b.c.operate(ctx, by, command.NewStep(o.Space, time.Time{}, o.Args))
	if err != nil || len(outcome.Replies) == 0 {
		return state.Reply{}, version, err
	}
	return outcome.Replies[0], version, nil
}

// Exec implements state.Bridge.
func (b *Bridge) Exec(ctx context.Context, by state.Asker, space string, expect []state.Expect, commands [][][]byte) ([]state.Reply, forerun.Version, error) {
	outcome, version, err := b.c.operate(ctx, by, command.NewTransaction(space, time.Time{}, expect, commands))
	return outcome.Replies, version, err
}

// Versions implements state.Bridge.
func (b *Bridge) Versions(ctx context.Context, by state.Asker, keys []forerun.Key) ([]state.Expect, error) {
	outcome, _, err := b.c.operate(ctx, by, command.NewLook(keys))
	return outcome.Seen, err
}

// Hold implements state.Bridge.
func (b *Bridge) Hold(ctx context.Context, by state.Asker, why *forerun.Reason, begin func()) error {
	return b.c.hold(ctx, by, why, begin)
}

// IsAhead reports whether an activation is speculative.
func (c *Controller) IsAhead(id forerun.ActivationID) bool {
	e := c.executionOf(id)
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.active[id]
	return s != nil && s.ahead
}

// Refused notes that a call of an activation is not answered with its result: the activation may give something else for that.
func (c *Controller) Refused(id forerun.ActivationID) {
	e := c.executionOf(id)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.asker(id); s != nil && s.followed {
		e.step(speculate.Done{Slot: s.id, Refused: true})
	}
}

// Hold returns when an activation may have an effect that cannot be undone: it is a head, and its calls have records. It
// returns an error if the activation was squashed. If ctx ends first, the requester has given up, and a speculative
// activation runs again in order. why is shown in the trace.
func (c *Controller) Hold(ctx context.Context, id forerun.ActivationID, why *forerun.Reason) error {
	return c.hold(ctx, state.Asker{Activation: id}, why, nil)
}

func (c *Controller) hold(ctx context.Context, by state.Asker, why *forerun.Reason, begin func()) error {
	e := c.executionOf(by.Activation)
	if e == nil {
		return errOver()
	}
	o, a, err := e.ask(ctx, by, &operation{why: why, first: begin != nil})
	if err != nil {
		return err
	}
	if begin == nil {
		if a.direct {
			e.tell(speculate.Done{Slot: o.slot, Op: o.id, Outside: true})
			err = e.published(ctx)
		}
		if err == nil {
			err = e.note(ctx, by.Activation)
		}
		return err
	}
	if a.direct {
		defer e.tell(speculate.Done{Slot: o.slot, Op: o.id, Outside: true})
		err = e.published(ctx)
	}
	if err == nil && begin != nil {
		begin()
	}
	return err
}

func errOver() error {
	return forerun.Errorf(forerun.Forbidden, "", "The activation that asked is over: a function has to wait for what it asks for before it returns.")
}

// operate performs a step. Its time counts for its execution. The operation is built before any lock is taken, because
// it may name very many records.
func (c *Controller) operate(ctx context.Context, by state.Asker, step *command.Step) (command.Outcome, forerun.Version, error) {
	e := c.executionOf(by.Activation)
	if e == nil {
		return command.Outcome{}, 0, errOver()
	}
	o, a, err := e.ask(ctx, by, &operation{step: step})
	switch {
	case err != nil:
		return command.Outcome{}, 0, err
	case a.direct:
		return e.direct(ctx, by.Activation, o)
	}
	return a.outcome, 0, a.outcome.Err
}

// ask tells the machine of an operation and waits for its answer.
func (e *execution) ask(ctx context.Context, by state.Asker, o *operation) (*operation, answer, error) {
	if posed, err := e.pose(by.Activation, o); !posed {
		return nil, answer{}, err
	}
	if o.fetch != nil {
		o.fetch()
	}
	a, err := e.await(ctx, o)
	if a.stalled {
		a, err = e.awaitLong(ctx, by, o)
	}
	if a.refused {
		return nil, answer{}, errOver()
	}
	return o, a, err
}

// pose tells the machine about an operation, unless every slot is a head and no rule needs to follow the operation.
func (e *execution) pose(id forerun.ActivationID, o *operation) (posed bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.asker(id)
	if s == nil {
		return false, errOver()
	}
	if !s.followed {
		return false, nil
	}
	e.lastOp++
	o.id, o.slot, o.ready = e.lastOp, s.id, make(chan answer, 2)
	if s.ahead {
		o.since = time.Now()
		if o.step != nil {
			e.claim(s, o.step.Writes())
		}
	}
	if e.operations == nil {
		e.operations = make(map[speculate.OpID]*operation)
	}
	e.operations[o.id] = o
	e.posed = o
	e.step(o.event())
	e.posed = nil
	return true, nil
}

// awaitLong is await for a stalled operation, which may outlast the requester's patience. An operation that is not
// stalled counts as one in order: if the store is applying the slot's writes at that moment, it completes even if the
// requester has left.
func (e *execution) awaitLong(ctx context.Context, by state.Asker, o *operation) (answer, error) {
	if by.Listen != nil {
		heard, stop := by.Listen(ctx)
		defer stop()
		ctx = heard
	}
	return e.await(ctx, o)
}

// await returns what comes next of an operation, or withdraws it if ctx ends before.
func (e *execution) await(ctx context.Context, o *operation) (a answer, err error) {
	select {
	case a = <-o.ready:
		if ctx.Err() == nil {
			return a, nil
		}
	case <-ctx.Done():
	}
	e.withdraw(o, a)
	return answer{}, ctx.Err()
}

// withdraw ends an operation whose asker does not wait for it any more, after what came of it last. If it was just left to the asker,
// it is not done; that depended on the time, so what the function gives is not exact.
func (e *execution) withdraw(o *operation, a answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.operations[o.id] != nil {
		delete(e.operations, o.id)
		e.held(o)
	}
	for len(o.ready) > 0 {
		a = <-o.ready
	}
	if a.direct {
		e.step(speculate.Done{Slot: o.slot, Op: o.id})
	} else {
		e.step(speculate.Withdrawn{Slot: o.slot, Op: o.id})
	}
}

// event is what the machine hears of an operation.
func (o *operation) event() speculate.Event {
	switch {
	case o.step == nil:
		return speculate.Hold{Slot: o.slot, Op: o.id, Why: o.why, First: o.first}
	case o.step.Holds():
		return speculate.Hold{Slot: o.slot, Op: o.id, Why: o.step.Held()}
	case len(o.step.Writes()) > 0:
		return speculate.Write{Slot: o.slot, Op: o.id, Keys: o.step.Writes(), Reads: o.step.Reads(), Command: o.step, Size: o.step.Size(), Inexact: o.step.Inexact()}
	}
	return speculate.Read{Slot: o.slot, Op: o.id, Keys: o.step.Reads(), Command: o.step, Inexact: o.step.Inexact()}
}

// reply answers an operation, or a call.
func (e *execution) reply(a speculate.Reply) {
	o := e.operations[a.Op]
	switch {
	case o != nil:
		delete(e.operations, a.Op)
		if a.Direct || o.waits {
			e.held(o)
		}
		outcome, _ := a.Data.(command.Outcome)
		o.ready <- answer{direct: a.Direct, outcome: outcome}
	default:
		e.answerCall(a)
	}
}

// refuse ends the operations of a slot that is over.
func (e *execution) refuse(s *slot) {
	for id, o := range e.operations {
		if o.slot == s.id {
			delete(e.operations, id)
			e.held(o)
			o.ready <- answer{refused: true}
		}
	}
}

// direct does in the store itself what a head asks for.
func (e *execution) direct(ctx context.Context, by forerun.ActivationID, o *operation) (command.Outcome, forerun.Version, error) {
	done := speculate.Done{Slot: o.slot, Op: o.id}
	var notes []state.Command
	if len(o.step.Writes()) > 0 || o.step.Holds() {
		notes = e.c.Bridge.Notes(by)
	}
	observed, err := e.observe(ctx, o.step, notes)
	if err == nil && len(notes) > 0 {
		e.c.Bridge.Noted(by)
	}
	for _, read := range observed.Reads {
		done.Reads = append(done.Reads, forerun.Seen{Key: read.Key, Version: read.Version})
	}
	if done.Wrote, done.Exact = observed.Wrote, err == nil && observed.Exact; !done.Exact {
		done.Command = cmp.Or(o.step.Inexact(), o.step.Name())
	}
	e.tell(done)
	return command.Outcome{Replies: observed.Replies, Seen: observed.Reads}, observed.Version, err
}

// observe performs a step in the store, and keeps notes in it. Other clients' writes decide how long the versions of a look stay
// valid. While the disk is full there is room for no note, but commands that only remove are executed.
func (e *execution) observe(ctx context.Context, step *command.Step, notes []state.Command) (state.Observed, error) {
	if step.Looks() {
		seen, err := e.c.State.Versions(ctx, step.Reads()...)
		return state.Observed{Reads: seen}, err
	}
	observed, err := e.c.State.Observe(ctx, step.Expect(), append(step.Commands(), notes...))
	if len(notes) > 0 && forerun.KindOf(err) == forerun.Full {
		return e.c.State.Observe(ctx, step.Expect(), step.Commands())
	}
	if err != nil {
		return observed, err
	}
	return withoutNotes(observed, notes), nil
}

func (e *execution) tell(event speculate.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step(event)
}
