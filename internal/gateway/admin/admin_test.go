package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

const operator = "operator:0123456789abcdef"

// world is a server's operator's API, without anything that runs functions.
type world struct {
	*testing.T
	api     *API
	door    http.Handler
	store   *embedded.Store
	changed []string // what was told of keys
	ended   []string // whose sandboxes were ended
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	tenants, log := registry.Open(store, registry.DefaultLimits(), nil), activation.Open(store, false)
	w := &world{T: t, store: store}
	w.api = New(Config{
		Operator: operator, Registry: tenants, Activations: log, Quotas: gateway.NewQuotas(tenants, nil, nil),
		Controller:   controller.New(controller.Config{Actions: tenants, Records: log}),
		EndSandboxes: func(namespace string) { w.ended = append(w.ended, namespace) },
		EraseState:   func(ctx context.Context, namespace string) error { return store.EraseSpace(ctx, "state/"+namespace) },
		KeysChanged: func(namespace, auth string) error {
			w.changed = append(w.changed, namespace+" "+auth)
			return nil
		},
		Stored: store.Stored, Pairs: store.Pairs, Version: "v1", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	w.door = gateway.New(gateway.Config{Admin: w.api, API: http.NotFoundHandler(), Metrics: http.NotFoundHandler(), Gate: gateway.NewGate(), Log: w.api.Log})
	t.Cleanup(func() {
		tenants.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// ask makes a request as somebody.
func (w *world) ask(auth, method, path, body string) (int, string) {
	w.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(w.Context(), method, Prefix+path, content)
	if user, key, ok := strings.Cut(auth, ":"); ok {
		r.SetBasicAuth(user, key)
	}
	recorder := httptest.NewRecorder()
	w.door.ServeHTTP(recorder, r)
	return recorder.Code, recorder.Body.String()
}

// want makes a request as the operator, and returns the answer, which must have a status.
func (w *world) want(status int, method, path, body string) (document tenantDocument) {
	w.Helper()
	got, answer := w.ask(operator, method, path, body)
	if got != status {
		w.Fatalf("%s %s is answered %d %s, not %d", method, path, got, answer, status)
	}
	if status == http.StatusOK && json.Unmarshal([]byte(answer), &document) != nil {
		w.Fatalf("%s %s: %s", method, path, answer)
	}
	return document
}

func (w *world) opens(auth string) bool {
	w.Helper()
	uuid, key, _ := strings.Cut(auth, ":")
	_, err := w.api.Registry.Authenticate(w.Context(), uuid, key)
	return err == nil
}

func TestWhoMayOperate(t *testing.T) {
	w := newWorld(t)
	tenant := w.want(200, "PUT", "tenants/ada", "").Auth
	for _, auth := range []string{"", ":", "operator:", ":0123456789abcdef", "operator:0123456789abcdeF", operator + " ", tenant} {
		for _, request := range []string{"GET tenants", "GET tenants/ada", "PUT tenants/bob", "DELETE tenants/ada", "POST tenants/ada/rotate", "POST tenants/ada/suspend", "POST tenants/ada/resume", "GET backup", "GET speculation", "PUT speculation", "GET cache", "PUT cache", "GET nothing"} {
			method, path, _ := strings.Cut(request, " ")
			if status, answer := w.ask(auth, method, path, ""); status != 401 || strings.Contains(answer, "ada") {
				t.Errorf("%s as %q: %d %s", request, auth, status, answer)
			}
		}
	}
	recorder := httptest.NewRecorder()
	w.door.ServeHTTP(recorder, httptest.NewRequestWithContext(w.Context(), http.MethodGet, Prefix+"tenants", nil))
	if challenge := recorder.Header().Get("WWW-Authenticate"); challenge == "" || strings.HasPrefix(challenge, "Basic") {
		t.Errorf("a browser is asked for a key with %q", challenge)
	}
	w.api.Operator = "" // of a server that has none
	if status, _ := w.ask(":", "GET", "tenants", ""); status != 401 {
		t.Errorf("without an operator everybody is one: %d", status)
	}
}

func TestTenants(t *testing.T) {
	w := newWorld(t)
	before := time.Now().UnixMilli()
	ada := w.want(200, "PUT", "tenants/ada", `{"quotas":{"storedActions":5}}`)
	if ada.Namespace != "ada" || !w.opens(ada.Auth) || ada.Created < before || ada.Limits.StoredActions != 5 || ada.Limits.ConcurrentInvocations != 1000 {
		t.Errorf("%+v", ada)
	}
	w.want(409, "PUT", "tenants/ada", "")
	w.want(404, "PUT", "tenants/bob?overwrite=true", "")
	w.want(400, "PUT", "tenants/ada?overwrite=true", `{"quotas":{"storedActions":-1}}`)
	w.want(400, "PUT", "tenants/ada?overwrite=true", `[`)
	w.want(400, "PUT", "tenants/bob", `{"quotas":{"storedActions":"many"}}`)
	w.want(400, "PUT", "tenants/bob", `{"quotas":{"storedAction":1}}`)
	w.want(400, "PUT", "tenants/bob", `{"quotas":{"storedactions":1}}`)
	w.want(400, "PUT", "tenants/bob", `{"quotas":{"storedActions":1,"storedActions":2}}`)
	w.want(400, "PUT", "tenants/bob", `{"quotas":{}} {}`)
	w.want(413, "PUT", "tenants/bob", strings.Repeat(" ", maxBody+1))
	for _, name := range []string{"_", "whisk", "whisk.system", "a%2Fb", "a%00b", strings.Repeat("x", 300)} {
		if status, answer := w.ask(operator, "PUT", "tenants/"+name, ""); status != 400 && status != 413 {
			t.Errorf("the name %q: %d %s", name, status, answer)
		}
	}
	changed := w.want(200, "PUT", "tenants/ada?overwrite=true", `{"quotas":{"firesPerMinute":3}}`)
	if changed.Auth != "" || changed.Limits.StoredActions != 5 || changed.Limits.FiresPerMinute != 3 {
		t.Errorf("%+v", changed)
	}
	if status, list := w.ask(operator, "GET", "tenants", ""); status != 200 || strings.Count(list, "namespace") != 1 || strings.Contains(list, "auth") {
		t.Errorf("%d %s", status, list)
	}
	w.want(404, "GET", "tenants/bob", "")
	w.want(404, "GET", "things", "")
	w.want(404, "POST", "tenants/bob/rotate", "")
	w.want(404, "POST", "tenants/bob/suspend", "")
	w.want(404, "POST", "tenants/bob/resume", "")
	w.want(400, "POST", "tenants/whisk.system/suspend", "")
	w.want(404, "DELETE", "tenants/bob", "")
}

// TestMethods: a method that a path does not have is told from a path that is not there.
func TestMethods(t *testing.T) {
	w := newWorld(t)
	for request, want := range map[string]string{
		"DELETE tenants": "GET, HEAD", "POST tenants/ada": "GET, HEAD, PUT, DELETE", "GET tenants/ada/rotate": "POST", "PUT backup": "GET, HEAD", "DELETE speculation": "GET, HEAD, PUT",
	} {
		method, path, _ := strings.Cut(request, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, Prefix+path, nil)
		user, key, _ := strings.Cut(operator, ":")
		r.SetBasicAuth(user, key)
		answer := httptest.NewRecorder()
		w.door.ServeHTTP(answer, r)
		if answer.Code != 405 || answer.Header().Get("Allow") != want || !strings.Contains(answer.Body.String(), "supported methods: "+want+`"`) {
			t.Errorf("%s: %d %s, allowed %s", request, answer.Code, answer.Body, answer.Header().Get("Allow"))
		}
		if status, _ := w.ask("", method, path, ""); status != 401 {
			t.Errorf("%s without the key: %d", request, status)
		}
	}
	w.want(404, "DELETE", "things", "")
}

// TestQueryParameters: what the API does not know is refused by name.
func TestQueryParameters(t *testing.T) {
	w := newWorld(t)
	for _, c := range [][2]string{{"GET", "tenants?limit=1"}, {"PUT", "tenants/x?force=true"}, {"GET", "backup?x"}, {"GET", "speculation?=1"}, {"GET", "speculation?%zz"}} {
		if status, answer := w.ask(operator, c[0], c[1], ""); status != 400 || !strings.Contains(answer, "query") {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, answer)
		}
	}
	if status, answer := w.ask(operator, "PUT", "tenants/x?overwrite=false", ""); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

func TestKillSwitch(t *testing.T) {
	w := newWorld(t)
	ask := func(method, body string, status int, want string) {
		t.Helper()
		if got, answer := w.ask(operator, method, "speculation", body); got != status || !strings.Contains(strings.ReplaceAll(answer, " ", ""), want) {
			t.Errorf("%s %s: %d %s", method, body, got, answer)
		}
	}
	document := func(mode string, kept, on bool) string {
		return fmt.Sprintf(`{"mode":%q,"settings":"%s;depth=0;band=0;least=0s","switch":%t,"on":%t}`, mode, mode, kept, on)
	}
	ask("GET", "", 200, document("off", true, false))
	kept := func(want bool) {
		t.Helper()
		if may, err := w.api.Registry.MayAhead(t.Context()); may != want || err != nil {
			t.Errorf("the next server may run ahead: %v, %v", may, err)
		}
	}
	ask("PUT", `{"on":false}`, 200, document("off", false, false))
	kept(false)
	ask("PUT", `{"on":true}`, 200, document("off", true, false))
	kept(true) // by a server that is started otherwise
	w.api.Controller.Speculation.Mode = speculate.All
	ask("GET", "", 200, document("all", true, true))
	ask("PUT", `{"on":false}`, 200, document("all", false, false))
	kept(false)
	ask("GET", "", 200, `"on":false`)
	ask("PUT", `{"on":true}`, 200, `"on":true`)
	kept(true)
	for _, body := range []string{"", "{}", "off", `{"on":1}`, `{"of":true}`, `{"on":false}{"on":true}`, `{"on":false}]`} {
		ask("PUT", body, 400, `Thecontentmustbe{\"on\":true}or{\"on\":false}`)
	}
	for body, why := range map[string]string{
		`{"On":false}`: `themember\"On\"isnotknown`, `{"on":false,"on":true}`: `themember\"on\"comestwice`, `{"on":true,"on":false}`: `twice`,
		`{"on":"no"}`: `\"/on\"hasthewrongtype`, `[]`: "itisnotaJSONobject", `{"on":`: "unexpectedEOFatbyte6",
	} {
		ask("PUT", body, 400, why)
	}
	ask("GET", "", 200, `"on":true`)
	ask("PUT", " {\"on\":true}\n", 200, `"on":true`)
}

// TestSwitchThatCannotBeKept: off is off all the same, and the operator is told that it does not last; on stays off.
func TestSwitchThatCannotBeKept(t *testing.T) {
	w := newWorld(t)
	w.api.Controller.Speculation.Mode = speculate.All
	var log strings.Builder
	w.api.Log = slog.New(slog.NewTextHandler(&log, nil))
	broken, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.api.letAhead(broken, false); err == nil || !strings.Contains(err.Error(), "only until the server starts again") || w.api.Controller.MayAhead() {
		t.Errorf("off: %v, %v", err, w.api.Controller.MayAhead())
	}
	if !strings.Contains(log.String(), "on=false") {
		t.Errorf("off is in force, and logged is %q", log.String())
	}
	if err := w.api.letAhead(broken, true); err == nil || w.api.Controller.MayAhead() {
		t.Errorf("on: %v, %v", err, w.api.Controller.MayAhead())
	}
	if strings.Contains(log.String(), "on=true") {
		t.Errorf("on is not in force, and logged is %q", log.String())
	}
}

func TestRotate(t *testing.T) {
	w := newWorld(t)
	old := w.want(200, "PUT", "tenants/ada", "").Auth
	now := w.want(200, "POST", "tenants/ada/rotate", "").Auth
	if w.opens(old) || !w.opens(now) {
		t.Error("the old key opens, or the new one does not")
	}
	if !slices.Equal(w.changed, []string{"ada " + now}) {
		t.Errorf("what was told: %q", w.changed)
	}
}

// TestSuspend: all that runs for a tenant is ended, each time, and what it has is the same when it is resumed.
func TestSuspend(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.want(200, "PUT", "tenants/ada", "").Auth, w.want(200, "PUT", "tenants/bob", "").Auth
	before := time.Now().UnixMilli()
	suspended := w.want(200, "POST", "tenants/ada/suspend", "")
	if suspended.Suspended < before || w.opens(ada) || !w.opens(bob) {
		t.Errorf("%+v; the key opens: %v; another's does: %v", suspended, w.opens(ada), w.opens(bob))
	}
	if again := w.want(200, "POST", "tenants/ada/suspend", ""); again.Suspended != suspended.Suspended || !slices.Equal(w.ended, []string{"ada", "bob", "ada", "ada"}) {
		t.Errorf("%+v; ended were the sandboxes of %q", again, w.ended)
	}
	if status, list := w.ask(operator, "GET", "tenants", ""); status != 200 || strings.Count(list, "\"suspended\"") != 1 {
		t.Errorf("%d %s", status, list)
	}
	w.want(200, "PUT", "tenants/ada?overwrite=true", `{"quotas":{"firesPerMinute":3}}`)
	if w.opens(ada) {
		t.Error("a change of quotas resumes a tenant")
	}
	if resumed := w.want(200, "POST", "tenants/ada/resume", ""); resumed.Suspended != 0 || !w.opens(ada) {
		t.Errorf("%+v; the key opens: %v", resumed, w.opens(ada))
	}
	w.want(200, "POST", "tenants/ada/suspend", "")
	w.want(200, "DELETE", "tenants/ada", "")
	if next := w.want(200, "PUT", "tenants/ada", ""); next.Suspended != 0 || !w.opens(next.Auth) {
		t.Errorf("the next tenant of the name: %+v", next)
	}
}

// TestRotateForWhoLeaves: once begun, it is done and told, also if the client goes meanwhile.
func TestRotateForWhoLeaves(t *testing.T) {
	w := newWorld(t)
	old := w.want(200, "PUT", "tenants/ada", "").Auth
	gone, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(gone, http.MethodPost, Prefix+"tenants/ada/rotate", nil)
	r.SetBasicAuth("operator", "0123456789abcdef")
	answer := httptest.NewRecorder() // which who has closed the sending half alone reads
	w.door.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"auth"`) {
		t.Errorf("it is answered %d %s", answer.Code, answer.Body)
	}
	if w.opens(old) || len(w.changed) != 1 || !w.opens(strings.TrimPrefix(w.changed[0], "ada ")) {
		t.Errorf("the old key opens: %v; what was told: %q", w.opens(old), w.changed)
	}
}

// TestRotateThatCannotBeTold: the new key, which is nowhere else in the clear, is the answer, also if the settings of the clients cannot be written.
func TestRotateThatCannotBeTold(t *testing.T) {
	w := newWorld(t)
	old := w.want(200, "PUT", "tenants/ada", "").Auth
	var log strings.Builder
	w.api.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.api.KeysChanged = func(string, string) error { return errors.New("the disk is full") }
	now := w.want(200, "POST", "tenants/ada/rotate", "").Auth
	if w.opens(old) || !w.opens(now) {
		t.Error("the old key opens, or the new one does not")
	}
	if !strings.Contains(log.String(), "the disk is full") || strings.Contains(log.String(), now) {
		t.Errorf("logged is %q", log.String())
	}
}

// fill gives a tenant something of everything.
func (w *world) fill(namespace string) {
	w.Helper()
	name := forerun.Name{Namespace: namespace, Package: "p", Entity: "a"}
	for collection, entity := range map[registry.Collection]string{registry.Packages: "p", registry.Triggers: "t"} {
		_, err := w.api.Registry.PutEntity(w.Context(), collection, forerun.Name{Namespace: namespace, Entity: entity}, true, func(*registry.Entity) (*registry.Entity, error) {
			return new(registry.Entity), nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	_, err := w.api.Registry.PutAction(w.Context(), name, false, func(*forerun.Action) (*forerun.Action, error) {
		return &forerun.Action{Exec: forerun.Exec{Kind: "python:3", Code: "code"}}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	rule := &registry.Entity{Trigger: forerun.Name{Namespace: namespace, Entity: "t"}, Action: name}
	_, _, err = w.api.Registry.PutRule(w.Context(), forerun.Name{Namespace: namespace, Entity: "r"}, false, func(*registry.Entity) (*registry.Entity, error) {
		return rule, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	err = w.api.Registry.PutTimer(w.Context(), forerun.Name{Namespace: namespace, Entity: "t"}, func([]byte) ([]byte, error) { return []byte("{}"), nil })
	if err != nil {
		w.Fatal(err)
	}
	if err := w.api.Activations.Put(w.Context(), &forerun.Activation{ID: forerun.NewActivationID(time.Now()), Namespace: namespace, Action: name, Start: time.Now()}); err != nil {
		w.Fatal(err)
	}
	set := state.Command{Space: "state/" + namespace, Args: [][]byte{[]byte("RPUSH"), []byte("list"), []byte("x")}}
	if reply, _, err := w.store.Do(w.Context(), set); err != nil || reply.Kind == state.Error {
		w.Fatal(err, reply)
	}
}

// records lists what the store holds of a namespace.
func (w *world) records(namespace string) (names []string) {
	w.Helper()
	for _, space := range []string{"registry", "activations"} {
		for entry, err := range w.store.Scan(w.Context(), state.Range{Space: space}) {
			if err != nil {
				w.Fatal(err)
			}
			if strings.Contains(entry.Name+"/", "/"+namespace+"/") || strings.Contains(string(entry.Data), `"`+namespace+`"`) {
				names = append(names, space+" "+entry.Name)
			}
		}
	}
	records, err := w.store.Get(w.Context(), forerun.Key{Space: "state/" + namespace, Name: "list"})
	if err != nil {
		w.Fatal(err)
	}
	if records[0].Version != 0 {
		names = append(names, "state list")
	}
	return names
}

func TestDeleteLeavesNothing(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.want(200, "PUT", "tenants/ada", "").Auth, w.want(200, "PUT", "tenants/bob", "").Auth
	w.fill("ada")
	w.fill("bob")
	bobs := w.records("bob")
	pkg := forerun.Name{Namespace: "ada", Entity: "p"}
	if _, err := w.api.Registry.Entity(t.Context(), registry.Packages, pkg); err != nil { // it is in memory now
		t.Fatal(err)
	}
	w.want(200, "DELETE", "tenants/ada", "")
	if _, err := w.api.Registry.Entity(t.Context(), registry.Packages, pkg); forerun.KindOf(err) != forerun.NotFound {
		t.Errorf("ada's package: %v", err)
	}
	if left := w.records("ada"); len(left) > 0 {
		t.Errorf("of ada is left %q", left)
	}
	if now := w.records("bob"); !slices.Equal(now, bobs) {
		t.Errorf("bob had %q and now %q", bobs, now)
	}
	if w.opens(ada) || !w.opens(bob) {
		t.Error("ada's key opens, or bob's does not")
	}
	if !slices.Equal(w.changed, []string{"ada "}) {
		t.Errorf("what was told: %q", w.changed)
	}
	if want := []string{"ada", "bob", "ada"}; !slices.Equal(w.ended, want) {
		t.Errorf("ended are the sandboxes of %q, not %q", w.ended, want)
	}
	w.fill("ada") // a request that was late
	w.want(200, "PUT", "tenants/ada", "")
	if n, err := w.api.Registry.CountActions(t.Context(), "ada", ""); n != 0 || err != nil {
		t.Errorf("the new ada has %d actions of the old one, %v", n, err)
	}
}

// TestResume has a server die when it has made a tenant's keys void and erased nothing.
func TestResume(t *testing.T) {
	w := newWorld(t)
	w.want(200, "PUT", "tenants/ada", "")
	w.fill("ada")
	if _, err := w.api.Registry.DeleteTenant(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if err := w.api.FinishDeletions(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := w.records("ada"); len(left) > 0 {
		t.Errorf("of ada is left %q", left)
	}
	w.want(200, "PUT", "tenants/ada", "")
}

// TestCacheSwitch: the operator's switch holds for the controller and for the servers to come.
func TestCacheSwitch(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		body   string
		status int
		may    bool
	}{
		{`{"on":false}`, 200, false}, {`{"on":false}`, 200, false}, {`{}`, 400, false}, {`{"on":1}`, 400, false}, {`{"on":true}`, 200, true},
	} {
		status, answer := w.ask(operator, "PUT", "cache", c.body)
		kept, err := w.api.Registry.MayCache(t.Context())
		if status != c.status || kept != c.may || err != nil || w.api.Controller.MayCache() != c.may {
			t.Errorf("%s: %d %s; kept %v, %v", c.body, status, answer, kept, err)
		}
		if may, err := w.api.Registry.MayAhead(t.Context()); !may || err != nil {
			t.Errorf("it switched speculation: %v", err)
		}
	}
	if status, answer := w.ask(operator, "GET", "cache", ""); status != 200 || !strings.Contains(strings.ReplaceAll(answer, " ", ""), `"started":false,"switch":true,"on":false`) {
		t.Errorf("%d %s", status, answer)
	}
}
