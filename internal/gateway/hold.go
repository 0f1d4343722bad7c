package gateway

import (
	"context"
	"net/http"
	"regexp"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Holder lets an activation do what cannot be taken back, when its turn has come.
type Holder interface {
	Hold(ctx context.Context, by state.Asker, why *forerun.Reason, begin func()) error
}

// HoldEffects has the requests of functions that run ahead wait until they are heads: all but blocking invocations with the
// activation's own token, whose callees run ahead with them. With any other key they are invocations apart. asker tells who sent a request.
func HoldEffects(handler http.Handler, asker func(context.Context) state.Asker, keys *Keys, h Holder) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if by := asker(r.Context()); by.Activation != "" && !(isCall(r) && keys.isCall(r, by.Activation)) {
			if err := h.Hold(r.Context(), by, whyHeld(r.Method), nil); err != nil {
				Fail(w, r, err)
				return
			}
		}
		handler.ServeHTTP(w, r)
	})
}

// whyHeld is for the trace of the function that asks.
func whyHeld(method string) *forerun.Reason {
	code := forerun.ReasonAPIEffect
	if method == http.MethodGet || method == http.MethodHead {
		code = forerun.ReasonAPIRead // what it tells may be something else by its turn
	}
	return forerun.NewReason(code, forerun.Detail{Command: method})
}

var invocation = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/actions/`)

// isCall tells whether a request is a call that its function waits for to the end, and that is nothing else. One that waits for a
// while may be told an id, which is not final as long as anything runs ahead. A large body counts among its tenant's, whose others could be
// refused for what never was.
func isCall(r *http.Request) bool {
	query := r.URL.Query()
	small := r.ContentLength >= 0 && r.ContentLength <= smallBody
	return small && r.Method == http.MethodPost && invocation.MatchString(r.URL.EscapedPath()) && query.Get("blocking") == "true" && !query.Has("timeout") &&
		r.Header.Get("Idempotency-Key") == ""
}
