package embedded

import (
	"context"
	"encoding/binary"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// Add writes String records that are not there yet and never expire, and removes others, as one step. Apply does the same with SET and DEL,
// but Add executes no commands: it looks nothing up, and writes each pair once, into the batch. While the disk has no room, Add waits, as
// Apply does with an Owed transaction. No quota refuses it. As with Drop, neither watchers nor announcements tell of the change: it is for
// records that no kept result rests on.
func (s *Store) Add(ctx context.Context, a state.Addition) error {
	if err := s.begins(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	for {
		err := s.add(ctx, a)
		if forerun.KindOf(err) != forerun.Full {
			return err
		}
		if err := s.room.queue(ctx); err != nil {
			return err
		}
	}
}

func (s *Store) add(ctx context.Context, a state.Addition) error {
	c, err := s.addition(a)
	if err != nil {
		return broken(err)
	}
	v, err := s.enterAddition(c, a)
	if err != nil {
		return err
	}
	if a.Lazy {
		return s.disk.written(c.Batch)
	}
	if err := c.Close(); err != nil {
		return broken(err)
	}
	return s.disk.wait(context.WithoutCancel(ctx), v) // it is written: the caller must learn that
}

// addition makes the batch of an addition.
func (s *Store) addition(a state.Addition) (*change, error) {
	size := batchHead
	for _, r := range a.Records {
		key, value := command.PlainSizes(a.Space, r.Name, r.Data)
		size += pairHead + key + value
	}
	for _, name := range a.Gone {
		key, _ := command.PlainSizes(a.Space, name, nil)
		size += pairHead + key
	}
	c := &change{Batch: s.db.NewBatchWithSize(size), bill: bill{books: s.books}, versions: make([]int, 0, len(a.Records))}
	for _, r := range a.Records {
		key, value := command.PlainSizes(a.Space, r.Name, r.Data)
		pair := c.SetDeferred(key, value)
		command.PutPlain(pair.Key, pair.Value, a.Space, r.Name, r.Data)
		if err := pair.Finish(); err != nil {
			return nil, err
		}
		c.versions = append(c.versions, len(c.Repr())-value)
		c.bill.add(pair.Key, int64(key+value))
	}
	for _, name := range a.Gone {
		key, _ := command.PlainSizes(a.Space, name, nil)
		pair := c.DeleteDeferred(key)
		command.PutPlain(pair.Key, nil, a.Space, name, nil)
		if err := pair.Finish(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// The bytes that a batch takes at most beside its keys and values.
const (
	batchHead = 12
	pairHead  = 1 + 2*binary.MaxVarintLen32
)

// enterAddition puts the batch in the log while it holds the records.
func (s *Store) enterAddition(c *change, a state.Addition) (forerun.Version, error) {
	var room [8]claim
	claims := room[:0]
	for _, r := range a.Records {
		claims = append(claims, s.keys.claim(a.Space, r.Name, true))
	}
	for _, name := range a.Gone {
		claims = append(claims, s.keys.claim(a.Space, name, true))
	}
	held := lock(claims)
	defer held.unlock()
	if err := s.room.admit(true); err != nil {
		_ = c.Close() // of what was not applied
		return 0, err
	}
	v, err := s.enterLog(c, a.Lazy)
	if err == nil {
		held.wrote(v, a.Lazy)
	}
	return v, err
}
