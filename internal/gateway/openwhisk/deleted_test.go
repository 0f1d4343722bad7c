package openwhisk

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/timer"
)

// change is a request below the caller's namespace.
type change struct{ method, path, body string }

// changes are requests that change what is stored for a namespace, in an order in which all can be done after the first two.
var changes = []change{
	{"PUT", "actions/a", `{"exec":{"kind":"python:3","code":"echo"}}`},
	{"PUT", "triggers/t", `{}`},
	{"PUT", "packages/p", `{}`},
	{"PUT", "rules/r", `{"trigger":"/_/t","action":"/_/a"}`},
	{"POST", "rules/r", `{"status":"inactive"}`},
	{"DELETE", "rules/r", ""},
	{"DELETE", "triggers/t", ""},
	{"DELETE", "packages/p", ""},
	{"DELETE", "actions/a", ""},
}

// late does what a request asks for whose caller was found some time ago.
func (w *world) late(caller gateway.Caller, r *http.Request) error {
	w.t.Helper()
	route, vars, err := find(w.api.routes, r.Method, strings.TrimPrefix(r.URL.Path, "/api/v1/"))
	if err != nil {
		w.t.Fatal(err)
	}
	a := w.api
	return route.handle(&call{w: httptest.NewRecorder(), r: r, caller: caller, keys: a.Keys, quotas: a.Quotas, bounds: &a.Bounds, query: r.URL.Query(), vars: vars, registry: a.Registry})
}

// ask is a request with a key or token, "uuid:key".
func ask(auth, method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, namespaces+"_/"+path, strings.NewReader(body))
	uuid, key, _ := strings.Cut(auth, ":")
	r.SetBasicAuth(uuid, key)
	return r
}

// again deletes the tenant and makes it anew.
func (w *world) again() {
	w.t.Helper()
	if _, err := w.api.Registry.DeleteTenant(w.t.Context(), "guest"); err != nil {
		w.t.Fatal(err)
	}
	w.api.Controller.EndNamespace(w.t.Context(), "guest", "The tenant was deleted.")
	if err := w.api.Registry.Erased(w.t.Context(), "guest"); err != nil {
		w.t.Fatal(err)
	}
	auth, err := w.api.Registry.CreateTenant(w.t.Context(), "guest", registry.Quotas{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.auth = auth
}

// TestRequestsOfADeletedTenant: who was found to make a request, a tenant or a function of it, changes and begins nothing when that tenant
// is deleted, also if there is another of that name by then.
func TestRequestsOfADeletedTenant(t *testing.T) {
	w := newWorld(t)
	begun, killed := make(chan *forerun.Run), make(chan struct{})
	defer close(killed)
	w.functions["slow"] = func(r *forerun.Run) forerun.RunEnd {
		begun <- r
		<-killed
		return forerun.RunEnd{}
	}
	w.deploy("slow", "slow")
	w.must(w.request("POST", actions+"slow", ""))
	callers := make(map[string]gateway.Caller)
	run := <-begun
	for auth, sandbox := range map[string]forerun.ActivationID{run.Token: run.Activation, w.auth.String(): ""} {
		r := ask(auth, "GET", "actions", "")
		caller, err := w.api.Keys.Caller(r.WithContext(context.WithValue(r.Context(), sandboxKey{}, sandbox)))
		if err != nil {
			t.Fatal(err)
		}
		callers[auth] = caller
	}
	w.again()
	all := append(slices.Clone(changes), change{"POST", "actions/a", ""}, change{"POST", "actions/a", "{}"})
	for auth, caller := range callers {
		for _, c := range changes {
			w.must(w.request(c.method, namespaces+"_/"+c.path, c.body)) // there is what it could change
			for _, c := range all {
				if err := w.late(caller, ask(auth, c.method, c.path, c.body)); forerun.KindOf(err) != forerun.Unauthorized {
					t.Errorf("caused by %q, %s %s: %v", caller.Cause, c.method, c.path, err)
				}
			}
		}
	}
}

// watched is a store of which is told, once, that it writes.
type watched struct {
	state.Store
	writes func()
}

func (s *watched) Apply(ctx context.Context, t state.Txn) (forerun.Version, error) {
	if writes := s.writes; writes != nil {
		s.writes = nil
		writes()
	}
	return s.Store.Apply(ctx, t)
}

// TestTenantThatGoesAsItChanges: the deletion of a tenant waits for what is just being changed, and erases that, too.
func TestTenantThatGoesAsItChanges(t *testing.T) {
	w := newWorld(t)
	for _, c := range changes {
		gone := make(chan struct{})
		w.store.writes = func() {
			go func() {
				defer close(gone)
				w.api.Controller.EndNamespace(t.Context(), "guest", "The tenant was deleted.")
			}()
			select {
			case <-gone:
				t.Errorf("%s %s comes behind the end of its namespace", c.method, c.path)
			case <-time.After(20 * time.Millisecond):
			}
		}
		w.must(w.request(c.method, namespaces+"_/"+c.path, c.body))
		<-gone
	}
}

// TestRequestsOfASuspendedTenant: who was found to make a request, a tenant or a function of it, changes and begins nothing when that tenant
// is suspended, and is told why. Nor do its timers.
func TestRequestsOfASuspendedTenant(t *testing.T) {
	w := newWorld(t)
	f := timed(t, w, timer.Parameters{"date": inAYear})
	begun, killed := make(chan *forerun.Run), make(chan struct{})
	defer close(killed)
	w.functions["slow"] = func(r *forerun.Run) forerun.RunEnd {
		begun <- r
		<-killed
		return forerun.RunEnd{}
	}
	w.deploy("slow", "slow")
	w.must(w.request("POST", actions+"slow", ""))
	run := <-begun
	refused := func(what string, err error) {
		t.Helper()
		if forerun.KindOf(err) != forerun.Forbidden || !strings.Contains(err.Error(), "guest is suspended: ask the operator") {
			t.Errorf("%s: %v", what, err)
		}
	}
	requests := append(slices.Clone(changes), change{"POST", "actions/echo", ""}, change{"POST", "actions/echo", "{}"}, change{"POST", "triggers/t", ""}, change{"GET", "feed", ""})
	for auth, sandbox := range map[string]forerun.ActivationID{run.Token: run.Activation, w.auth.String(): ""} {
		r := ask(auth, "GET", "actions", "")
		r = r.WithContext(context.WithValue(r.Context(), sandboxKey{}, sandbox))
		caller, err := w.api.Keys.Caller(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.api.Registry.Suspend(t.Context(), "guest"); err != nil {
			t.Fatal(err)
		}
		_, err = w.api.Keys.Caller(r)
		refused("a key", err)
		for _, c := range requests {
			if caller.Cause == "" || c.path != "feed" { // which functions cannot follow
				refused(c.method+" "+c.path, w.late(caller, ask(auth, c.method, c.path, c.body)))
			}
		}
		if _, err := w.api.Registry.Resume(t.Context(), "guest"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.api.Registry.Suspend(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	refused("a timer", w.api.FireTimer(t.Context(), f))
	_, err := w.api.Quotas.Invocation(t.Context(), "guest")
	refused("an invocation by a program", err)
	if r := w.request("GET", namespaces+"_/actions", ""); r.status != http.StatusForbidden || !strings.Contains(r.body, "guest is suspended: ask the operator of this server to resume it.") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if _, err := w.api.Registry.Resume(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	if err := w.api.FireTimer(t.Context(), f); err != nil {
		t.Errorf("after it was resumed: %v", err)
	}
}
