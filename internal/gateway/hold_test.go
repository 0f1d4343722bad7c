package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// noting is a Holder that notes why somebody was held.
type noting struct{ why string }

func (n *noting) Hold(_ context.Context, _ state.Asker, why *forerun.Reason, _ func()) error {
	n.why = why.String()
	return nil
}

// TestWhyHeld: what only reads waits for its turn, too, but not because it cannot be undone.
func TestWhyHeld(t *testing.T) {
	var n noting
	ahead := func(context.Context) state.Asker { return state.Asker{Activation: "a"} }
	handler := HoldEffects(http.NotFoundHandler(), ahead, nil, &n)
	for method, want := range map[string]string{
		http.MethodGet: "api_read(GET)",
		http.MethodPut: "api_effect(PUT)",
	} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/api/v1/namespaces/_/actions/x", nil))
		if n.why != want {
			t.Errorf("a %s was held since %q", method, n.why)
		}
	}
}
