package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func params(pairs ...string) (kvs []forerun.KeyValue) {
	for i := 0; i < len(pairs); i += 2 {
		kvs = append(kvs, forerun.KeyValue{Key: pairs[i], Value: json.RawMessage(pairs[i+1])})
	}
	return kvs
}

// shown writes parameters in the order of their keys.
func shown(kvs []forerun.KeyValue) string {
	var list []string
	for _, kv := range kvs {
		list = append(list, kv.Key+"="+string(kv.Value))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func putEntity(t *testing.T, r *Registry, c Collection, n string, e Entity) {
	t.Helper()
	if _, err := r.PutEntity(t.Context(), c, name(n), true, func(*Entity) (*Entity, error) { return &e, nil }); err != nil {
		t.Fatal(err)
	}
}

func putRule(r *Registry, n, trigger, action string) (bool, error) {
	_, active, err := r.PutRule(context.Background(), name(n), true, func(*Entity) (*Entity, error) {
		return &Entity{Trigger: name(trigger), Action: name(action)}, nil
	})
	return active, err
}

func bound(n string) *forerun.Name {
	to := name(n)
	return &to
}

func TestEntityComesBackAsItWasPut(t *testing.T) {
	r, store := open(t)
	putEntity(t, r, Packages, "q", Entity{})
	want := Entity{Publish: true, Annotations: params("<&>", `"x"`), Parameters: params("a", `{"b":1.0}`), Binding: bound("q")}
	putEntity(t, r, Packages, "p", want)
	fresh := Open(store, DefaultLimits(), nil)
	defer fresh.Close()
	got, err := fresh.Entity(t.Context(), Packages, name("p"))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%v %s %s %s %s", got.Publish, shown(got.Annotations), shown(got.Parameters), got.Binding, got.Version) != `true <&>="x" a={"b":1.0} /guest/q 0.0.1` {
		t.Errorf("%+v", got)
	}
}

func TestNamesAreShared(t *testing.T) {
	r, _ := open(t)
	put(t, r, "a", "code")
	putEntity(t, r, Triggers, "t", Entity{})
	nothing := func(*Entity) (*Entity, error) { return new(Entity), nil }
	_, err1 := r.PutEntity(t.Context(), Packages, name("a"), true, nothing)
	_, err2 := r.PutEntity(t.Context(), Packages, name("t"), true, nothing)
	_, err3 := r.PutAction(t.Context(), name("t"), true, code("x"))
	_, err4 := r.Action(t.Context(), name("t"))
	_, err5 := r.Entity(t.Context(), Rules, name("a"))
	_, err6 := r.DeletePackage(t.Context(), name("t"), true)
	_, err7 := r.DeleteAction(t.Context(), name("t"))
	_, err8 := r.DeleteTrigger(t.Context(), name("a"))
	_, err9 := r.PutAction(t.Context(), name("t/a"), true, code("x"))
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9} {
		if kind(err) != "409" {
			t.Errorf("%d: %v", i+1, err)
		}
	}
}

func TestResolve(t *testing.T) {
	r, _ := open(t)
	put(t, r, "/other/open/a", "code")
	put(t, r, "/other/shut/a", "code")
	put(t, r, "/other/a", "code")
	put(t, r, "own/a", "code")
	putEntity(t, r, Packages, "/other/open", Entity{Publish: true, Parameters: params("x", "1", "y", "1")})
	putEntity(t, r, Packages, "/other/link", Entity{Publish: true, Binding: bound("/other/open")})
	putEntity(t, r, Packages, "near", Entity{Binding: bound("/other/open"), Parameters: params("y", "2")})
	putEntity(t, r, Packages, "far", Entity{Binding: bound("near"), Parameters: params("z", "3")})
	putEntity(t, r, Packages, "barred", Entity{Binding: bound("/other/shut")})
	putEntity(t, r, Packages, "lost", Entity{Binding: bound("nothing")})
	putEntity(t, r, Packages, "round", Entity{Binding: bound("round")})
	for _, test := range []struct{ name, want string }{
		{"own/a", "/guest/own/a  "},
		{"/other/open/a", "/other/open/a  x=1 y=1"},
		{"near/a", "/other/open/a guest/near x=1 y=2"},
		{"far/a", "/other/open/a guest/far x=1 y=2 z=3"},
		{"near/b", "404"},
		{"none/a", "404"},
		{"none", "404"},
		{"lost/a", "404"},
		{"round/a", "422"},
		{"/other/shut/a", "403"},
		{"/other/none/a", "403"},
		{"/other/a", "403"},
		{"/other/link/a", "403"},
		{"barred/a", "403"},
		{"/gone/p/a", "403"},
	} {
		a, err := r.Resolve(t.Context(), name(test.name), "guest")
		got := kind(err)
		if err == nil {
			got = fmt.Sprintf("%s %s %s", a.Name, a.Binding, shown(a.Parameters))
		}
		if got != test.want {
			t.Errorf("%s is %q (%v), want %q", test.name, got, err, test.want)
		}
	}
}

func TestResolveGivesTheSameUntilSomethingChanges(t *testing.T) {
	r, _ := open(t)
	put(t, r, "p/a", "1")
	resolve := func() *forerun.Action {
		a, err := r.Resolve(t.Context(), name("p/a"), "guest")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	seen := map[*forerun.Action]string{resolve(): "at first"}
	for _, change := range []struct {
		what   string
		change func()
	}{
		{"parameters of the package", func() { putEntity(t, r, Packages, "p", Entity{Parameters: params("x", "1")}) }},
		{"other parameters", func() { putEntity(t, r, Packages, "p", Entity{Parameters: params("x", "2")}) }},
		{"the action", func() { touch(t, r, "p/a") }},
	} {
		change.change()
		a := resolve()
		if seen[a] != "" || a != resolve() {
			t.Errorf("%s: the action is the one %q, or not the same the next time", change.what, seen[a])
		}
		seen[a] = change.what
	}
}

func TestRules(t *testing.T) {
	r, _ := open(t)
	for _, n := range []string{"t", "u"} {
		putEntity(t, r, Triggers, n, Entity{Parameters: params("k", "1")})
	}
	links := func(trigger string) string {
		e, err := r.Entity(t.Context(), Triggers, name(trigger))
		if err != nil {
			return kind(err)
		}
		var list []string
		for n, link := range e.Rules {
			list = append(list, fmt.Sprint(n.Entity, " ", link.Action.Entity, " ", link.Active))
		}
		slices.Sort(list)
		return fmt.Sprintf("%s %q", shown(e.Parameters), list)
	}
	set := func(active bool) string { return kind(r.SetRule(t.Context(), name("r"), active)) }
	var answers []string
	step := func(got, wantT, wantU string) { // what was answered, and what each trigger knows then
		t.Helper()
		if lt, lu := links("t"), links("u"); lt != wantT || lu != wantU {
			t.Errorf("after %s: t %s, u %s; want %s and %s", got, lt, lu, wantT, wantU)
		}
		answers = append(answers, got)
	}
	tie := func(trigger, action string) string {
		active, err := putRule(r, "r", trigger, action)
		return fmt.Sprint(active, " ", kind(err))
	}
	step(tie("none", "a"), `k=1 []`, `k=1 []`)
	step(tie("t", "a"), `k=1 ["r a true"]`, `k=1 []`)
	step(set(false), `k=1 ["r a false"]`, `k=1 []`)
	step(tie("t", "b"), `k=1 ["r b false"]`, `k=1 []`)
	step(tie("u", "b"), `k=1 []`, `k=1 ["r b false"]`)
	step(set(true), `k=1 []`, `k=1 ["r b true"]`)
	if _, err := r.DeleteTrigger(t.Context(), name("u")); err != nil {
		t.Fatal(err)
	}
	step(set(true), `k=1 []`, `404`)
	putEntity(t, r, Triggers, "u", Entity{})
	step(set(false), `k=1 []`, ` []`)
	step(set(true), `k=1 []`, ` ["r b true"]`)
	if _, err := r.DeleteRule(t.Context(), name("r")); err != nil {
		t.Fatal(err)
	}
	step(set(true), `k=1 []`, ` []`)
	if got, want := fmt.Sprint(answers), "[true 400 true none none false none false none none 404 none none 404]"; got != want {
		t.Errorf("the answers are %s, want %s", got, want)
	}
}

func TestEntitiesAreListedByTheirUpdate(t *testing.T) {
	r, _ := open(t)
	for _, n := range []string{"a", "b", "/guest2/c", "d"} {
		putEntity(t, r, Packages, n, Entity{Publish: n != "b"})
	}
	putEntity(t, r, Packages, "e", Entity{Publish: true, Binding: bound("a")})
	putEntity(t, r, Triggers, "t", Entity{})
	putEntity(t, r, Packages, "a", Entity{Publish: true})
	for _, test := range []struct {
		published   bool
		skip, limit int
		want        string
	}{
		{false, 0, 10, "a e d b"}, {false, 1, 2, "e d"}, {true, 0, 10, "a d"}, {true, 1, 1, "d"}, {true, 5, 1, ""},
	} {
		var names []string
		for e, err := range r.Entities(t.Context(), Packages, "guest", test.published, test.skip, test.limit) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, e.Name.Entity)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	if n, err := r.CountEntities(t.Context(), Packages, "guest", true); n != 2 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

// TestNoActionOutlivesItsPackage deletes a package while actions are made in it: either it is kept, or it has none.
func TestNoActionOutlivesItsPackage(t *testing.T) {
	r, _ := open(t)
	for range 50 {
		pack(t, r, name("p/a"))
		var both sync.WaitGroup
		both.Go(func() { _, _ = r.PutAction(context.Background(), name("p/a"), true, code("x")) })
		both.Go(func() { _, _ = r.DeletePackage(context.Background(), name("p"), false) })
		both.Wait()
		_, err := r.Entity(t.Context(), Packages, name("p"))
		n, errN := r.CountActions(t.Context(), "guest", "p")
		if errN != nil || err != nil && n > 0 {
			t.Fatalf("%d actions in a package that is gone: %v, %v", n, err, errN)
		}
		if _, err := r.DeletePackage(t.Context(), name("p"), true); err != nil && kind(err) != "404" {
			t.Fatal(err)
		}
		if _, err := r.Action(t.Context(), name("p/a")); kind(err) != "404" {
			t.Fatalf("after the package: %v", err)
		}
	}
}
