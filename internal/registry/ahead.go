package registry

import (
	"context"

	"forerun.dev/forerun/internal/state"
)

// Records that are there while the operator has switched something off.
const (
	aheadRecord = "in-turn"   // speculation
	cacheRecord = "cache-off" // the result cache
)

// LetAhead keeps whether invocations may run ahead: what the operator said holds for the servers to come, too.
func (r *Registry) LetAhead(ctx context.Context, may bool) error { return r.let(ctx, aheadRecord, may) }

// MayAhead is what LetAhead has said; before, they may.
func (r *Registry) MayAhead(ctx context.Context) (bool, error) { return r.may(ctx, aheadRecord) }

// LetCache keeps whether results may stand for executions, as LetAhead does.
func (r *Registry) LetCache(ctx context.Context, may bool) error { return r.let(ctx, cacheRecord, may) }

// MayCache is what LetCache has said; before, they may.
func (r *Registry) MayCache(ctx context.Context) (bool, error) { return r.may(ctx, cacheRecord) }

func (r *Registry) let(ctx context.Context, record string, may bool) error {
	op := set(record, nil)
	if may {
		op = del(record)
	}
	_, err := r.store.Apply(ctx, state.Txn{Ops: []state.Command{op}, Owed: true})
	return err
}

func (r *Registry) may(ctx context.Context, record string) (bool, error) {
	records, err := r.get(ctx, record)
	if err != nil {
		return false, err
	}
	return records[0].Version == 0, nil
}
