package controller

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// Request asks for an invocation.
type Request struct {
	Namespace   string // of the invoking tenant
	Subject     string
	Action      *forerun.Action
	Input       json.RawMessage      // a canonical JSON object; the action's parameters are laid under it
	Cause       forerun.ActivationID // the activation whose function asks, if one does
	Blocking    bool                 // the asker waits for the answer,
	Short       bool                 // but for a while only: it may be told the id before, which is not to be another then
	Transaction string               // X-Request-ID
	Speculation *speculate.Settings  // how much it may speculate; nil: its action's settings
	Bypass      bool                 // no row of the memo table stands for it, nor for what it calls
	Changes     uint64               // of actions, as of before Action was found
	Begun       func()               // called before Ended when the calling function stops being speculative; may be nil
	Ended       func()               // called once it is over; may be nil
	Undone      func()               // called in its place if it was squashed with the function that asked; may be nil

	part forerun.Program // the part of the action's program to run; zero: all
}

// Invocation is an invocation under way, as its client sees it.
type Invocation struct {
	id       atomic.Pointer[forerun.ActivationID]
	c        *Controller
	accepted *forerun.Activation // what Accept keeps of it
	kept     atomic.Pointer[forerun.Activation]
	note     *time.Timer // calls Accept; nil if that was done before it began
	begun    func()
	ended    func()
	undone   func()
	leave    func()        // the effect of Leave for the call of a speculative function; else nil
	final    chan struct{} // of a function's call: closed once the caller is not speculative and the id is final; else nil
	finalize sync.Once
	answered sync.Once
	done     chan struct{}
	record   *forerun.Activation
	err      error
	tally    *forerun.Tally
}

// ID is the activation id that the client is told. While its caller is speculative it is not final before Done.
func (i *Invocation) ID() forerun.ActivationID { return *i.id.Load() }

// Tally counts the speculation of the invocation; nil if speculation is off for it, or if it is a part of another
// invocation. Read it after Done.
func (i *Invocation) Tally() *forerun.Tally { return i.tally }

// Leave tells that the waiting client has left. The invocation continues. If a speculative function called it, that
// function runs again in order, because the answer might have come in time then.
func (i *Invocation) Leave() {
	if i.leave != nil {
		i.leave()
	}
}

// Done is closed when the invocation is over and its records are in the log.
func (i *Invocation) Done() <-chan struct{} { return i.done }

// Record is the record of the invocation; to be read after Done.
func (i *Invocation) Record() *forerun.Activation { return i.record }

// Err says why it never began, or why its records could not be written, if so; to be read after Done.
func (i *Invocation) Err() error {
	if i.err == nil || i.record == i.accepted {
		return i.err
	}
	return forerun.Errorf(forerun.KindOf(i.err), "activation "+string(i.ID()), "The records could not be written: %w", i.err)
}

// Accept makes sure that the invocation ends with a record even if the server does not live to see it. A client may be
// told the id before the end when it has returned. It waits while that may run again under another.
func (i *Invocation) Accept(ctx context.Context) error {
	if i.kept.Load() != nil {
		return nil
	}
	if i.final != nil {
		select {
		case <-i.final:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-i.done:
		if i.err == nil || i.record == i.accepted { // its record is there, or it never began
			return i.err
		}
	default:
	}
	accepted := *i.accepted
	accepted.ID = i.ID()
	if err := i.c.Records.Accept(ctx, &accepted); err != nil {
		return err
	}
	i.kept.Store(&accepted)
	select {
	case <-i.done: // the goroutine that ended it may not have seen the kept note
		i.settle(i.record, i.err)
		if i.record == i.accepted { // it never began
			return i.err
		}
	default:
	}
	return nil
}

// settleID says that the id is not to be another.
func (i *Invocation) settleID() {
	if i.final != nil {
		i.finalize.Do(func() { close(i.final) })
	}
}

// answer lets who waits for the invocation go on.
func (i *Invocation) answer(record *forerun.Activation, err error) {
	i.answered.Do(func() {
		i.record, i.err = record, err
		close(i.done)
	})
}

// end is answer for an invocation that is over.
func (i *Invocation) end(record *forerun.Activation, err error) {
	if i.note != nil {
		i.note.Stop()
	}
	if i.ended != nil {
		i.ended()
	}
	i.answer(record, err)
	i.settleID()
	i.settle(record, err)
}

// settle drops what Accept kept of an invocation that is over, unless its record could not be written: the next server ends it then.
func (i *Invocation) settle(record *forerun.Activation, err error) {
	if err == nil || record == i.accepted {
		i.forget()
	}
}

// undo is end for an invocation that never was.
func (i *Invocation) undo(err error) {
	if i.undone != nil {
		i.ended = i.undone
	}
	i.end(i.accepted, err)
}

// forget drops the note of Accept when the invocation is over. The next server drops a note that was left behind.
// Dropping may wait for room on the disk, so only the end of the namespace and of the server wait for it.
func (i *Invocation) forget() {
	kept := i.kept.Load()
	if kept == nil {
		return
	}
	i.c.busy.begin(kept.Namespace)
	i.c.aside.Go(func() {
		defer i.c.busy.end(kept.Namespace)
		_ = i.c.Records.Forget(context.Background(), kept)
	})
}

// Invoke begins an invocation and returns at once. A function that waits for another's answer is tied to it: the callee
// becomes a slot of the caller's own invocation.
func (c *Controller) Invoke(r Request) *Invocation {
	i := c.newInvocation(r)
	c.start(r, i)
	return i
}

// noteNever keeps an invocation from being accepted that may never have been, until it is begun.
func (i *Invocation) noteNever() {
	if i.note != nil {
		i.note.Stop()
	}
}

// begin says that the calling function is not speculative any more.
func (i *Invocation) begin() {
	if i.begun != nil {
		i.begun()
	}
	if i.note != nil {
		i.note.Reset(noted)
	}
}

// InvokeAccepted is Invoke for an invocation that ends with a record in every case. Before it begins, accept notes it
// durably, as Records.Accept does. If accept fails, no invocation begins, and its error is returned.
func (c *Controller) InvokeAccepted(r Request, accept func(*forerun.Activation) error) (*Invocation, error) {
	defer c.Enter(r.Namespace)() // or a tenant could be gone when it begins, whose deletion has ended all others
	if c.closed.Load() {         // if it is later, Close waits for this one
		return nil, errClosed()
	}
	i := c.newInvocation(r)
	if err := accept(i.accepted); err != nil {
		return nil, err
	}
	i.kept.Store(i.accepted)
	c.start(r, i)
	return i, nil
}

func errClosed() error {
	return forerun.Errorf(forerun.Unavailable, "", "The server is shutting down. Try again when it has been started again.")
}

func (c *Controller) newID() forerun.ActivationID { return forerun.NewActivationID(c.Clock.Now()) }

func (c *Controller) newInvocation(r Request) *Invocation {
	now := c.Clock.Now()
	i := &Invocation{c: c, begun: r.Begun, ended: r.Ended, undone: r.Undone, done: make(chan struct{})}
	id := forerun.NewActivationID(now)
	i.id.Store(&id)
	i.accepted = newRecord(r.Namespace, r.Subject, id, r.Cause)
	i.accepted.Action, i.accepted.Version = r.Action.Name, r.Action.Version
	i.accepted.Start, i.accepted.Timeline.Queued = now, now
	if r.Cause != "" && r.Blocking {
		i.final = make(chan struct{})
	}
	return i
}

// noted is how long an invocation may run before it is accepted although no client was told its id.
const noted = time.Second

func (c *Controller) start(r Request, i *Invocation) {
	if i.kept.Load() == nil {
		i.note = time.AfterFunc(noted, func() { _ = i.Accept(context.Background()) }) // if it fails, so does the record at the end
	}
	if r.Cause == "" || !r.Blocking {
		c.begin(r, i)
		return
	}
	e := c.executionOf(r.Cause)
	switch {
	case e != nil && e.call(r, i):
	case i.kept.Load() != nil: // its turn had come
		c.begin(r, i)
	default:
		i.undo(errOver()) // if it was squashed it never called
	}
}
