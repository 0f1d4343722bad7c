package controller

import (
	"encoding/json"

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
}

// Invocation is an invocation under way, as its client sees it.
type Invocation struct {
	id     forerun.ActivationID
	done   chan struct{}
	record *forerun.Activation
	err    error
}

// ID is the activation id that the client is told.
func (i *Invocation) ID() forerun.ActivationID { return i.id }

// Done is closed when the invocation is over and its records are in the log.
func (i *Invocation) Done() <-chan struct{} { return i.done }

// Record is the record of the invocation; to be read after Done.
func (i *Invocation) Record() *forerun.Activation { return i.record }

// Err says why the records could not be written, if so; to be read after Done.
func (i *Invocation) Err() error { return i.err }

// Invoke begins an invocation and returns at once. A function that waits for another's answer is tied to it: the callee
// becomes a slot of the caller's own invocation.
func (c *Controller) Invoke(r Request) *Invocation {
	i := &Invocation{id: forerun.NewActivationID(), done: make(chan struct{})}
	if r.Cause != "" && r.Blocking {
		if e := c.executionOf(r.Cause); e != nil && e.call(r, i) {
			return i
		}
	}
	c.begin(r, i)
	return i
}
