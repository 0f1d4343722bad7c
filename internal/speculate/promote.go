package speculate

import (
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// maxGroup bounds the slots of one promotion.
const maxGroup = 64

// promote makes the next slot in program order the head. One transaction checks its reads and applies its writes.
// Finished slots that follow it directly take part in the same transaction.
func (m *Machine) promote(s *slot) {
	if s.state != running && s.state != finished {
		m.lead(s)
		m.failAsHead(s)
		return
	}
	p := &promotion{m: m}
	if problem := p.add(s); problem != nil {
		m.rewind(s, cause{forerun.Overtaken, problem}, false)
		return
	}
	if s.state == finished && !s.solo {
		p.extend()
	}
	m.apply(p)
}

// promotion is a transaction in the making.
type promotion struct {
	m        *Machine
	slots    []*slot
	past     []SlotID               // programs without a function between them
	writers  map[forerun.Key]*entry // the last writer of each record, of all slots but the last one
	expect   versions
	commands []any
}

// extend takes the finished slots into the group that follow the first one.
func (p *promotion) extend() {
	var past []SlotID
	for n := p.slots[0].nextInLine(); n != nil && len(p.slots) < maxGroup; n = n.nextInLine() {
		switch {
		case n.kind == program:
			past = append(past, n.id)
		case n.state != finished || n.promoting || p.add(n) != nil:
			return
		default:
			p.past, past = append(p.past, past...), nil
		}
	}
}

// add takes one more slot into the group if its reads can still be valid, or tells why they cannot (rule R4).
func (p *promotion) add(s *slot) (problem *forerun.Reason) {
	p.install()
	var room [4]forerun.Seen
	expect := room[:0]
	for _, e := range s.column.order {
		if !e.read {
			continue
		}
		if w := p.writers[e.key]; w != nil {
			if e.origin() != w || e.stamp != w.made {
				return ofRecord(forerun.ReasonStaleForward, e.key)
			}
			if p.m.records.Over(e.seen) { // the promotion executes the write at a later time than the read, when the value has expired
				return ofRecord(forerun.ReasonExpired, e.key)
			}
			continue
		}
		v, exact := e.seenVersion()
		if !exact {
			return ofRecord(forerun.ReasonNeverStored, e.key)
		}
		known, ok := p.expect.of(e.key)
		switch {
		case !ok:
			expect = append(expect, forerun.Seen{Key: e.key, Version: v})
		case known != v:
			return ofRecord(forerun.ReasonOtherVersion, e.key)
		}
	}
	for _, seen := range expect {
		p.expect.add(seen)
	}
	if len(p.slots) == 0 { // most are alone
		p.commands = slices.Clip(s.column.commands)
	} else {
		p.commands = append(p.commands, s.column.commands...)
	}
	p.slots = append(p.slots, s)
	return nil
}

// install notes the writes of the group's last slot, for the next one.
func (p *promotion) install() {
	if len(p.slots) == 0 {
		return
	}
	if p.writers == nil {
		p.writers = make(map[forerun.Key]*entry)
	}
	for _, e := range p.slots[len(p.slots)-1].column.order {
		if e.wrote {
			p.writers[e.key] = e
		}
	}
}

// apply has the transaction applied, or does without if there is nothing in it.
func (m *Machine) apply(p *promotion) {
	launched := Promote{Slots: make([]SlotID, 0, len(p.slots)), Past: p.past, Expect: p.expect.list, Commands: p.commands}
	for _, s := range p.slots {
		launched.Slots = append(launched.Slots, s.id)
	}
	if len(p.expect.list) > 0 || len(p.commands) > 0 {
		for _, s := range p.slots {
			s.promoting = true
		}
		m.do(launched)
		return
	}
	if p.slots[0].state == running { // else no function waits for it
		m.do(launched)
	}
	for _, s := range p.slots {
		m.promotedAt(s, 0, nil)
	}
}

// promoted lets slots go on as heads.
func (m *Machine) promoted(e Promoted) {
	var last map[forerun.Key]*entry
	for _, id := range e.Slots {
		if s := m.hears(id); s != nil {
			for _, en := range s.column.order {
				if en.wrote {
					if last == nil {
						last = make(map[forerun.Key]*entry)
					}
					last[en.key] = en
				}
			}
		}
	}
	for _, id := range e.Slots {
		if s := m.hears(id); s != nil && s.promoting {
			m.promotedAt(s, e.Version, last)
		}
	}
}

// promotedAt makes a slot the head. Its writes have a version now; writes that a later slot of the group overwrote never
// reached the store. Callees that returned to the slot are committed with it.
func (m *Machine) promotedAt(s *slot, v forerun.Version, last map[forerun.Key]*entry) {
	s.promoting, s.solo = false, false
	for _, e := range s.column.order {
		if e.wrote && last[e.key] == e {
			e.flushed = true
			if !e.value.Absent() {
				e.applied = v
			}
		}
	}
	m.lead(s)
	m.settleReads(s)
	for _, c := range s.merged {
		c.head = true
		m.settleReads(c)
		m.forget(c)
		m.do(Commit{Slot: c.id, Result: c.result})
		m.learn(c)
		s.inherit(c)
	}
	s.merged = nil
	m.failAsHead(s)
}

// settleReads keeps the part of a promoted slot's reads that its row, and blamed slots, need.
func (m *Machine) settleReads(s *slot) {
	s.remember()
	m.trust(s)
	s.column.settle()
}

// failAsHead ends a slot that ended when it was not known yet whether that counts.
func (m *Machine) failAsHead(s *slot) {
	if s.late != nil && s.state != finished {
		m.answerAll(s)
		m.end(s, *s.late)
		return
	}
	if s.failure != nil && s.state != finished {
		s.blurred(forerun.Because(forerun.ReasonPlatformError))
		m.end(s, *s.failure)
	}
}

// conflict runs a slot again because its reads are no longer current. The slots of a refused group are promoted one by
// one.
func (m *Machine) conflict(e Conflict) {
	slots := make([]*slot, 0, len(e.Slots))
	for _, id := range e.Slots {
		if s := m.hears(id); s != nil && s.promoting {
			s.promoting, s.solo, m.changed = false, len(e.Slots) > 1, true
			slots = append(slots, s)
		}
	}
	for _, s := range slots {
		if s.outdated != nil && !s.dead {
			m.rewind(s.outdated, changed, false)
		}
	}
	if len(slots) != 1 || len(e.Slots) != 1 || slots[0].dead {
		return
	}
	s := slots[0]
	for _, key := range e.Keys {
		m.do(Blame{Consumer: s.code, Key: key, Others: true})
	}
	why := cause{forerun.Overtaken, conflictOf(e.Keys)}
	if len(e.Keys) == 0 {
		why = cause{forerun.Failed, e.Why}
	}
	m.rewind(s, why, false)
}

// mostNamed bounds the records that one reason names.
const mostNamed = 3

// conflictOf is the reason that others wrote records.
func conflictOf(keys []forerun.Key) *forerun.Reason {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = key.Name
	}
	slices.Sort(list)
	named := slices.Clip(list[:min(mostNamed, len(list))])
	for i, name := range named {
		named[i] = forerun.ShownName(name)
	}
	return forerun.NewReason(forerun.ReasonConflict, forerun.Detail{Records: named, Count: len(list) - len(named)})
}
