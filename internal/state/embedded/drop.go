package embedded

import (
	"cmp"
	"context"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// Drop removes the records of ranges in one step, at a cost that does not depend on their number. They must be Strings that
// never expire. A transaction that runs meanwhile may write one anew. It is in the log when Drop returns. Who watches is not told: they
// would have to be walked over.
func (s *Store) Drop(ctx context.Context, ranges ...state.Range) error {
	if err := s.begins(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	overlay := command.NewOverlay(ctx, reader{db: s.db})
	for _, r := range ranges {
		overlay.Clear(command.RecordRange(r.Space, r.From, r.To))
	}
	if err := s.room.admit(true); err != nil {
		return err
	}
	c := s.newChange(ctx, overlay)
	if err := c.fill(); err != nil {
		return cmp.Or(context.Cause(ctx), broken(err))
	}
	if _, err := s.enterLog(c, true); err != nil {
		return err
	}
	return s.disk.written(c.Batch)
}

// Size estimates what the records of a range take on disk, in bytes. The newest, which are still in memory, are not counted.
func (s *Store) Size(ctx context.Context, r state.Range) (uint64, error) {
	if err := s.begins(ctx); err != nil {
		return 0, err
	}
	defer s.gate.leave()
	size, err := s.db.EstimateDiskUsage(command.RecordRange(r.Space, r.From, r.To))
	if err != nil {
		return 0, broken(err)
	}
	return size, nil
}
