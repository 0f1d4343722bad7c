package registry

import (
	"context"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// account knows what a tenant with a quota of actions or of their code has stored.
type account struct {
	mu      sync.Mutex // guards the rest; held while the tenant's actions change
	known   bool
	actions int
	bytes   int // of code
}

// charge has a change of an action applied, from old to a (either is nil if there is none), and holds the tenant to the
// quotas of what is stored. The error is forerun.TooMany, or apply's. A tenant without such quotas has no account, and a
// namespace without a tenant, which only tests have, has none either.
func (r *Registry) charge(ctx context.Context, old, a *forerun.Action, namespace string, apply func() error) error {
	t, err := r.Tenant(ctx, namespace)
	if err != nil && forerun.KindOf(err) != forerun.NotFound {
		return err
	}
	if err != nil || t.Limits.StoredActions == NoLimit && t.Limits.StoredMegabytes == NoLimit {
		r.accounts.Delete(namespace)
		return apply()
	}
	loaded, _ := r.accounts.LoadOrStore(namespace, new(account))
	acc := loaded.(*account)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if err := r.count(ctx, acc, namespace); err != nil {
		return err
	}
	count, bytes := size(a)
	oldCount, oldBytes := size(old)
	if err := acc.admit(t.Limits, count-oldCount, bytes-oldBytes); err != nil {
		return err
	}
	if err := apply(); err != nil {
		return err
	}
	acc.actions += count - oldCount
	acc.bytes += bytes - oldBytes
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

// size is what an action counts for.
func size(a *forerun.Action) (count, bytes int) {
	if a == nil {
		return 0, 0
	}
	return 1, len(a.Exec.Code)
}

// admit refuses what makes more of what there is too much of.
func (acc *account) admit(l Limits, actions, bytes int) error {
	const mib = 1 << 20
	if count := acc.actions + actions; actions > 0 && count > l.StoredActions {
		return forerun.Errorf(forerun.TooMany, "actions", "Too many actions are stored (count: %d, allowed: %d): delete some first.", count, l.StoredActions)
	}
	if total := acc.bytes + bytes; bytes > 0 && l.StoredMegabytes != NoLimit && total > l.StoredMegabytes*mib {
		return forerun.Errorf(forerun.TooMany, "code", "The code of all actions is too large (%d bytes, allowed: %d): delete some first.", total, l.StoredMegabytes*mib)
	}
	return nil
}

// count counts what is stored, the first time.
func (r *Registry) count(ctx context.Context, acc *account, namespace string) error {
	if acc.known {
		return nil
	}
	acc.actions, acc.bytes = 0, 0
	for _, err := range r.store.Scan(ctx, under("action/"+namespace+"/")) {
		if err != nil {
			return err
		}
		acc.actions++
	}
	for entry, err := range r.store.Scan(ctx, under("code/"+namespace+"/")) {
		if err != nil {
			return err
		}
		acc.bytes += len(entry.Data)
	}
	acc.known = true
	return nil
}
