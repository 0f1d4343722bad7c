package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/command"
)

const (
	sweepInterval = time.Second
	sweepBatch    = 128 // records of one look at the index
)

// sweepLoop reclaims expired records, which nobody sees any more, and locks that nobody uses, until Close.
func (s *Store) sweepLoop() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		s.keys.letGo(forerun.Version(s.disk.synced.Load()))
		for s.sweep() == sweepBatch && s.disk.failure() == nil {
			select {
			case <-s.stop:
				return
			default:
			}
		}
	}
}

// sweep reclaims up to sweepBatch expired records, and returns how many it has tried.
func (s *Store) sweep() int {
	now := s.now()
	from, to := command.DueRange(now)
	var due [][]byte
	err := reader{db: s.db}.Scan(from, to, false, func(key, _ []byte) bool {
		if _, known := s.damaged.Load(string(key)); !known {
			due = append(due, append([]byte{}, key...))
		}
		return len(due) < sweepBatch
	})
	for i, entry := range due {
		if err == nil {
			err = s.reclaim(entry, now)
		}
		if err != nil {
			return i // the next round tries again, and whoever reads the record is told
		}
	}
	return len(due)
}

// reclaim removes the record of an entry of the index of expiries, if it has expired, and the entry. What is damaged stays, so that
// who asks for it is told, and is not tried again: those behind it would never be reclaimed.
func (s *Store) reclaim(entry []byte, now time.Time) error {
	k, ok := command.ParseExpiryKey(entry)
	if !ok {
		s.leave(entry, errors.New("the index of expiries is damaged"))
		return nil
	}
	held := lock([]claim{s.keys.claim(k.Space, []byte(k.Name), true)})
	defer held.unlock()
	overlay := s.counting(command.NewOverlay(context.Background(), reader{db: s.db}))
	err := command.Reclaim(overlay, k, entry, now)
	if errors.Is(err, command.ErrDamaged) || pebble.IsCorruptionError(err) {
		s.leave(entry, err)
		return nil
	}
	if err != nil {
		return err
	}
	_, _, err = s.commit(context.Background(), overlay, false, false)
	return err
}

// leave leaves an entry of the index of expiries as it is until the next start.
func (s *Store) leave(entry []byte, why error) {
	s.damaged.Store(string(entry), true)
	fmt.Fprintf(os.Stderr, "store: what has expired as %.100q is not removed: %v\n", entry, why)
}
