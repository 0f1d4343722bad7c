package main

import (
	"testing"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

func TestWhatIsFilledIsFound(t *testing.T) {
	f := filling{store: t.TempDir(), namespace: "guest", actions: 3, activations: 250}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	store, err := embedded.Open(f.store, embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := registry.Open(store, registry.DefaultLimits(), nil)
	defer r.Close()
	if n, err := r.CountActions(t.Context(), "guest", ""); n != 3 || err != nil {
		t.Errorf("%d actions, %v", n, err)
	}
	log := activation.Open(store, false)
	if n, err := log.Count(t.Context(), "guest", activation.Query{Name: "stored-0"}); n != 84 || err != nil {
		t.Errorf("%d activations of the first action, %v", n, err)
	}
	for latest, err := range log.Whole(t.Context(), "guest", activation.Query{Limit: 1}) {
		if err != nil || string(latest.Result) != `{"x":249}` {
			t.Errorf("the latest: %v, %v", latest, err)
		}
	}
}
