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
