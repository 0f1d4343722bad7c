package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"forerun.dev/forerun/internal/state/command"
)

// How room is made on a full disk. A removal is a small write at first: the disk gets the room back when Pebble rewrites the tables that
// hold the removed pairs, which can take hours on a store that takes nothing new. So while the disk is nearly full, the store notes where
// pairs are removed, and has Pebble rewrite the tables there at once and without rests.
//
// A rewrite needs room itself, for what stays of those tables. It is not begun if that would take more than half of what is free: Pebble
// would wait in the middle of it.

const reclaimTime = 2 * time.Second // for one range, until what was removed meanwhile is flushed

// reclaims are the ranges of keys in which pairs were removed while there was little room.
type reclaims struct {
	mu    sync.Mutex // guards spans
	spans map[string]*removed
}

// removed is about what was removed of the keys with one prefix and space.
type removed struct {
	first, last []byte
	bytes       int64
}

// note notes that the pairs from one key to another, which have the same prefix and space, were removed.
func (r *reclaims) note(first, last []byte, size int64) {
	space, _, ok := command.SplitKey(first)
	if !ok {
		return
	}
	name := string(first[:1]) + string(space)
	r.mu.Lock()
	defer r.mu.Unlock()
	span := r.spans[name]
	if span == nil {
		if r.spans == nil {
			r.spans = make(map[string]*removed)
		}
		r.spans[name] = &removed{bytes.Clone(first), bytes.Clone(last), size}
		return
	}
	span.bytes += size
	if bytes.Compare(first, span.first) < 0 {
		span.first = bytes.Clone(first)
	}
	if bytes.Compare(last, span.last) > 0 {
		span.last = bytes.Clone(last)
	}
}

func (r *reclaims) take() (spans []*removed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, span := range r.spans {
		spans = append(spans, span)
	}
	r.spans = nil
	return spans
}

// reclaimLoop makes room where something was removed, until Close.
func (s *Store) reclaimLoop() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.room.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		spans := s.reclaims.take()
		if len(spans) == 0 || !s.room.low.Load() {
			continue
		}
		if err := s.rewrite(ctx, spans); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "store: the room of what was removed is not free yet: %v\n", err)
		}
		s.room.look()
	}
}

// rewrite has Pebble rewrite the tables of ranges in which pairs were removed.
func (s *Store) rewrite(ctx context.Context, spans []*removed) error {
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, span := range spans {
		behind := append(bytes.Clone(span.last), 0)
		levels, err := s.db.SSTables(pebble.WithKeyRangeFilter(span.first, behind))
		if err != nil {
			return err
		}
		stays := -span.bytes
		for _, tables := range levels {
			for _, table := range tables {
				stays += int64(table.Size)
			}
		}
		if free, _, known := s.room.measure(); known && stays > int64(free/2) {
			s.reclaims.note(span.first, span.last, span.bytes) // when more is removed, or more is free
			continue
		}
		err = s.compact(ctx, span.first, behind)
		if isFull(err) || errors.Is(err, context.DeadlineExceeded) {
			s.reclaims.note(span.first, span.last, span.bytes)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// compact has Pebble rewrite the tables of a range. It does not wait long: others may be rewritten again and again for which there is no
// room, until what was removed meanwhile is flushed.
func (s *Store) compact(ctx context.Context, first, behind []byte) error {
	ctx, cancel := context.WithTimeout(ctx, reclaimTime)
	defer cancel()
	return s.db.Compact(ctx, first, behind, false)
}
