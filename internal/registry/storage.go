package registry

import (
	"context"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// account knows how many actions a tenant with a quota of them has.
type account struct {
	mu      sync.Mutex // guards the rest; held while the tenant's actions change
	known   bool
	actions int
}

// charge has a change of an action applied, from old to a (either is nil if there is none), and holds the tenant to the
// quota of actions. The error is forerun.TooMany, or apply's. A tenant without that quota has no account, and a
// namespace without a tenant, which only tests have, has none either.
func (r *Registry) charge(ctx context.Context, old, a *forerun.Action, namespace string, apply func() error) error {
	t, err := r.Tenant(ctx, namespace)
	if err != nil && forerun.KindOf(err) != forerun.NotFound {
		return err
	}
	if err != nil || t.Limits.StoredActions == NoLimit {
		r.accounts.Delete(namespace)
		return apply()
	}
	loaded, _ := r.accounts.LoadOrStore(namespace, new(account))
	acc := loaded.(*account)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if err := r.countActions(ctx, acc, namespace); err != nil {
		return err
	}
	more := count(a) - count(old)
	if n := acc.actions + more; more > 0 && n > t.Limits.StoredActions {
		return forerun.Errorf(forerun.TooMany, "actions", "Too many actions are stored (count: %d, allowed: %d): delete some first.", n, t.Limits.StoredActions)
	}
	if err := apply(); err != nil {
		return err
	}
	acc.actions += more
	return nil
}

// recount has a tenant's account made up anew, after a change that was not charged to it.
func (r *Registry) recount(namespace string) {
	if loaded, ok := r.accounts.Load(namespace); ok {
		acc := loaded.(*account)
		acc.mu.Lock()
		defer acc.mu.Unlock()
		acc.known = false
	}
}

// count is 1 for an action, and 0 for none.
func count(a *forerun.Action) int {
	if a == nil {
		return 0
	}
	return 1
}

// countActions counts what is stored, the first time.
func (r *Registry) countActions(ctx context.Context, acc *account, namespace string) error {
	if acc.known {
		return nil
	}
	acc.actions = 0
	for _, err := range r.store.Scan(ctx, under("action/"+namespace+"/")) {
		if err != nil {
			return err
		}
		acc.actions++
	}
	acc.known = true
	return nil
}
