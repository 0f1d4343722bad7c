package embedded

import (
	"context"
	"errors"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// eraseBatch is how many records EraseSpace removes in one step.
const eraseBatch = 1000

// EraseSpace removes the records of a space, whatever their type. One that is added meanwhile may stay. If it returns an
// error, some are removed and others are not.
func (s *Store) EraseSpace(ctx context.Context, space string) error {
	for {
		args, err := s.someNames(ctx, space, [][]byte{[]byte("DEL")})
		if err != nil || len(args) == 1 {
			return err
		}
		if _, err := s.Apply(ctx, state.Txn{Ops: []state.Command{{Space: space, Args: args}}}); err != nil {
			return err
		}
	}
}

// someNames appends the names of up to a batch of a space's records. Those that have expired are left to the sweep.
func (s *Store) someNames(ctx context.Context, space string, names [][]byte) ([][]byte, error) {
	if err := s.begins(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	from, to := command.RecordRange(space, "", "")
	now := s.now()
	var damaged error
	err := reader{s.db}.Scan(from, to, false, func(key, stored []byte) bool {
		var record state.Record
		if record, damaged = command.Decode(stored, now); damaged != nil {
			return false
		}
		if k, ok := command.ParseRecordKey(key); ok && record.Version != 0 {
			names = append(names, []byte(k.Name))
		}
		return len(names) <= eraseBatch
	})
	return names, errors.Join(err, damaged)
}
