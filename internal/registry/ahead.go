package registry

import (
	"context"

	"forerun.dev/forerun/internal/state"
)

// aheadRecord is there while the operator has switched speculation off.
const aheadRecord = "in-turn"

// LetAhead keeps whether invocations may run ahead: what the operator said holds for the servers to come, too.
func (r *Registry) LetAhead(ctx context.Context, may bool) error {
	op := set(aheadRecord, nil)
	if may {
		op = del(aheadRecord)
	}
	_, err := r.store.Apply(ctx, state.Txn{Ops: []state.Command{op}, Owed: true})
	return err
}

// MayAhead is what LetAhead has said; before, they may.
func (r *Registry) MayAhead(ctx context.Context) (bool, error) {
	records, err := r.get(ctx, aheadRecord)
	if err != nil {
		return false, err
	}
	return records[0].Version == 0, nil
}
