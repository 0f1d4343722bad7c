package controller

import (
	"context"
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// detach begins a part of the slot's program as an invocation of its own, as composer's async does. The slot has no
// record; it ends when that invocation has begun. Blocking work is done outside of the lock.
func (e *execution) detach(s *slot, l speculate.Launch) {
	s.silent = true
	program := s.parent
	r := Request{
		Namespace: e.namespace, Subject: e.subject, Action: program.action, Input: l.Input,
		Cause: program.record.ID, Transaction: e.transaction, part: l.Detach,
	}
	e.c.busy.begin(e.namespace)
	go func() {
		defer e.c.busy.end(e.namespace)
		i, err := e.c.accept(r)
		e.mu.Lock()
		defer e.mu.Unlock()
		switch {
		case e.slots[s.id] != s: // given up meanwhile
			if err == nil {
				i.drop()
			}
		case err != nil:
			e.step(speculate.Failed{Slot: s.id, Result: forerun.Failure(forerun.InternalError, err.Error())})
		default:
			e.c.begin(r, i)
			ids := map[string]forerun.ActivationID{"activationId": i.ID(), "sessionId": program.record.ID}
			value, _ := json.Marshal(ids) // strings always marshal
			e.step(speculate.Output{Slot: s.id, Result: forerun.Result{Value: value}})
		}
	}()
}

// accept makes an invocation that its namespace's quotas have room for and that ends with a record come what may.
func (c *Controller) accept(r Request) (*Invocation, error) {
	if c.Admit != nil {
		var err error
		if r.Ended, err = c.Admit(context.Background(), r.Namespace); err != nil {
			return nil, err
		}
	}
	i := c.newInvocation(r)
	if err := i.Accept(context.Background()); err != nil {
		i.drop()
		return nil, err
	}
	return i, nil
}

// drop gives up an invocation that was never begun.
func (i *Invocation) drop() {
	if i.ended != nil {
		i.ended()
	}
	i.forget()
}
