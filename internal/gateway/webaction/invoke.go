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

// hasSecret compares hashes: how long that takes tells nothing of the secret.
func hasSecret(r *http.Request, secret string) bool {
	given, want := sha256.Sum256([]byte(r.Header.Get("X-Require-Whisk-Auth"))), sha256.Sum256([]byte(secret))
	return r.Header["X-Require-Whisk-Auth"] != nil && subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// invoke runs the action as its owner's, and answers with what came of it.
func (h *Handler) invoke(w http.ResponseWriter, r *http.Request, owner registry.Tenant, action *forerun.Action, input json.RawMessage, as extension) error {
	flight, err := h.Quotas.Invocation(r.Context(), owner.Namespace)
	if err != nil {
		return err
	}
	invocation := h.Controller.Invoke(controller.Request{
		Namespace: owner.Namespace, Subject: owner.Subject, Action: action, Input: input, Blocking: true,
		Transaction: gateway.Transaction(r), Ended: flight.Land,
	})
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
		refuse(w, r, http.StatusAccepted, "Response not yet ready.")
		return nil
	}
	if err := invocation.Err(); err != nil {
		return forerun.Errorf(forerun.KindOf(err), "activation "+string(invocation.ID()), "The records could not be written: %w", err)
	}
	return answer(&page{w, r.Header["Accept"]}, invocation.Record(), as)
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
