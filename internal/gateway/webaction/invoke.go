package webaction

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"time"

	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// secretHeader carries the secret that the annotation require-whisk-auth asks for.
const secretHeader = "X-Require-Whisk-Auth"

// hasSecret compares hashes: how long that takes tells nothing of the secret.
func hasSecret(r *http.Request, secret string) bool {
	given, want := sha256.Sum256([]byte(r.Header.Get(secretHeader))), sha256.Sum256([]byte(secret))
	return r.Header[secretHeader] != nil && subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// invoke runs the action as its owner's, and answers with what came of it.
func (h *Handler) invoke(w http.ResponseWriter, r *request, owner registry.Tenant, action *forerun.Action, input json.RawMessage, as extension) error {
	invocation, err := h.begin(r, owner, action, input)
	if err != nil {
		return err
	}
	w.Header().Set("X-Openwhisk-Activation-Id", string(invocation.ID()))
	timer := time.NewTimer(h.MaxWait)
	defer timer.Stop()
	select {
	case <-invocation.Done():
	case <-r.Context().Done():
		return r.Context().Err() // the client has gone; the invocation goes on
	case <-timer.C:
		if err := invocation.Accept(r.Context()); err != nil {
			return err
		}
		refuse(w, r.Request, http.StatusAccepted, "Response not yet ready.")
		return nil
	}
	if err := invocation.Err(); err != nil {
		return err
	}
	if !isConditional(r.Request, action) {
		return answer(&page{w, r.Header["Accept"]}, invocation.Record(), as)
	}
	t := &tagged{ResponseWriter: w, r: r.Request}
	err = answer(&page{t, r.Header["Accept"]}, invocation.Record(), as)
	if err == nil {
		t.send(invocation.Record())
	}
	return err
}

// begin begins the invocation, which ends with the owner's namespace should that be erased meanwhile.
func (h *Handler) begin(r *request, owner registry.Tenant, action *forerun.Action, input json.RawMessage) (*controller.Invocation, error) {
	leave := h.Controller.Enter(owner.Namespace)
	defer leave()
	if err := h.isStill(r.Context(), owner); err != nil {
		return nil, err
	}
	flight, err := h.Quotas.Invocation(r.Context(), owner.Namespace)
	if err != nil {
		return nil, err
	}
	return h.Controller.Invoke(controller.Request{
		Namespace: owner.Namespace, Subject: owner.Subject, Action: action, Input: input, Blocking: true,
		Bypass: r.mustExecute(action), Transaction: gateway.Transaction(r.Request), Ended: flight.Land,
	}), nil
}

// answer tells what came of an activation.
func answer(p *page, record *forerun.Activation, as extension) error {
	switch record.Status {
	case forerun.Success:
		return as.answer(p, record.Result)
	case forerun.ApplicationError: // what the action says of its failure is the answer
		var members map[string]json.RawMessage
		if json.Unmarshal(record.Result, &members) != nil || members["error"] == nil {
			return missingProperty()
		}
		return as.answer(p, members["error"])
	}
	return forerun.Errorf(forerun.Invalid, "", "There was an error processing your request.")
}
