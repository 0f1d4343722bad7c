package embedded

import (
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/command"
)

const (
	sweepInterval = time.Second
	sweepBatch    = 128 // records of one look at the index
)

// sweepLoop reclaims expired records, which nobody sees any more, until Close.
func (s *Store) sweepLoop() {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
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
	err := reader{s.db}.Scan(from, to, false, func(key, _ []byte) bool {
		due = append(due, append([]byte{}, key...))
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

// reclaim removes the record of an entry of the index of expiries, if it has expired, and the entry.
func (s *Store) reclaim(entry []byte, now time.Time) error {
	k, ok := command.ParseExpiryKey(entry)
	if !ok {
		return forerun.Errorf(forerun.Internal, "state", "The index of expiries is damaged.")
	}
	held := lock([]claim{s.keys.claim(k.Space, []byte(k.Name), true)})
	defer held.unlock()
	overlay := command.NewOverlay(reader{s.db})
	if err := command.Reclaim(overlay, k, entry, now); err != nil {
		return err
	}
	_, _, err := s.commit(overlay, false, false)
	return err
}
