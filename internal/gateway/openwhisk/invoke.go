package openwhisk

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"time"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/speculate"
)

// invoke answers POST .../actions/NAME: it begins an invocation of the action for whoever calls (a tenant, or a function
// that runs, to whose activation the new one is then tied), and waits for its end if asked to.
func (a *API) invoke(c *call) error {
	err := a.carryOut(c)
	if err != nil {
		a.Controller.Refused(c.caller.Cause)
	}
	return err
}

func (a *API) carryOut(c *call) error {
	name, err := c.anyName()
	if err != nil {
		return err
	}
	terms, err := c.terms()
	if err != nil {
		return err
	}
	a.tellIgnored(c, terms.ahead)
	input, err := c.input()
	if err != nil {
		return err
	}
	once, err := c.once(name, input)
	if err != nil {
		return err
	}
	if once != nil {
		first, err := a.Activations.FindOnce(c.r.Context(), once)
		if err != nil {
			return err
		}
		if first != "" {
			return a.repeat(c, first, terms)
		}
	}
	invocation, first, err := a.begin(c, name, input, once, terms)
	switch {
	case err != nil:
		return err
	case invocation == nil:
		return a.repeat(c, first, terms)
	}
	return a.finish(c, invocation, terms)
}

// begin begins the invocation, or returns the id of the first with the same key.
func (a *API) begin(c *call, name forerun.Name, input json.RawMessage, once *activation.Once, terms terms) (*controller.Invocation, forerun.ActivationID, error) {
	leave, err := a.enter(c)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	request, err := a.admitInTurn(c, name, input, terms)
	switch {
	case err != nil:
		return nil, "", err
	case once != nil:
		return a.invokeOnce(c.r.Context(), request, once)
	}
	return a.Controller.Invoke(request), "", nil
}

// admitInTurn is admit for functions that may run ahead, too: what is refused to one then may be granted in its turn.
func (a *API) admitInTurn(c *call, name forerun.Name, input json.RawMessage, terms terms) (controller.Request, error) {
	if !terms.blocking || !a.Controller.IsAhead(c.caller.Cause) {
		return a.admit(c, name, input, terms, a.Quotas.Invocation)
	}
	if request, err := a.admit(c, name, input, terms, a.Quotas.Ahead); err == nil {
		return request, nil
	}
	if err := a.Controller.Hold(c.r.Context(), c.caller.Cause, forerun.Because(forerun.ReasonCallRefused)); err != nil {
		return controller.Request{}, err
	}
	return a.admit(c, name, input, terms, a.Quotas.Invocation)
}

// counting is a method of gateway.Quotas that counts an invocation.
type counting func(ctx context.Context, namespace string) (*gateway.Flight, error)

// admit finds the action and makes the request for its invocation, which is counted against the caller's quotas.
func (a *API) admit(c *call, name forerun.Name, input json.RawMessage, terms terms, count counting) (controller.Request, error) {
	changes := a.Registry.Changes()
	action, err := a.Registry.Resolve(c.r.Context(), name, c.caller.Namespace)
	if err != nil {
		return controller.Request{}, err
	}
	if err := checkFinal(action, input); err != nil {
		return controller.Request{}, err
	}
	flight, err := count(c.r.Context(), c.caller.Namespace)
	if err != nil {
		return controller.Request{}, err
	}
	return controller.Request{
		Namespace: c.caller.Namespace, Subject: c.caller.Subject, Cause: c.caller.Cause,
		Action: action, Changes: changes, Input: input, Blocking: terms.blocking, Short: terms.wait < MaxWait, Transaction: gateway.Transaction(c.r),
		Speculation: terms.ahead, Bypass: terms.bypass, Begun: flight.Begin, Ended: flight.Land, Undone: flight.Undo,
	}, nil
}

// speculation is how far the request wants its invocation to run ahead; nil if it does not say.
func (c *call) speculation() (*speculate.Settings, error) {
	const header = "X-Forerun-Speculate"
	given := c.r.Header.Values(header)
	switch {
	case len(given) == 0:
		return nil, nil
	case len(given) > 1:
		return nil, forerun.Errorf(forerun.Invalid, "", "The header %s comes %d times: send it once.", header, len(given))
	}
	settings, err := speculate.ParseSettings(given[0])
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "", "The header %s: %w", header, err)
	}
	return &settings, nil
}

// tellIgnored says in a header what of the request's settings is not in effect. A function's own call is a part of its workflow, which has
// settings.
func (a *API) tellIgnored(c *call, asked *speculate.Settings) {
	if asked == nil || c.caller.Cause != "" {
		return
	}
	if ignored := a.Controller.Ignored(*asked); ignored != "" {
		c.w.Header().Set("X-Forerun-Speculate-Ignored", ignored)
	}
}

// finish answers a request for an invocation on its terms. A function that runs ahead is never told an id, which is not final then: it
// runs again, and has the answer of its turn.
func (a *API) finish(c *call, invocation *controller.Invocation, terms terms) error {
	over := terms.blocking && c.over(invocation, terms.wait)
	for !over && c.r.Context().Err() == nil && a.Controller.IsAhead(c.caller.Cause) {
		invocation.Leave()
		over = c.over(invocation, terms.wait)
	}
	if !over {
		if err := c.r.Context().Err(); err != nil {
			return err // the client has gone; the invocation goes on
		}
		if err := invocation.Accept(c.r.Context()); err != nil {
			return err
		}
		if terms.blocking {
			a.Controller.Refused(c.caller.Cause)
		}
		c.w.Header().Set("X-Openwhisk-Activation-Id", string(invocation.ID()))
		c.accepted(invocation.ID())
		return nil
	}
	c.w.Header().Set("X-Openwhisk-Activation-Id", string(invocation.ID()))
	if tally := invocation.Tally(); tally != nil {
		c.w.Header().Set("X-Forerun-Speculation", tally.String())
	}
	if err := invocation.Err(); err != nil {
		return err
	}
	answer(c.w, invocation.Record(), terms.result)
	return nil
}

// accepted answers who does not wait for the end.
func (c *call) accepted(id forerun.ActivationID) {
	gateway.WriteJSON(c.w, http.StatusAccepted, document{"activationId": id})
}

// terms are how a client wants to be answered, and its invocation to be carried out.
type terms struct {
	blocking bool                // at the end, if that comes
	wait     time.Duration       // before this has passed
	result   bool                // with nothing but the result
	ahead    *speculate.Settings // how far it is to run ahead; nil: that is not said
	bypass   bool                // it is to be executed, whatever is known of it
}

func (c *call) terms() (t terms, err error) {
	if t.blocking, err = c.flag("blocking", false); err != nil {
		return t, err
	}
	if t.result, err = c.flag("result", false); err != nil {
		return t, err
	}
	if t.ahead, err = c.speculation(); err != nil {
		return t, err
	}
	if t.bypass, err = c.bypass(); err != nil {
		return t, err
	}
	t.wait, err = c.wait()
	return t, err
}

// input reads the body: a JSON object, from here to the function in its canonical form. No body is an empty object.
func (c *call) input() (json.RawMessage, error) {
	body, err := c.body(int64(c.bounds.Payload))
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return json.RawMessage("{}"), nil
	}
	if err := c.mustBeJSON(); err != nil {
		return nil, err
	}
	done, err := c.quotas.Apart(c.r.Context(), c.caller.Namespace, body)
	if err != nil {
		return nil, err
	}
	defer done()
	input, err := canonical.Object(body)
	if e, ok := errors.AsType[*forerun.Error](err); ok {
		return nil, malformed("%s", e.Message)
	}
	return input, err
}

// checkFinal refuses input that would override the parameters of an action with the annotation "final".
func checkFinal(action *forerun.Action, input json.RawMessage) error {
	if string(forerun.Lookup(action.Annotations, "final")) != "true" {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(input, &members); err != nil {
		return malformed("%w", err)
	}
	for i := range action.Parameters {
		p := &action.Parameters[i]
		if _, given := members[p.Key]; given && p.IsSet() {
			return forerun.Errorf(forerun.Invalid, p.Key, "Request defines parameters that are not allowed (e.g., reserved properties).")
		}
	}
	return nil
}

// mustBeJSON refuses a body that the client says is something else.
func (c *call) mustBeJSON() error {
	const wanted = "application/json"
	given := c.r.Header.Get("Content-Type")
	if given == "" || given == wanted { // as nearly always
		return nil
	}
	if media, _, err := mime.ParseMediaType(given); err == nil && media == wanted {
		return nil
	}
	return &refusal{
		status:  http.StatusUnsupportedMediaType,
		message: "The request's Content-Type [" + given + "] is not supported. Expected:\napplication/json",
	}
}

// over waits for the end of an invocation, and reports whether it came in time.
func (c *call) over(i *controller.Invocation, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-i.Done():
		return true
	case <-timer.C:
	case <-c.r.Context().Done():
		i.Leave()
	}
	return false
}

// answer shows a record whose invocation is over.
func answer(w http.ResponseWriter, record *forerun.Activation, resultOnly bool) {
	tellCache(w, record)
	status := http.StatusOK
	switch record.Status {
	case forerun.ApplicationError, forerun.DeveloperError:
		status = http.StatusBadGateway
	case forerun.InternalError:
		status = http.StatusInternalServerError
	}
	if resultOnly {
		gateway.WriteJSON(w, status, record.Result)
		return
	}
	gateway.WriteJSON(w, status, wholeRecord{record})
}
