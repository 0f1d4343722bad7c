package embedded

import (
	"context"
	"errors"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// What EraseSpace removes in one step: so many records at most, and with the one by which their names get so long.
const (
	eraseBatch = 1000
	eraseSize  = 1 << 20
)

// EraseSpace removes the records of a space, whatever their type. One that is added meanwhile may stay. It is in the log when
// EraseSpace returns nil; otherwise some are removed and others are not.
func (s *Store) EraseSpace(ctx context.Context, space string) error {
	from := ""
	for {
		names, err := s.someNames(ctx, space, from)
		if err != nil || len(names) == 0 {
			return err
		}
		from = string(names[len(names)-1]) + "\x00" // behind what is gone, which would have to be walked over again
		del := state.Command{Space: space, Args: append([][]byte{[]byte("DEL")}, names...)}
		if _, err := s.Apply(ctx, state.Txn{Ops: []state.Command{del}, Lazy: true}); err != nil {
			return err
		}
	}
}

// someNames lists the names of up to a batch of a space's records. Those that have expired are left to the sweep.
func (s *Store) someNames(ctx context.Context, space, from string) (names [][]byte, err error) {
	if err := s.begins(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	first, last := command.RecordRange(space, from, "")
	now := s.now()
	var damaged error
	size := 0
	err = reader{db: s.db}.Scan(first, last, false, func(key, stored []byte) bool {
		var record state.Record
		if record, damaged = command.Decode(stored, now); damaged != nil {
			return false
		}
		if k, ok := command.ParseRecordKey(key); ok && record.Version != 0 {
			names = append(names, []byte(k.Name))
			size += len(k.Name)
		}
		return len(names) < eraseBatch && size < eraseSize
	})
	return names, errors.Join(err, damaged)
}
