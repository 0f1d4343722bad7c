package speculate

import (
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// where a value is to be read.
type where byte

const (
	inStore  where = iota
	inColumn       // of a slot before
	unknown        // that cannot be told yet
)

// found is a value that is visible to a slot: a future entry with its reads and their origins. Or it is the reason why the value is
// unknown.
type found struct {
	where  where
	entry  *entry
	why    forerun.ReasonCode
	by     *slot   // whose write, or call, makes it unknown; nil: more than one slot's
	listed bool    // it is so because of squashes of the past, by that slot or by others
	blamed []blame // squashes of the past that did not
}

// reason is why the value of a record is unknown.
func (f found) reason(key forerun.Key) *forerun.Reason {
	why := ofRecord(f.why, key)
	if f.by != nil {
		why.Slot = f.by.named()
	}
	return why
}

// blame is what lists the read of a record.
func (f found) blame(consumer *slot, key forerun.Key) blame {
	if f.by == nil {
		return blame{consumer: consumer.code, key: key, others: true}
	}
	return blame{producer: f.by.code, consumer: consumer.code, key: key}
}

// find looks for a record in the columns before a slot, the newest first.
func (m *Machine) find(s *slot, key forerun.Key) found {
	m.blamed = m.blamed[:0]
	f := m.findBefore(s, key)
	f.blamed = slices.Clone(m.blamed)
	return f
}

// suspects reports whether a read is to be stalled, and notes which squashes to forgive if it goes well.
func (m *Machine) suspects(b blame) bool {
	listed, blamed := m.predictor.suspects(b)
	if blamed {
		m.blamed = append(m.blamed, b)
	}
	return listed
}

// trust clears past squashes of a slot: the values that it read in spite of them were right.
func (m *Machine) trust(s *slot) {
	for _, e := range s.column.order {
		for _, b := range e.blamed {
			m.predictor.trust(b)
		}
	}
}

func (m *Machine) findBefore(s *slot, key forerun.Key) found {
	if m.suspects(blame{consumer: s.code, key: key, others: true}) {
		return found{where: unknown, listed: true, why: forerun.ReasonHotRecord}
	}
	for x := s; ; {
		list, at := x.beside()
		if f, ok := m.findIn(s, list[:max(at, 0)], key); ok {
			return f
		}
		if x = x.around(); x == nil {
			return found{}
		}
		if x.kind == function { // the caller, as far as it has come
			if f, ok := m.findAt(s, x, key); ok {
				return f
			}
			e := x.column.at(key)
			if e == nil || !e.read || x.head {
				continue
			}
			if e.seen == nil { // by a callee that was skipped
				return found{where: unknown, by: x, why: forerun.ReasonSkippedCallee}
			}
			// The caller's read is fixed for what will be a part of it.
			return found{where: inColumn, entry: &entry{key: key, read: true, seen: e.seen, from: e.from, stamp: e.stamp, version: e.version}}
		}
	}
}

func (m *Machine) findIn(s *slot, list []*slot, key forerun.Key) (found, bool) {
	for _, x := range slices.Backward(list) {
		switch x.kind {
		case function:
			if f, ok := m.findIn(s, x.callees, key); ok {
				return f, true
			}
			if f, ok := m.findAt(s, x, key); ok {
				return f, true
			}
		case program:
			if f, ok := m.findIn(s, x.branches[0].steps, key); ok {
				return f, true
			}
		case fork:
			if f, ok := m.findBranches(s, x, key); ok {
				return f, true
			}
		}
	}
	return found{}, false
}

// findBranches looks in the branches of a fork that is before a slot. Which of two writes is the later one the store decides.
func (m *Machine) findBranches(s, x *slot, key forerun.Key) (f found, ok bool) {
	for _, t := range x.branches {
		g, has := m.findIn(s, t.steps, key)
		switch {
		case has && ok:
			return found{where: unknown, why: forerun.ReasonTwoBranches}, true
		case has:
			f, ok = g, true
		}
	}
	return f, ok
}

// findAt looks at one function before a slot, or around it.
func (m *Machine) findAt(s, x *slot, key forerun.Key) (found, bool) {
	for _, r := range x.requests {
		if r.direct && r.writes.has(key) {
			return found{where: unknown, by: x, why: forerun.ReasonWriteUnderWay}, true
		}
	}
	b := blame{producer: x.code, consumer: s.code, key: key}
	if e := x.column.at(key); e != nil && e.wrote && !x.head {
		m.suspects(b) // it comes in time
		return found{where: inColumn, entry: &entry{key: key, read: true, seen: e.value, from: e, stamp: e.made}}, true
	}
	if x.state == finished || x.waitsFor(s) || !m.suspects(b) {
		return found{}, false
	}
	return found{where: unknown, by: x, listed: true, why: forerun.ReasonAwaitedWrite}, true
}

// waitsFor tells whether s waits for a slot, or for what called that (rule R9).
func (s *slot) waitsFor(x *slot) bool {
	for ; x != nil; x = x.around() {
		if x.caller == s {
			return x.attached
		}
	}
	return false
}
