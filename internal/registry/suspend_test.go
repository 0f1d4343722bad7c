package registry

import (
	"slices"
	"testing"
)

// TestSuspend: the keys of a suspended tenant open nothing, over a restart and a rotation, too, and are the same again when it is resumed.
func TestSuspend(t *testing.T) {
	r, store := open(t)
	first, other := newTenant(t, r, "guest"), newTenant(t, r, "other")
	second, err := r.AddKey(t.Context(), "guest")
	if err != nil {
		t.Fatal(err)
	}
	check := func(r *Registry, c Credentials, want string) {
		t.Helper()
		tenant, err := r.Authenticate(t.Context(), c.UUID, c.Key)
		if kind(err) != want || tenant.Namespace == "" {
			t.Errorf("the key of %q is accepted with %v, not %s", tenant.Namespace, err, want)
		}
		if _, err := r.ValidKey(t.Context(), c.UUID); kind(err) != want {
			t.Errorf("the key of %q is still valid with %v, not %s", tenant.Namespace, err, want)
		}
	}
	check(r, first, "none")
	var heard []string
	for name, c := range map[string]Credentials{"first": first, "second": second, "other": other} {
		r.WhenVoid(c.UUID, func() { heard = append(heard, name) })
	}
	suspended, err := r.Suspend(t.Context(), "guest")
	if err != nil || suspended.Suspended.IsZero() {
		t.Fatalf("%+v, %v", suspended, err)
	}
	if slices.Sort(heard); !slices.Equal(heard, []string{"first", "second"}) {
		t.Errorf("told that their key opens nothing: %q", heard)
	}
	check(r, first, "403")
	check(r, second, "403")
	check(r, other, "none")
	if _, err := r.Authenticate(t.Context(), first.UUID, second.Key); kind(err) != "401" {
		t.Errorf("a wrong key is told more: %v", err)
	}
	if again, err := r.Suspend(t.Context(), "guest"); err != nil || !again.Suspended.Equal(suspended.Suspended) {
		t.Errorf("suspended again: %+v, %v", again, err)
	}
	rotated, err := r.RotateKeys(t.Context(), "guest")
	if err != nil {
		t.Fatal(err)
	}
	check(r, rotated, "403")
	restarted := Open(store, DefaultLimits(), nil)
	defer restarted.Close()
	check(restarted, rotated, "403")
	for range 2 { // also one who is active
		if resumed, err := r.Resume(t.Context(), "guest"); err != nil || !resumed.Suspended.IsZero() {
			t.Errorf("resumed: %+v, %v", resumed, err)
		}
		check(r, rotated, "none")
	}
	for name, want := range map[string]string{"nobody": "404", System: "400"} {
		if _, err := r.Suspend(t.Context(), name); kind(err) != want {
			t.Errorf("%s is suspended: %v", name, err)
		}
		if _, err := r.Resume(t.Context(), name); kind(err) != want {
			t.Errorf("%s is resumed: %v", name, err)
		}
	}
}
