package embedded

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/internal/state/places"
)

// reader is Pebble as commands read it.
type reader struct {
	db pebble.Reader
	of *command.Overlay // to whose work the copying of long values belongs; nil: to none
}

// Get returns a copy of a value.
func (r reader) Get(key []byte) ([]byte, bool, error) {
	value, closer, err := r.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, broken(err)
	}
	var given error
	if r.of != nil && len(value) >= places.Step {
		given = r.of.Proceed(len(value))
	}
	if given == nil {
		value = append(make([]byte, 0, len(value)), value...)
	}
	if err := closer.Close(); err != nil {
		return nil, false, broken(err)
	}
	return value, given == nil, given
}

// Scan walks a range as of one moment.
func (r reader) Scan(from, to []byte, reverse bool, f func(key, value []byte) bool) (err error) {
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return broken(err)
	}
	defer func() {
		if closeErr := it.Close(); err == nil && closeErr != nil {
			err = broken(closeErr)
		}
	}()
	return walk(it, reverse, f)
}

func walk(it *pebble.Iterator, reverse bool, f func(key, value []byte) bool) error {
	first, next := it.First, it.Next
	if reverse {
		first, next = it.Last, it.Prev
	}
	for valid := first(); valid; valid = next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return broken(err)
		}
		if !f(it.Key(), value) {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return broken(err)
	}
	return nil
}

// lookup is Pebble as the commands of one step read it. While a Fresh command is executed it finds nothing.
type lookup struct {
	reader
	fresh bool
}

// Get returns a copy of a value.
func (l *lookup) Get(key []byte) ([]byte, bool, error) {
	if l.fresh {
		return nil, false, nil
	}
	return l.reader.Get(key)
}

// Scan walks a range as of one moment.
func (l *lookup) Scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error {
	if l.fresh {
		return nil
	}
	return l.reader.Scan(from, to, reverse, f)
}

// Get reads records.
func (s *Store) Get(ctx context.Context, keys ...forerun.Key) ([]state.Record, error) {
	if err := s.begins(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	claims := make([]claim, 0, len(keys))
	for _, k := range keys {
		claims = append(claims, s.keys.claim(k.Space, []byte(k.Name), false))
	}
	records, strict, err := s.readLocked(claims, keys)
	if err != nil {
		return nil, err
	}
	return records, s.disk.wait(ctx, strict)
}

// Versions reads the versions of records, and copies none of them.
func (s *Store) Versions(ctx context.Context, keys ...forerun.Key) ([]state.Expect, error) {
	now, _, err := s.Standing(ctx, keys...)
	return now, err
}

// Standing reads the versions of records, and whether writes alone change them.
func (s *Store) Standing(ctx context.Context, keys ...forerun.Key) (now []state.Expect, lasting bool, err error) {
	if err := s.begins(ctx); err != nil {
		return nil, false, err
	}
	defer s.gate.leave()
	now = make([]state.Expect, len(keys))
	for i, k := range keys {
		now[i].Key = k
	}
	lasting, strict, err := s.versionsLocked(now)
	if err != nil {
		return nil, false, err
	}
	return now, lasting, s.disk.wait(ctx, strict)
}

func (s *Store) versionsLocked(expect []state.Expect) (lasting bool, strict forerun.Version, err error) {
	held := lock(s.claimExpected(expect, 0))
	defer held.unlock()
	now := s.now()
	lasting = true
	for i, e := range expect {
		version, ends, err := (reader{db: s.db}).version(e.Key, now)
		if err != nil {
			return false, 0, err
		}
		expect[i].Version, lasting = version, lasting && !ends
	}
	_, strict = held.rests()
	return lasting, strict, nil
}

// version is the version of a record at a time; 0 if it is not there. ends reports whether its life ends, or has ended and it is still stored.
func (r reader) version(key forerun.Key, now time.Time) (v forerun.Version, ends bool, err error) {
	stored, closer, err := r.db.Get(command.RecordKey(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, broken(err)
	}
	record, err := command.Decode(stored, now)
	if closeErr := closer.Close(); err == nil && closeErr != nil {
		err = broken(closeErr)
	}
	return record.Version, record.Version == 0 || !record.Expires.IsZero(), err
}

// begins opens the gate for a call whose context has not ended.
func (s *Store) begins(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.gate.enter()
}

func (s *Store) readLocked(claims []claim, keys []forerun.Key) ([]state.Record, forerun.Version, error) {
	held := lock(claims)
	defer held.unlock()
	now := s.now()
	records := make([]state.Record, len(keys))
	for i, k := range keys {
		var err error
		if records[i], err = find(reader{db: s.db}, k, now); err != nil {
			return nil, 0, err
		}
	}
	_, strict := held.rests()
	return records, strict, nil
}

// Fetch takes images of records. It keeps nobody waiting.
func (s *Store) Fetch(ctx context.Context, keys ...forerun.Key) ([]state.Fetched, error) {
	if err := s.begins(ctx); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	if len(keys) == 1 { // most are Strings, for which a snapshot would cost half as much again
		if fetched, ok, err := command.TakeWhole(reader{db: s.db}, s.now(), keys[0]); ok || err != nil {
			return []state.Fetched{fetched}, err
		}
	}
	snapshot := s.db.NewSnapshot()
	fetched, err := command.TakeImages(reader{db: snapshot}, s.now(), keys)
	if closeErr := snapshot.Close(); err == nil && closeErr != nil {
		err = broken(closeErr)
	}
	return fetched, err
}

// Scan walks String records. It holds the moment's files on disk until it ends.
func (s *Store) Scan(ctx context.Context, r state.Range) iter.Seq2[state.Entry, error] {
	return func(yield func(state.Entry, error) bool) {
		if err := s.begins(ctx); err != nil {
			yield(state.Entry{}, err)
			return
		}
		defer s.gate.leave()
		if err := s.scan(ctx, r, yield); err != nil {
			yield(state.Entry{}, err)
		}
	}
}

// scan returns an error that yield has not been told.
func (s *Store) scan(ctx context.Context, r state.Range, yield func(state.Entry, error) bool) (err error) {
	from, to := command.RecordRange(r.Space, r.From, r.To)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return broken(err)
	}
	now := s.now()
	_, strict := s.commits.newest() // not before the iterator: what it sees was written up to here
	var bad error                   // what ended the walk, if not its end
	stopped := false
	if err = s.disk.wait(ctx, strict); err == nil {
		err = walk(it, r.Reverse, func(key, stored []byte) bool {
			var entry state.Entry
			if entry, bad = entryOf(key, stored, now); bad == nil {
				bad = context.Cause(ctx)
			}
			stopped = bad == nil && entry.Version != 0 && !yield(entry, nil)
			return bad == nil && !stopped
		})
	}
	closeErr := it.Close()
	if stopped {
		return nil // nobody listens any more
	}
	for _, e := range []error{err, bad, closeErr} {
		if e != nil {
			return e
		}
	}
	return nil
}

// entryOf makes the entry of a stored record; its version is 0 if it is no String or has expired.
func entryOf(key, stored []byte, now time.Time) (state.Entry, error) {
	k, ok := command.ParseRecordKey(key)
	r, err := command.Decode(stored, now)
	if err != nil || !ok || r.Type != state.String {
		return state.Entry{}, err
	}
	return state.Entry{Name: k.Name, Version: r.Version, Data: append([]byte{}, r.Data...)}, nil
}
