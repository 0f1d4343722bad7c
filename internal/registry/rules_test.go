package registry

import (
	"context"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// meddled is a store that is meddled with as it reads for the n-th time, or as it writes. What is done then takes it out of the registry.
type meddled struct {
	state.Store
	reads  int // 0: as it writes
	meddle func()
}

func (m *meddled) Get(ctx context.Context, keys ...forerun.Key) ([]state.Record, error) {
	if m.reads--; m.reads == 0 {
		m.meddle()
	}
	return m.Store.Get(ctx, keys...)
}

func (m *meddled) Apply(ctx context.Context, t state.Txn) (forerun.Version, error) {
	m.meddle()
	return m.Store.Apply(ctx, t)
}

// TestRuleThatIsSetMeanwhile: what sets a rule active or inactive, while that is deleted or changed, comes before or after that. Nothing is
// left of it in a trigger that is not the rule's.
func TestRuleThatIsSetMeanwhile(t *testing.T) {
	remove := func(r *Registry) error {
		_, err := r.DeleteRule(context.Background(), name("r"))
		return err
	}
	tie := func(trigger string) func(r *Registry) error {
		return func(r *Registry) error {
			_, err := putRule(r, "r", trigger, "a")
			return err
		}
	}
	for _, c := range []struct {
		name   string
		knows  bool // the trigger knows of the rule
		reads  int
		change func(*Registry) error
		active bool // is set
		want   map[string]bool
	}{
		{"deleted", false, 0, remove, true, map[string]bool{}},
		{"deleted, known", true, 0, remove, false, map[string]bool{}},
		{"tied to another", false, 0, tie("u"), true, map[string]bool{"u": true}},
		{"tied to the same", true, 3, tie("t"), false, map[string]bool{"t": false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, store := open(t)
			for _, trigger := range []string{"t", "u"} {
				putEntity(t, r, Triggers, trigger, Entity{})
			}
			if err := tie("t")(r); err != nil {
				t.Fatal(err)
			}
			if !c.knows {
				if _, err := r.DeleteTrigger(t.Context(), name("t")); err != nil {
					t.Fatal(err)
				}
				putEntity(t, r, Triggers, "t", Entity{})
			}
			r.store = &meddled{Store: store, reads: c.reads, meddle: func() {
				r.store = store
				if err := r.SetRule(t.Context(), name("r"), c.active); err != nil {
					t.Error(err)
				}
			}}
			if err := c.change(r); err != nil {
				t.Error(err)
			}
			for _, trigger := range []string{"t", "u"} {
				e, err := r.Entity(t.Context(), Triggers, name(trigger))
				if err != nil {
					t.Fatal(err)
				}
				link, linked := e.Rules[name("r")]
				if want, is := c.want[trigger]; linked != is || linked && link.Active != want {
					t.Errorf("%s knows of the rule: %v, %+v", trigger, linked, link)
				}
			}
		})
	}
}

// TestRuleOfATriggerThatIsAnActionNow: the name of a deleted trigger may be an action's when its rule is deleted.
func TestRuleOfATriggerThatIsAnActionNow(t *testing.T) {
	r, _ := open(t)
	putEntity(t, r, Triggers, "t", Entity{})
	if _, err := putRule(r, "r", "t", "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.DeleteTrigger(t.Context(), name("t")); err != nil {
		t.Fatal(err)
	}
	put(t, r, "t", "code")
	if _, err := r.DeleteRule(t.Context(), name("r")); err != nil {
		t.Error(err)
	}
}
