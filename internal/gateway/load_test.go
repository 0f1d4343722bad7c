package gateway

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// TestBodiesOfATenantAreBounded sends large bodies whose requests go on, until the next is too much.
func TestBodiesOfATenantAreBounded(t *testing.T) {
	q := newQuotas(t, registry.Quotas{})
	const limit = 1 << 20
	whole := make([]byte, limit)
	send := func(ctx context.Context, tenant string, body []byte, length int64) error {
		r := httptest.NewRequestWithContext(ctx, http.MethodPut, "/", bytes.NewReader(body))
		r.ContentLength = length
		got, err := q.Body(httptest.NewRecorder(), r, tenant, limit)
		if err == nil && len(got) != len(body) {
			t.Errorf("%d bytes became %d", len(body), len(got))
		}
		return err
	}
	ctx, answered := context.WithCancel(t.Context())
	q.meter("ada").bodies.Add(maxBodies - 2*limit) // of others
	for _, length := range []int64{limit, -1} {
		if err := send(ctx, "ada", whole, length); err != nil {
			t.Fatal(err)
		}
	}
	for _, length := range []int64{limit, -1} {
		if err := send(t.Context(), "ada", whole, length); forerun.KindOf(err) != forerun.TooMany {
			t.Errorf("beyond the bound: %v", err)
		}
	}
	if err := send(t.Context(), "ada", whole[:smallBody], smallBody); err != nil {
		t.Errorf("a small one: %v", err)
	}
	if err := send(t.Context(), "bob", whole, limit); err != nil {
		t.Errorf("another tenant's: %v", err)
	}
	if err := send(t.Context(), "ada", append(whole, 1), limit+1); forerun.KindOf(err) != forerun.TooLarge {
		t.Errorf("one that is too large anyway: %v", err)
	}
	answered()
	for q.meter("ada").bodies.Load() != maxBodies-2*limit { // the context tells it
	}
	if err := send(t.Context(), "ada", whole, limit); err != nil {
		t.Errorf("when the others are answered: %v", err)
	}
}

// TestBodiesAreTakenApartInTurn: a tenant's large bodies wait for each other, and for nobody else's.
func TestBodiesAreTakenApartInTurn(t *testing.T) {
	q := newQuotas(t, registry.Quotas{})
	large := make([]byte, 2*maxApart)
	done, err := q.Apart(t.Context(), "ada", large)
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := q.Apart(gone, "ada", large[:smallBody+1]); forerun.KindOf(err) != forerun.Unavailable {
		t.Errorf("another beside a large one: %v", err)
	}
	for tenant, body := range map[string][]byte{"ada": large[:smallBody], "bob": large} {
		if _, err := q.Apart(t.Context(), tenant, body); err != nil {
			t.Errorf("%d bytes of %s: %v", len(body), tenant, err)
		}
	}
	done()
	if _, err := q.Apart(t.Context(), "ada", large); err != nil {
		t.Errorf("after the large one: %v", err)
	}
}
