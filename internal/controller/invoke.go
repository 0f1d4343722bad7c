package controller

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Request asks for an invocation.
type Request struct {
	Namespace   string // of the invoking tenant
	Subject     string
	Action      *forerun.Action
	Input       json.RawMessage      // a canonical JSON object; the action's parameters are laid under it
	Cause       forerun.ActivationID // the activation whose function asks, if one does
	Blocking    bool                 // the asker waits for the answer
	Transaction string               // X-Request-ID
	Ended       func()               // called once it is over; may be nil

	part forerun.Program // what of the action's program is to run, if not all of it
}

// Invocation is an invocation under way, as its client sees it.
type Invocation struct {
	id       forerun.ActivationID
	records  Records
	accepted *forerun.Activation // what Accept keeps of it
	kept     atomic.Bool
	note     *time.Timer // calls Accept; nil if that was done before it began
	ended    func()
	done     chan struct{}
	record   *forerun.Activation
	err      error
}

// ID is the activation id that the client is told.
func (i *Invocation) ID() forerun.ActivationID { return i.id }

// Done is closed when the invocation is over and its records are in the log.
func (i *Invocation) Done() <-chan struct{} { return i.done }

// Record is the record of the invocation; to be read after Done.
func (i *Invocation) Record() *forerun.Activation { return i.record }

// Err says why the records could not be written, if so; to be read after Done.
func (i *Invocation) Err() error { return i.err }

// Accept makes sure that the invocation ends with a record even if the server does not live to see it. A client may be
// told the id before the end when it has returned.
func (i *Invocation) Accept(ctx context.Context) error {
	if i.kept.Load() {
		return nil
	}
	if err := i.records.Accept(ctx, i.accepted); err != nil {
		return err
	}
	i.kept.Store(true)
	select {
	case <-i.done: // who ended it may not have seen that something was kept
		i.forget()
	default:
	}
	return nil
}

// forget drops what Accept kept, when the invocation is over. Left behind, it is dropped by the next server.
func (i *Invocation) forget() {
	if i.kept.Load() {
		_ = i.records.Forget(context.Background(), i.accepted)
	}
}

// Invoke begins an invocation and returns at once. A function that waits for another's answer is tied to it: the callee
// becomes a slot of the caller's own invocation.
func (c *Controller) Invoke(r Request) *Invocation {
	i := c.newInvocation(r)
	c.start(r, i)
	return i
}

// InvokeAccepted is Invoke for an invocation that is to end with a record come what may: accept keeps what is known of it,
// as Records.Accept does, before it begins. If accept fails there is no invocation, and its error is returned.
func (c *Controller) InvokeAccepted(r Request, accept func(*forerun.Activation) error) (*Invocation, error) {
	i := c.newInvocation(r)
	if err := accept(i.accepted); err != nil {
		return nil, err
	}
	i.kept.Store(true)
	c.start(r, i)
	return i, nil
}

func (c *Controller) newInvocation(r Request) *Invocation {
	now := c.Clock.Now()
	i := &Invocation{id: forerun.NewActivationID(now), records: c.Records, ended: r.Ended, done: make(chan struct{})}
	i.accepted = newRecord(r.Namespace, r.Subject, i.id, r.Cause)
	i.accepted.Action, i.accepted.Version = r.Action.Name, r.Action.Version
	i.accepted.Start, i.accepted.Timeline.Queued = now, now
	return i
}

// noted is how long an invocation may go on before it is accepted even if nobody was told its id.
const noted = time.Second

func (c *Controller) start(r Request, i *Invocation) {
	if !i.kept.Load() {
		i.note = time.AfterFunc(noted, func() { _ = i.Accept(context.Background()) }) // if it fails, so does the record at the end
	}
	if r.Cause != "" && r.Blocking {
		if e := c.executionOf(r.Cause); e != nil && e.call(r, i) {
			return
		}
	}
	c.begin(r, i)
}
