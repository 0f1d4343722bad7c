package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

func open(t *testing.T) (*Registry, state.Store) {
	t.Helper()
	store, err := embedded.Open("registry", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	r := Open(store, DefaultLimits(), nil)
	t.Cleanup(func() {
		r.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, store
}

func name(s string) forerun.Name {
	n, err := forerun.ParseName(s, "guest")
	if err != nil {
		panic(err)
	}
	return n
}

func code(text string) func(*forerun.Action) (*forerun.Action, error) {
	return func(*forerun.Action) (*forerun.Action, error) {
		return &forerun.Action{Exec: forerun.Exec{Kind: "python:3", Code: text}, Limits: forerun.DefaultLimits()}, nil
	}
}

func put(t *testing.T, r *Registry, n, text string) *forerun.Action {
	t.Helper()
	pack(t, r, name(n))
	a, err := r.PutAction(t.Context(), name(n), true, code(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pack makes the package of an action, unless it is there.
func pack(t *testing.T, r *Registry, action forerun.Name) {
	t.Helper()
	if action.Package == "" {
		return
	}
	_, err := r.PutEntity(t.Context(), Packages, forerun.Name{Namespace: action.Namespace, Entity: action.Package}, true, func(old *Entity) (*Entity, error) {
		if old == nil {
			old = new(Entity)
		}
		return old, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func kind(err error) string {
	if err == nil {
		return "none"
	}
	return fmt.Sprint(forerun.KindOf(err).HTTPStatus())
}

func TestActionComesBackAsItWasPut(t *testing.T) {
	r, store := open(t)
	want := &forerun.Action{
		Publish:     true,
		Exec:        forerun.Exec{Kind: "python:3", Code: "def main(a):\n  return {'<&>': 1}", Binary: false, Main: "main"},
		Parameters:  []forerun.KeyValue{{Key: "p", Value: json.RawMessage(`{"b":1.0,"a":"<&>"}`)}},
		Annotations: []forerun.KeyValue{{Key: "z", Value: json.RawMessage(`null`)}, {Key: "a", Value: json.RawMessage(`[1]`)}},
		Limits:      forerun.Limits{Timeout: 1, Memory: 2, Logs: 3, Concurrency: 4},
	}
	pack(t, r, name("pkg/hello"))
	stored, err := r.PutAction(t.Context(), name("pkg/hello"), false, func(*forerun.Action) (*forerun.Action, error) { return want, nil })
	if err != nil {
		t.Fatal(err)
	}
	fresh := Open(store, DefaultLimits(), nil)
	defer fresh.Close()
	got, err := fresh.Action(t.Context(), name("pkg/hello"))
	if err != nil {
		t.Fatal(err)
	}
	if stored.Version != "0.0.1" || stored.Updated.IsZero() || stored.Name != name("/guest/pkg/hello") {
		t.Errorf("stored as %+v", stored)
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", stored) {
		t.Errorf("got\n%+v\nwant\n%+v", got, stored)
	}
}

func TestVersionsAndConflicts(t *testing.T) {
	r, _ := open(t)
	for i, want := range []string{"0.0.1", "0.0.2", "0.0.3"} {
		if a := put(t, r, "a", fmt.Sprint(i)); a.Version != want {
			t.Errorf("update %d has version %s", i, a.Version)
		}
	}
	_, err := r.PutAction(t.Context(), name("a"), false, code("x"))
	if kind(err) != "409" || err.Error() != "resource already exists" {
		t.Errorf("a second creation: %v", err)
	}
	a, err := r.PutAction(t.Context(), name("a"), true, func(old *forerun.Action) (*forerun.Action, error) {
		changed := *old
		changed.Version = "2.1.9"
		return &changed, nil
	})
	if err != nil || a.Version != "2.1.9" || a.Exec.Code != "2" {
		t.Errorf("with a version of its own: %+v, %v", a, err)
	}
	if a := put(t, r, "a", "y"); a.Version != "2.1.10" {
		t.Errorf("behind 2.1.9 comes %s", a.Version)
	}
}

func TestDelete(t *testing.T) {
	r, store := open(t)
	put(t, r, "p/a", "text")
	old, err := r.DeleteAction(t.Context(), name("p/a"))
	if err != nil || old.Exec.Code != "text" {
		t.Fatalf("%+v, %v", old, err)
	}
	if _, err := r.DeletePackage(t.Context(), name("p"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Action(t.Context(), name("p/a")); kind(err) != "404" {
		t.Errorf("after the deletion: %v", err)
	}
	if _, err := r.DeleteAction(t.Context(), name("p/a")); kind(err) != "404" {
		t.Errorf("a second deletion: %v", err)
	}
	for entry, err := range store.Scan(t.Context(), state.Range{Space: space}) {
		t.Errorf("left: %s, %v", entry.Name, err)
	}
}

func TestCacheFollowsTheStore(t *testing.T) {
	r, store := open(t)
	other := Open(store, DefaultLimits(), nil)
	defer other.Close()
	put(t, r, "a", "one")
	first, err := other.Action(t.Context(), name("a"))
	if err != nil || first.Exec.Code != "one" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, _ := other.Action(t.Context(), name("a")); again != first {
		t.Error("a second look made another action")
	}
	changed := make(chan struct{}, 100)
	defer store.Watch(func(forerun.Key, forerun.Version) { changed <- struct{}{} })()
	put(t, r, "a", "two")
	<-changed
	if own, _ := r.Action(t.Context(), name("a")); own.Exec.Code != "two" {
		t.Errorf("its own write is not seen: %q", own.Exec.Code)
	}
}

func TestCacheKeepsNothingThatWasReadBeforeAChange(t *testing.T) {
	c := newCache[string](100, one[string])
	epoch := c.begin("a")
	c.forget("a")
	if c.put("a", "old", epoch); len(c.entries) != 0 {
		t.Error("what was read before a change was kept")
	}
	other := "b"
	for c.epoch(other) == c.epoch("a") {
		other += "b"
	}
	epoch = c.begin("a")
	c.forget(other)
	if c.put("a", "new", epoch); c.entries["a"] != "new" {
		t.Error("what was read before the change of something else was not kept")
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache[int](10, func(v int) int { return v })
	for i := range 20 {
		c.put(i, 3, 0)
	}
	if len(c.entries) != 3 || c.used != 9 {
		t.Errorf("%d entries of weight %d", len(c.entries), c.used)
	}
	if c.put(100, 11, 0); len(c.entries) != 3 {
		t.Error("an entry over the bound was kept")
	}
}

func TestConcurrentUpdatesAreAllCounted(t *testing.T) {
	r, _ := open(t)
	put(t, r, "a", "0")
	var all sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range 8 {
		all.Go(func() {
			_, err := r.PutAction(context.Background(), name("a"), true, code("x"))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done++
			} else if kind(err) != "409" {
				t.Error(err)
			}
		})
	}
	all.Wait()
	a, err := r.Action(t.Context(), name("a"))
	if err != nil || a.Version != fmt.Sprintf("0.0.%d", done+1) {
		t.Errorf("%d updates made version %s, %v", done, a.Version, err)
	}
}

func TestList(t *testing.T) {
	r, _ := open(t)
	for _, n := range []string{"a", "p/b", "c", "p/d", "/guest2/e", "q/a"} {
		put(t, r, n, "secret code")
	}
	touch(t, r, "a") // the latest now
	for _, test := range []struct {
		namespace, pkg string
		skip, limit    int
		want           string
	}{
		{"guest", "", 0, 10, "/guest/a /guest/q/a /guest/p/d /guest/c /guest/p/b"},
		{"guest", "", 1, 2, "/guest/q/a /guest/p/d"},
		{"guest", "", 5, 2, ""},
		{"guest", "p", 0, 10, "/guest/p/d /guest/p/b"},
		{"guest", "none", 0, 10, ""},
		{"gues", "", 0, 10, ""},
		{"guest2", "", 0, 10, "/guest2/e"},
	} {
		var names []string
		for a, err := range r.Actions(t.Context(), test.namespace, test.pkg, test.skip, test.limit) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, a.Name.String())
			if a.Exec.Code != "" {
				t.Errorf("%s was listed with its code", a.Name)
			}
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
	n, err := r.CountActions(t.Context(), "guest", "")
	if err != nil || n != 5 {
		t.Errorf("counted %d, %v", n, err)
	}
}

// TestListedOneByOne: an action or a package is read when it is its turn.
func TestListedOneByOne(t *testing.T) {
	r, _ := open(t)
	pack(t, r, name("p/a"))
	for _, n := range []string{"p/a", "p/b"} {
		put(t, r, n, "code")
	}
	putEntity(t, r, Packages, "q", Entity{})
	n := 0
	for _, err := range r.Actions(t.Context(), "guest", "p", 0, NoLimit) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.DeletePackage(t.Context(), name("p"), true); n == 0 && err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d actions were read before the first was seen", n)
	}
	putEntity(t, r, Packages, "p", Entity{})
	n = 0
	for _, err := range r.Entities(t.Context(), Packages, "guest", false, 0, NoLimit) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.DeletePackage(t.Context(), name("q"), false); n == 0 && err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d packages were read before the first was seen", n)
	}
}

// TestDeletedUnread: the actions of a package that is deleted are not read, which could take any amount of memory.
func TestDeletedUnread(t *testing.T) {
	r, store := open(t)
	pack(t, r, name("p/a"))
	put(t, r, "p/a", "code")
	if _, err := store.Apply(t.Context(), state.Txn{Ops: []state.Command{set(actionRecord(name("p/a")), []byte("no metadata"))}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.DeletePackage(t.Context(), name("p"), true); err != nil {
		t.Error(err)
	}
	for _, prefix := range []string{"action/", "code/", "recent/", "members/"} {
		for entry, err := range store.Scan(t.Context(), under(prefix+"guest/")) {
			t.Errorf("%s is left, %v", entry.Name, err)
		}
	}
}

// touch updates an action until the clock has moved on since everything before.
func touch(t *testing.T, r *Registry, n string) {
	t.Helper()
	first := put(t, r, n, "code")
	for put(t, r, n, "code").Updated.Equal(first.Updated) {
	}
}

// TestEntitiesCountWithWhatTheyHold: packages and triggers with annotations of a megabyte each were kept by the ten thousand.
func TestEntitiesCountWithWhatTheyHold(t *testing.T) {
	r, _ := open(t)
	large := &Entity{Annotations: []forerun.KeyValue{{Key: "a", Value: make([]byte, 1<<20)}}}
	if n := r.entities.weight(large); n < 1<<20 || r.entities.max > 64<<20 {
		t.Errorf("it counts for %d of %d", n, r.entities.max)
	}
	if n := r.merged.weight(resolution{merged: new(forerun.Action), chain: []*Entity{large, large}}); n < 2<<20 {
		t.Errorf("an action counts for %d with its packages", n)
	}
	rules := map[forerun.Name]*RuleLink{name("r"): {Action: name("a")}}
	if with, without := entityBytes(&Entity{Rules: rules}), entityBytes(new(Entity)); with <= without {
		t.Errorf("a trigger counts for %d with a rule, and for %d without", with, without)
	}
}

// TestResolutionsAtTheSameTime: who has read an action before it was updated does not hand what it had to who has read it since.
func TestResolutionsAtTheSameTime(t *testing.T) {
	r, _ := open(t)
	of := func(a *forerun.Action) resolution { merged := *a; return resolution{a, nil, &merged} }
	before, since := of(put(t, r, "a", "old")), of(put(t, r, "a", "new"))
	r.share(name("a"), before)
	if got := r.share(name("a"), since); got != since.merged {
		t.Errorf("the code is %q", got.Exec.Code)
	}
}
