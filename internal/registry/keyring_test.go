package registry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/embedded"
)

func newKeyring(t *testing.T, text string) *Keyring {
	t.Helper()
	k, err := ParseKeyring(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeyring(t *testing.T) {
	first, second := NewKey(), NewKey()
	k := newKeyring(t, first)
	sealed, err := k.seal("a", []byte(`"v"`))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := k.seal("a", []byte(`"v"`)); again == sealed {
		t.Error("the same value is sealed the same way twice")
	}
	if got, err := k.unseal("a", sealed); err != nil || string(got) != `"v"` {
		t.Errorf("%s %v", got, err)
	}
	rotated := newKeyring(t, second+first)
	if got, err := rotated.unseal("a", sealed); err != nil || string(got) != `"v"` {
		t.Errorf("with another key before its own: %s %v", got, err)
	}
	if newer, _ := rotated.seal("a", nil); !strings.HasPrefix(newer, "1."+second[:8]+".") {
		t.Errorf("the first key does not seal: %s", newer)
	}
	for name, try := range map[string]func() (json.RawMessage, error){
		"another place": func() (json.RawMessage, error) { return k.unseal("b", sealed) },
		"another key":   func() (json.RawMessage, error) { return newKeyring(t, second).unseal("a", sealed) },
		"another key under its id": func() (json.RawMessage, error) {
			return newKeyring(t, first[:8]+second[8:]).unseal("a", sealed)
		},
		"a changed text": func() (json.RawMessage, error) { return k.unseal("a", sealed[:len(sealed)-2]+"AA") },
		"another form":   func() (json.RawMessage, error) { return k.unseal("a", "2"+sealed[1:]) },
		"no keyring":     func() (json.RawMessage, error) { return (*Keyring)(nil).unseal("a", sealed) },
	} {
		if got, err := try(); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, text := range []string{"", "\n", "id", "id zz\n", first + first, strings.Replace(first, " ", "", 1), first[:60]} {
		if _, err := ParseKeyring(text); forerun.KindOf(err) != forerun.Invalid || strings.Contains(err.Error(), first[9:20]) {
			t.Errorf("a keyring %q: %v", text, err)
		}
	}
}

// TestSecretParameters: what is stored does not tell them, what is read does, and other owners' records cannot.
func TestSecretParameters(t *testing.T) {
	store, err := embedded.Open("registry", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	key := NewKey()
	r := Open(store, DefaultLimits(), newKeyring(t, key))
	t.Cleanup(func() {
		r.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := t.Context()
	if _, err := r.CreateTenant(ctx, "guest", Quotas{}); err != nil {
		t.Fatal(err)
	}
	secret := forerun.Hide("TOKEN", json.RawMessage(`"hunter2"`), true)
	pkg := forerun.Name{Namespace: "guest", Entity: "p"}
	if _, err := r.PutEntity(ctx, Packages, pkg, false, func(*Entity) (*Entity, error) {
		return &Entity{Parameters: []forerun.KeyValue{secret, {Key: "STAGE", Value: json.RawMessage(`"blue"`), Init: true}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	name := forerun.Name{Namespace: "guest", Package: "p", Entity: "a"}
	put := func(parameters ...forerun.KeyValue) {
		t.Helper()
		if _, err := r.PutAction(ctx, name, true, func(*forerun.Action) (*forerun.Action, error) {
			return &forerun.Action{Exec: forerun.Exec{Kind: "python:3", Code: "x"}, Parameters: parameters}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	put(forerun.Hide("OWN", json.RawMessage(`{"a": [1]}`), true), forerun.KeyValue{Key: "x", Value: json.RawMessage("1")})
	for entry, err := range store.Scan(ctx, under("entity/")) {
		if err != nil || bytes.Contains(entry.Data, []byte("hunter2")) {
			t.Errorf("%s holds %s (%v)", entry.Name, entry.Data, err)
		}
	}
	environment := func(r *Registry) (map[string]string, *forerun.Action, error) {
		a, err := r.Resolve(ctx, name, "guest")
		if err != nil {
			t.Fatal(err)
		}
		env, err := forerun.Environment(a.Parameters)
		return env, a, err
	}
	env, action, err := environment(r)
	if err != nil || len(env) != 3 || env["TOKEN"] != "hunter2" || env["STAGE"] != "blue" || env["OWN"] != `{"a":[1]}` {
		t.Errorf("the environment is %v (%v)", env, err)
	}
	if shown, err := json.Marshal(action); err != nil || bytes.Contains(shown, []byte("hunter2")) {
		t.Errorf("%s %v", shown, err)
	}
	before := action.Digest()
	put(forerun.Hide("OWN", json.RawMessage(`{"a": [2]}`), true), forerun.KeyValue{Key: "x", Value: json.RawMessage("1")})
	if _, action, _ = environment(r); action.Digest() == before {
		t.Error("an action with another secret has the same digest")
	}

	other := Open(store, DefaultLimits(), newKeyring(t, NewKey()))
	defer other.Close()
	if env, _, err := environment(other); forerun.KindOf(err) != forerun.Unavailable || !strings.Contains(err.Error(), key[:8]) {
		t.Errorf("with another key the environment is %v (%v)", env, err)
	}
	// An update that leaves the secrets as they are does not need the key.
	if _, err := other.PutAction(ctx, name, true, func(old *forerun.Action) (*forerun.Action, error) {
		changed := *old
		changed.Exec.Code = "y"
		return &changed, nil
	}); err != nil {
		t.Error(err)
	}
	if env, _, err := environment(r); err != nil || env["OWN"] != `{"a":[2]}` {
		t.Errorf("with the key again the environment is %v (%v)", env, err)
	}

	keyless := Open(store, DefaultLimits(), nil)
	defer keyless.Close()
	if _, err := keyless.PutEntity(ctx, Packages, pkg, true, func(*Entity) (*Entity, error) {
		return &Entity{Parameters: []forerun.KeyValue{secret}}, nil
	}); forerun.KindOf(err) != forerun.Unavailable {
		t.Errorf("a server without a key: %v", err)
	}
}

func TestSystemTellsWhatIsNotThere(t *testing.T) {
	r, _ := open(t)
	for _, name := range []string{"/whisk.system/a", "/whisk.system/none/a"} {
		n, err := forerun.ParseName(name, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Resolve(t.Context(), n, "guest"); forerun.KindOf(err) != forerun.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}
