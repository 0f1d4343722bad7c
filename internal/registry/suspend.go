package registry

import (
	"context"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Active returns an error of kind forerun.Forbidden if the tenant is suspended.
func (t *Tenant) Active() error {
	if t.Suspended.IsZero() {
		return nil
	}
	return forerun.Errorf(forerun.Forbidden, "", "The tenant %s is suspended: ask the operator of this server to resume it.", t.Namespace)
}

// Suspend makes a tenant inactive until Resume. When it returns, its keys open nothing, and connections that were made with them have ended. A
// suspended tenant stays as it is.
func (r *Registry) Suspend(ctx context.Context, namespace string) (Tenant, error) {
	t, keys, err := r.setSuspended(ctx, namespace, time.Now().UTC())
	if err == nil {
		r.forgetKeys(keys)
	}
	return t, err
}

// Resume makes a tenant active again. An active tenant stays as it is.
func (r *Registry) Resume(ctx context.Context, namespace string) (Tenant, error) {
	t, keys, err := r.setSuspended(ctx, namespace, time.Time{})
	for _, record := range keys {
		if uuid, ok := uuidOfRecord(record); ok {
			r.keys.forget(uuid)
		}
	}
	return t, err
}

// setSuspended writes since when a tenant is suspended, unless it is so or is not already. It returns the records of the tenant's keys.
func (r *Registry) setSuspended(ctx context.Context, namespace string, since time.Time) (t Tenant, keys []string, err error) {
	if namespace == System {
		return Tenant{}, nil, forerun.Errorf(forerun.Invalid, namespace, "The namespace %s is the server's own, and not a tenant: it cannot be suspended.", namespace)
	}
	t, err = r.changeTenant(ctx, namespace, func(t *Tenant) (_ []state.Command, err error) {
		if t.Suspended.IsZero() != since.IsZero() {
			t.Suspended = since
		}
		keys, err = r.keysOf(ctx, namespace)
		return nil, err
	})
	return t, keys, err
}
