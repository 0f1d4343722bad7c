package native

import (
	"slices"
	"sync/atomic"
)

// shut remembers that nothing goes out of a sandbox: where a Hold found no way out, there is none as long as nothing was let go
// and nothing was reset. Most speculative activations follow one that had ended when it was promoted, and need no look.
type shut struct {
	changes atomic.Int64 // releases, and resets that the helper made, so far
	since   int64        // changes, as of the Hold that found no way out; -1: none did. Of Hold
	hosts   []string     // that it was asked to let through. Of Hold
}

func (s *shut) lasts(changes int64, hosts []string) bool {
	return s.since == changes && slices.Equal(s.hosts, hosts)
}

// undo is called when something changes, before a Hold can come that is to see it.
func (s *shut) undo() { s.changes.Add(1) }
