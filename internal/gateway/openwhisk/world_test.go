package openwhisk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/feed"
	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

// world is a whole server but for its sandboxes: the code of an action is the name of a Go function of the test.
type world struct {
	t         testing.TB
	door      http.Handler
	api       *API
	store     *watched
	feed      *feed.Feed
	auth      registry.Credentials
	functions map[string]func(run *forerun.Run) forerun.RunEnd
	sandbox   forerun.ActivationID // the activation out of whose sandbox requests come; "" for a client
}

// sandboxKey is where the context of a request says out of which activation's sandbox it comes.
type sandboxKey struct{}

func running(ctx context.Context) forerun.ActivationID {
	id, _ := ctx.Value(sandboxKey{}).(forerun.ActivationID)
	return id
}

// as is the world for a function that runs.
func (w *world) as(r *forerun.Run) *world {
	inside := *w
	inside.sandbox = r.Activation
	inside.auth.UUID, inside.auth.Key, _ = strings.Cut(r.Token, ":")
	return &inside
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldIn(t, "data", embedded.Options{FS: vfs.NewMem()})
}

func newWorldIn(t testing.TB, folder string, o embedded.Options) *world {
	t.Helper()
	store, err := embedded.Open(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, feed: feed.New(), functions: map[string]func(*forerun.Run) forerun.RunEnd{"echo": echo, "fail": fail, "crash": crash}}
	w.store = &watched{Store: store}
	keyring, err := registry.ParseKeyring(registry.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	tenants, log := registry.Open(w.store, registry.DefaultLimits(), keyring), activation.Open(store, false)
	c := controller.New(controller.Config{Worker: w, Actions: tenants, Records: log, State: store, Bridge: new(controller.Bridge), Cache: true, Feed: w.feed})
	w.api = New(Config{
		Registry: tenants, Activations: log, Controller: c, Feed: w.feed, Keys: &gateway.Keys{Tenants: tenants, Activations: c, Running: running}, Quotas: gateway.NewQuotas(tenants, nil, nil),
		Kinds: []string{"python:3", "python:default"}, Version: "test",
		CheckFlow: func(a *forerun.Action) error { _, err := flow.Of(a); return err },
	})
	w.door = gateway.New(gateway.Config{
		API: w.api, Metrics: http.NotFoundHandler(), Gate: gateway.NewGate(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if w.auth, err = tenants.CreateTenant(t.Context(), "guest", registry.Quotas{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close(context.Background())
		tenants.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// Run implements forerun.Worker.
func (w *world) Run(r *forerun.Run) {
	go func() {
		r.Events.Started(r.Activation, time.Now(), 0)
		end := w.functions[r.Action.Exec.Code](r)
		end.At, end.Reach = time.Now(), forerun.Inside
		r.Events.Ended(r.Activation, end)
	}()
}

// Await implements forerun.Worker.
func (w *world) Await(_, _ forerun.ActivationID) {}

// Promote implements forerun.Worker.
func (w *world) Promote(forerun.ActivationID) {}

// Squash implements forerun.Worker.
func (w *world) Squash(forerun.ActivationID) {}

func echo(r *forerun.Run) forerun.RunEnd {
	return forerun.RunEnd{Result: r.Input, Logs: []string{"2026-11-21T00:00:00.000000000Z stdout: hello"}}
}

func fail(*forerun.Run) forerun.RunEnd {
	return forerun.RunEnd{Status: forerun.ApplicationError, Result: json.RawMessage(`{"error":"no"}`)}
}

func crash(*forerun.Run) forerun.RunEnd {
	end := forerun.Failure(forerun.DeveloperError, "The action did not produce a valid response and exited unexpectedly.")
	return forerun.RunEnd{Status: end.Status, Result: end.Value}
}

// reply is what a request got.
type reply struct {
	status int
	body   string
	header http.Header
}

// request makes a request with the tenant's key; headers are pairs.
func (w *world) request(method, path, body string, headers ...string) reply {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(context.WithValue(context.Background(), sandboxKey{}, w.sandbox), method, path, content)
	r.SetBasicAuth(w.auth.UUID, w.auth.Key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	recorder := httptest.NewRecorder()
	w.door.ServeHTTP(recorder, r)
	return reply{recorder.Code, recorder.Body.String(), recorder.Header()}
}

// deploy puts an action that runs a Go function.
func (w *world) deploy(name, function string, annotations ...string) {
	w.t.Helper()
	var list []string
	for i := 0; i < len(annotations); i += 2 {
		list = append(list, fmt.Sprintf(`{"key":%q,"value":%s}`, annotations[i], annotations[i+1]))
	}
	body := fmt.Sprintf(`{"exec":{"kind":"python:3","code":%q},"annotations":[%s]}`, function, strings.Join(list, ","))
	if r := w.request("PUT", actions+name, body); r.status != http.StatusOK {
		w.t.Fatalf("deploying %s: %d %s", name, r.status, r.body)
	}
}

// pack puts a package.
func (w *world) pack(name, body string) {
	w.t.Helper()
	w.must(w.request("PUT", namespaces+"_/packages/"+name+"?overwrite=true", body))
}

// must ends the test unless a request was answered with success.
func (w *world) must(r reply) reply {
	w.t.Helper()
	if r.status >= 300 {
		w.t.Fatalf("%d %s", r.status, r.body)
	}
	return r
}

const (
	namespaces  = "/api/v1/namespaces/"
	actions     = namespaces + "_/actions/"
	activations = namespaces + "_/activations"
)

// member reads a member of a JSON document, by a path of names and places like "response.result.n" or "0.name", as compact JSON.
func member(t testing.TB, document, path string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	for _, step := range strings.Split(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			if v = node[step]; v == nil {
				return "none"
			}
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(node) {
				return "none"
			}
			v = node[i]
		default:
			return "none"
		}
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text.String())
}

// names lists the members of a JSON object.
func names(t testing.TB, document string) string {
	t.Helper()
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	var list []string
	for name := range v {
		list = append(list, name)
	}
	return strings.Join(sorted(list), " ")
}
