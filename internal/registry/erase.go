package registry

import (
	"context"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// DeleteTenant removes a tenant and its keys, which are void when it returns. What it had is still to be erased: until
// Erased says that this was done, its name is not free. The error is forerun.NotFound if there is none.
func (r *Registry) DeleteTenant(ctx context.Context, namespace string) (Tenant, error) {
	var err error
	for range maxTries {
		var t Tenant
		if t, err = r.tryDeleteTenant(ctx, namespace); !isConflict(err) {
			return t, err
		}
	}
	return Tenant{}, changedMeanwhile(forerun.Name{Namespace: namespace}, err)
}

func (r *Registry) tryDeleteTenant(ctx context.Context, namespace string) (Tenant, error) {
	t, version, err := r.readTenant(ctx, namespace)
	if err != nil {
		return Tenant{}, err
	}
	if version == 0 {
		return Tenant{}, noTenant(namespace)
	}
	keys, err := r.keysOf(ctx, namespace)
	if err != nil {
		return Tenant{}, err
	}
	_, err = r.store.Apply(ctx, state.Txn{
		Expect: []state.Expect{unchanged(tenantRecord(namespace), version)},
		Ops:    []state.Command{set(goneRecord(namespace), nil), del(append(keys, tenantRecord(namespace))...)}, Owed: true,
	})
	if err != nil {
		return Tenant{}, err
	}
	r.tenants.forget(namespace)
	r.inForce.Delete(namespace)
	r.forgetKeys(keys)
	return t, nil
}

// Gone lists the namespaces of deleted tenants of whom not everything is erased yet.
func (r *Registry) Gone(ctx context.Context) ([]string, error) {
	var names []string
	for entry, err := range r.store.Scan(ctx, under("gone/")) {
		if err != nil {
			return nil, err
		}
		names = append(names, strings.TrimPrefix(entry.Name, "gone/"))
	}
	return names, nil
}

// Erase removes all entities of a deleted tenant.
func (r *Registry) Erase(ctx context.Context, namespace string) error {
	r.accounts.Delete(namespace)
	for _, kind := range entityRecords() {
		if err := state.Erase(ctx, r.store, under(kind+"/"+namespace+"/")); err != nil {
			return err
		}
	}
	return nil
}

// Erased frees the name of a deleted tenant.
func (r *Registry) Erased(ctx context.Context, namespace string) error {
	_, err := r.store.Apply(ctx, state.Txn{Ops: []state.Command{del(goneRecord(namespace))}})
	return err
}

func noTenant(namespace string) error {
	return forerun.Errorf(forerun.NotFound, namespace, "There is no tenant %s.", namespace)
}
