package openwhisk

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
)

// A request with the header Idempotency-Key is carried out once: who makes it again is told of the first invocation, which
// may still run, have ended, or have been cut off with the server that ran it.

// maxIdempotencyKey is how long a key may be, in bytes.
const maxIdempotencyKey = 255

// once reads the header; nil if there is none.
func (c *call) once(name forerun.Name, input json.RawMessage) (*activation.Once, error) {
	values := c.r.Header["Idempotency-Key"]
	if values == nil {
		return nil, nil
	}
	key := strings.TrimSpace(values[0])
	if key == "" || len(key) > maxIdempotencyKey || len(values) > 1 {
		return nil, forerun.Errorf(forerun.Invalid, "Idempotency-Key", "The header Idempotency-Key must hold one key of 1 to %d bytes.", maxIdempotencyKey)
	}
	return &activation.Once{Namespace: c.caller.Namespace, Action: name, Key: key, Payload: sha256.Sum256(input)}, nil
}

// underWay is an invocation with an idempotency key.
type underWay struct {
	begun      chan struct{} // closed when invocation is set; or, if another was first, never
	invocation *controller.Invocation
}

// invokeOnce begins an invocation, unless the same request has begun one: then it returns the id of that.
func (a *API) invokeOnce(ctx context.Context, r controller.Request, once *activation.Once) (*controller.Invocation, forerun.ActivationID, error) {
	u := &underWay{begun: make(chan struct{})}
	var id, first forerun.ActivationID
	land := r.Ended
	r.Ended = func() {
		land()
		a.once.Delete(id)
	}
	invocation, err := a.Controller.InvokeAccepted(r, func(accepted *forerun.Activation) (err error) {
		id = accepted.ID
		a.once.Store(id, u) // before anybody can learn the id
		first, err = a.Activations.AcceptOnce(ctx, accepted, once)
		if err == nil && first != id {
			err = forerun.Errorf(forerun.Exists, string(first), "Another invocation was first.")
		}
		return err
	})
	switch {
	case err == nil:
		u.invocation = invocation
		close(u.begun)
		return invocation, "", nil
	case first != "" && first != id:
		err = nil
	}
	r.Ended()
	return nil, first, err
}

// repeat answers a request whose first invocation has this id.
func (a *API) repeat(c *call, id forerun.ActivationID, terms terms) error {
	if u, ok := a.once.Load(id); ok {
		u := u.(*underWay)
		select {
		case <-u.begun:
			return a.finish(c, u.invocation, terms)
		case <-c.r.Context().Done():
			return c.r.Context().Err() // the client has gone
		}
	}
	record, err := a.Activations.Get(c.r.Context(), c.caller.Namespace, id)
	if err != nil {
		return err
	}
	c.w.Header().Set("X-Openwhisk-Activation-Id", string(id))
	if !terms.blocking {
		c.accepted(id)
		return nil
	}
	answer(c.w, record, terms.result)
	return nil
}
