package registry

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

func newTenant(t *testing.T, r *Registry, namespace string) Credentials {
	t.Helper()
	c, err := r.CreateTenant(t.Context(), namespace, Quotas{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func opens(t *testing.T, r *Registry, c Credentials) bool {
	t.Helper()
	_, err := r.Authenticate(t.Context(), c.UUID, c.Key)
	if err != nil && kind(err) != "401" {
		t.Fatal(err)
	}
	return err == nil
}

func TestTenants(t *testing.T) {
	r, store := open(t)
	c := newTenant(t, r, "guest")
	if _, err := r.CreateTenant(t.Context(), "guest", Quotas{}); kind(err) != "409" {
		t.Errorf("a second tenant of that name: %v", err)
	}
	if _, err := r.CreateTenant(t.Context(), "a/b", Quotas{}); kind(err) != "400" {
		t.Errorf("a name with a slash: %v", err)
	}
	more, err := r.AddKey(t.Context(), "guest")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from the cache
		for _, c := range []Credentials{c, more} {
			if tenant, err := r.Authenticate(t.Context(), c.UUID, c.Key); err != nil || tenant.Namespace != "guest" || tenant.Subject != "guest" {
				t.Errorf("%+v, %v", tenant, err)
			}
		}
		for _, wrong := range []Credentials{{c.UUID, more.Key}, {c.UUID, ""}, {c.UUID, c.Key + "x"}, {"", ""}, {"nobody", c.Key}, {strings.Repeat("x", 1000), c.Key}} {
			if tenant, err := r.Authenticate(t.Context(), wrong.UUID, wrong.Key); kind(err) != "401" || tenant.Namespace != "" {
				t.Errorf("%v passed as %+v, %v", wrong, tenant, err)
			}
		}
	}
	for entry, err := range store.Scan(t.Context(), state.Range{Space: space}) {
		if err != nil || strings.Contains(string(entry.Data), c.Key) {
			t.Errorf("the key itself is stored in %s, %v", entry.Name, err)
		}
	}
}

func TestRotatedKeysAreVoid(t *testing.T) {
	r, _ := open(t)
	first, other := newTenant(t, r, "guest"), newTenant(t, r, "other")
	second, err := r.AddKey(t.Context(), "guest")
	if err != nil {
		t.Fatal(err)
	}
	if !opens(t, r, first) || !opens(t, r, second) || !opens(t, r, other) {
		t.Fatal("a key does not open")
	}
	var heard []string
	for name, c := range map[string]Credentials{"first": first, "other": other} {
		r.WhenVoid(c.UUID, func() { heard = append(heard, name) })
	}
	r.WhenVoid(first.UUID, func() { t.Error("who has stopped to listen is told") })()
	rotated, err := r.RotateKeys(t.Context(), "guest")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(heard, []string{"first"}) {
		t.Errorf("told that it is void: %q", heard)
	}
	if opens(t, r, first) || opens(t, r, second) {
		t.Error("an old key still opens")
	}
	if !opens(t, r, rotated) || !opens(t, r, other) {
		t.Error("the new key, or another tenant's, does not open")
	}
	for c, want := range map[Credentials]bool{first: false, rotated: true} {
		if valid, err := r.ValidKey(t.Context(), c.UUID); err != nil || valid != want {
			t.Errorf("the key is valid: %v, %v; want %v", valid, err, want)
		}
	}
	if _, err := r.RotateKeys(t.Context(), "nobody"); kind(err) != "404" {
		t.Errorf("keys of nobody: %v", err)
	}
	if _, err := r.AddKey(t.Context(), "nobody"); kind(err) != "404" {
		t.Errorf("a key for nobody: %v", err)
	}
}

func TestDeletedTenant(t *testing.T) {
	r, _ := open(t)
	c, other := newTenant(t, r, "guest"), newTenant(t, r, "guest2")
	put(t, r, "/guest/a", "one")
	put(t, r, "/guest/p/b", "two")
	put(t, r, "/guest2/a", "kept")
	if !opens(t, r, c) {
		t.Fatal("the key does not open")
	}
	if _, err := r.DeleteTenant(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	if opens(t, r, c) || !opens(t, r, other) {
		t.Error("the deleted tenant's key opens, or the other's does not")
	}
	if _, err := r.Tenant(t.Context(), "guest"); kind(err) != "404" {
		t.Errorf("the tenant: %v", err)
	}
	if _, err := r.CreateTenant(t.Context(), "guest", Quotas{}); kind(err) != "409" {
		t.Errorf("its name is free before it is erased: %v", err)
	}
	if gone, err := r.Gone(t.Context()); err != nil || !slices.Equal(gone, []string{"guest"}) {
		t.Errorf("gone are %v, %v", gone, err)
	}
	if err := r.Erase(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	if err := r.Erased(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	newTenant(t, r, "guest")
	for _, n := range []string{"/guest/a", "/guest/p/b"} {
		if _, err := r.Action(t.Context(), name(n)); kind(err) != "404" {
			t.Errorf("the new tenant has the old one's %s: %v", n, err)
		}
	}
	if n, err := r.CountActions(t.Context(), "guest", ""); n != 0 || err != nil {
		t.Errorf("the new tenant has %d actions, %v", n, err)
	}
	if a, err := r.Action(t.Context(), name("/guest2/a")); err != nil || a.Exec.Code != "kept" {
		t.Errorf("the other tenant's action: %v", err)
	}
	if _, err := r.DeleteTenant(t.Context(), "nobody"); kind(err) != "404" {
		t.Errorf("nobody: %v", err)
	}
}

func TestQuotas(t *testing.T) {
	r, _ := open(t)
	number := func(n int) *int { return &n }
	if _, err := r.CreateTenant(t.Context(), "guest", Quotas{InvocationsPerMinute: number(-1)}); kind(err) != "400" {
		t.Errorf("a negative quota: %v", err)
	}
	if _, err := r.CreateTenant(t.Context(), "guest", Quotas{InvocationsPerMinute: number(5)}); err != nil {
		t.Fatal(err)
	}
	want := DefaultLimits()
	want.InvocationsPerMinute = 5
	for range 2 {
		if tenant, err := r.Tenant(t.Context(), "guest"); err != nil || tenant.Limits != want {
			t.Errorf("%+v, %v; want %+v", tenant.Limits, err, want)
		}
	}
	want.StoredActions = 7
	if tenant, err := r.SetQuotas(t.Context(), "guest", Quotas{StoredActions: number(7)}); err != nil || tenant.Limits != want {
		t.Errorf("changed to %+v, %v; want %+v", tenant.Limits, err, want)
	}
	if tenant, err := r.Tenant(t.Context(), "guest"); err != nil || tenant.Limits != want {
		t.Errorf("afterwards %+v, %v; want %+v", tenant.Limits, err, want)
	}
	if _, err := r.SetQuotas(t.Context(), "guest", Quotas{FiresPerMinute: number(NoLimit + 1)}); kind(err) != "400" {
		t.Errorf("too large a quota: %v", err)
	}
	if _, err := r.SetQuotas(t.Context(), "nobody", Quotas{}); forerun.KindOf(err) != forerun.NotFound {
		t.Errorf("nobody: %v", err)
	}
}

// TestQuotaOfActions: the number of actions is bounded here. The store bounds the bytes of all entities.
func TestQuotaOfActions(t *testing.T) {
	r, _ := open(t)
	newTenant(t, r, "guest")
	newTenant(t, r, "other")
	put(t, r, "a", "x")
	two := 2
	if _, err := r.SetQuotas(t.Context(), "guest", Quotas{StoredActions: &two}); err != nil {
		t.Fatal(err)
	}
	try := func(n string, want string) {
		t.Helper()
		if _, err := r.PutAction(t.Context(), name(n), true, code("y")); kind(err) != want {
			t.Errorf("%s: %v, want %s", n, err, want)
		}
	}
	remove := func(n string) {
		t.Helper()
		if _, err := r.DeleteAction(t.Context(), name(n)); err != nil {
			t.Fatal(err)
		}
	}
	try("a", "none")
	try("b", "none")
	try("c", "429")
	try("/other/c", "none")
	try("a", "none") // replacing is possible where adding is not
	remove("b")
	try("c", "none")
	remove("a")
	pack(t, r, name("p/a"))
	try("/guest/p/a", "none")
	try("a", "429")
	if _, err := r.DeletePackage(t.Context(), name("p"), true); err != nil {
		t.Fatal(err)
	}
	try("a", "none") // what went with its package counts no more
	none := NoLimit
	if _, err := r.SetQuotas(t.Context(), "guest", Quotas{StoredActions: &none}); err != nil {
		t.Fatal(err)
	}
	try("d", "none")
	if _, err := r.SetQuotas(t.Context(), "guest", Quotas{StoredActions: &two}); err != nil {
		t.Fatal(err)
	}
	try("f", "429")
	try("d", "none")
}

// TestAllowance: how much a tenant may store follows its quota, without a look at the store.
func TestAllowance(t *testing.T) {
	r, store := open(t)
	want := func(r *Registry, namespace string, want state.Allowance) {
		t.Helper()
		if got := r.Allowance(namespace); got != want {
			t.Errorf("%s may store %+v, want %+v", namespace, got, want)
		}
	}
	want(r, "guest", state.Allowance{Bytes: -1}) // there is no such tenant
	newTenant(t, r, "guest")
	want(r, "guest", state.Allowance{Bytes: -1, Share: 50})
	two := 2
	if tenant, err := r.SetQuotas(t.Context(), "guest", Quotas{StoredMegabytes: &two}); err != nil || tenant.Limits.StoredShare != 0 {
		t.Errorf("%+v, %v", tenant, err)
	}
	want(r, "guest", state.Allowance{Bytes: 2 << 20})
	if _, err := r.AddKey(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	want(r, "guest", state.Allowance{Bytes: 2 << 20})
	again := Open(store, DefaultLimits(), nil)
	defer again.Close()
	if err := again.LoadTenants(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(again, "guest", state.Allowance{Bytes: 2 << 20})
	none := NoLimit
	if _, err := r.SetQuotas(t.Context(), "guest", Quotas{StoredMegabytes: &none}); err != nil {
		t.Fatal(err)
	}
	want(r, "guest", state.Allowance{Bytes: -1})
	if _, err := r.DeleteTenant(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	want(r, "guest", state.Allowance{Bytes: -1})
}

// TestOwner: each record that a tenant's entities have is the tenant's.
func TestOwner(t *testing.T) {
	for _, kind := range entityRecords() {
		want := state.Entities
		if kind == "code" {
			want = state.Code
		}
		if tenant, part, ok := Owner([]byte(space), []byte(kind+"/guest/p/a")); !ok || string(tenant) != "guest" || part != want {
			t.Errorf("a record %s is %q's %v, %t", kind, tenant, part, ok)
		}
	}
	for _, record := range []string{tenantRecord("guest"), "key/" + "u", goneRecord("guest"), "in-turn"} {
		if tenant, _, ok := Owner([]byte(space), []byte(record)); !ok || len(tenant) > 0 {
			t.Errorf("%s is %q's, %t", record, tenant, ok)
		}
	}
	if _, _, ok := Owner([]byte("state/guest"), []byte("code/guest/p/a")); ok {
		t.Error("a record of another space is the registry's")
	}
}

// BenchmarkTenant is what each invocation pays to learn its limits.
func BenchmarkTenant(b *testing.B) {
	store, err := embedded.Open("registry", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		b.Fatal(err)
	}
	r := Open(store, DefaultLimits(), nil)
	defer store.Close()
	defer r.Close()
	if _, err := r.CreateTenant(b.Context(), "guest", Quotas{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.Tenant(b.Context(), "guest"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDefaultsOfTenants: what docs/reference/limits.md promises.
func TestDefaultsOfTenants(t *testing.T) {
	if d := DefaultLimits(); d.ConcurrentInvocations != 1000 || d.QueuedInvocations != 1000 || d.InvocationsPerMinute != NoLimit || d.TimedTriggers != 1000 || d.StoredShare != 50 {
		t.Errorf("a tenant has %+v", d)
	}
}
