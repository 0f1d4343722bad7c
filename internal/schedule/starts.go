package schedule

import (
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Queue is the activations that wait for a sandbox of one pool, and that pool.
type Queue struct {
	Due, Ahead int // activations that wait: in order, and speculative ones
	Sandboxes  int // of the pool, those included that start
	Starting   int // of them
	// Serving are the activations that have sandboxes of the pool, without speculative ones.
	Serving   []forerun.ActivationID
	Service   time.Duration // an activation probably occupies a sandbox for so long
	Start     time.Duration // the last start took so long; 0: not known
	Waited    time.Duration // the activation in order that came first has waited for so long
	SinceLast time.Duration // the pool got its last sandbox so long ago
}

// LongWait is how long a queue waits at most for one more sandbox if there is no room for it. Its activations may wait for each other in ways that
// are not seen at the doors.
const LongWait = 5 * time.Second

// Starts reports whether a queue gets one more sandbox. At most one starts for each activation that waits. The queue gets it in three cases:
//
//   - an activation in order waits, and no sandbox will come to it by itself: the pool has none, or activations have them all that are
//     speculative, or wait at doors;
//   - there is room for one more to run, and to wait would take longer than a start;
//   - an activation in order has waited for LongWait, and the pool got its last sandbox that long ago.
//
// There is room if slabs are free, and no phase wants some. For activations in order speculative phases do not count.
func (m *Machine) Starts(q Queue) bool {
	switch {
	case q.Starting >= q.Due+q.Ahead:
		return false
	case q.Due > 0 && !m.serves(q), m.hasRoom(q.Due > 0) && q.wait() > q.Start:
		return true
	}
	return q.Due > q.Starting && min(q.Waited, q.SinceLast) >= LongWait
}

// serves reports whether a sandbox will come to an activation in order by itself.
func (m *Machine) serves(q Queue) bool {
	return q.Starting > 0 || slices.ContainsFunc(q.Serving, func(id forerun.ActivationID) bool {
		p := m.phases[id]
		return p == nil || p.place != away
	})
}

// wait is how long the last of those that wait probably waits.
func (q Queue) wait() time.Duration {
	if q.Sandboxes == 0 {
		return LongWait
	}
	return time.Duration(q.Due+q.Ahead) * q.Service / time.Duration(q.Sandboxes)
}

// hasRoom reports whether slabs are free that no phase wants; for one in order, whether none in order wants those that are free or a
// speculative one has.
func (m *Machine) hasRoom(inOrder bool) bool {
	for _, t := range m.tenants {
		for _, q := range t.queues {
			if q.due > 0 || !inOrder {
				return false
			}
		}
	}
	return slices.ContainsFunc(m.parts, func(p *part) bool { return p.free() > 0 }) ||
		inOrder && slices.ContainsFunc(m.front, func(p *phase) bool { return p.ahead })
}
