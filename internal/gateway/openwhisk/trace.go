package openwhisk

import (
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/trace"
)

// tracedActivation is a whole record with a member that OpenWhisk's has not: it is there when it is asked for.
type tracedActivation struct {
	activationDocument
	Trace trace.Record `json:"trace"`
}

// getTrace answers GET .../activations/ID/trace: what happened in an invocation, or in a part of one.
func (a *API) getTrace(c *call) error {
	namespace, id, err := c.recordID()
	if err != nil {
		return err
	}
	traced, err := trace.Gather(id, func(id forerun.ActivationID) (*forerun.Activation, error) {
		return a.Activations.Get(c.r.Context(), namespace, id)
	})
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, traced)
	}
	return err
}
