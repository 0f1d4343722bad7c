package gateway

import (
	"context"
	"net/http"
	"regexp"

	"forerun.dev/forerun/internal/forerun"
)

// Holder lets an activation do what cannot be taken back, when its turn has come.
type Holder interface {
	Hold(ctx context.Context, id forerun.ActivationID) error
}

// HoldEffects has the requests of functions that run ahead wait until they are heads: all but blocking invocations with the
// activation's own token, whose callees run ahead with them. With any other key they are invocations apart.
func HoldEffects(handler http.Handler, keys *Keys, h Holder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := keys.Running(r.Context()); id != "" && !(isCall(r) && keys.activation(r).Cause == id) {
			if err := h.Hold(r.Context(), id); err != nil {
				Fail(w, r, err)
				return
			}
		}
		handler.ServeHTTP(w, r)
	})
}

var invocation = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/actions/`)

// isCall tells whether a request is a call that its function waits for to the end, and that is nothing else. One that waits for a
// while may be told an id, which is not final as long as anything runs ahead.
func isCall(r *http.Request) bool {
	query := r.URL.Query()
	return r.Method == http.MethodPost && invocation.MatchString(r.URL.Path) && query.Get("blocking") == "true" && !query.Has("timeout") &&
		r.Header.Get("Idempotency-Key") == ""
}
