package speculate

import (
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// request is an operation of a slot that is not answered yet.
type request struct {
	op      OpID
	reads   keys
	writes  keys
	command any
	size    int    // of command
	inexact string // the name of a command whose reply depends on more than versions
	hold    bool
	why     *forerun.Reason // it is held
	first   bool            // nothing that is asked for later is answered until it is done
	call    *Call

	fetching bool
	records  []Record // that were fetched, each in its place among reads; nil: none was
	stale    bool     // a record that is being fetched was written meanwhile,
	again    bool     // and was not looked at since
	stalled  bool     // Stall was said
	doubted  int      // the place among reads, from 1, of the record whose visible value was unknown last; 0: none
	direct   bool     // it is done in the store itself now
}

// maxRequests bounds the unanswered requests of a speculative slot. No function has that many open connections. A slot
// that exceeds it opens and abandons connections in a loop: it runs again as the head, which is answered at once.
const maxRequests = 1024

// request hears of an operation.
func (m *Machine) request(id SlotID, r *request) {
	s := m.hears(id)
	switch {
	case s == nil || s.state != running || s.kind != function:
	case !s.followed && r.call == nil:
		m.do(Reply{Slot: s.id, Op: r.op, Direct: true})
	case len(s.requests) >= maxRequests && !s.head && !s.promoting: // the store's answer to a promotion frees them all
		m.rewind(s, cause{forerun.Failed, forerun.NewReason(forerun.ReasonManyRequests, forerun.Detail{Count: maxRequests})}, true)
	default:
		s.requests = append(s.requests, r)
		m.answerAll(s)
	}
}

// withdrawn handles a speculative slot whose function abandoned a request. Without speculation the request would have
// been answered, so the slot runs again as the head. A head may abandon requests too, and continues.
//
// The writes of a slot that is being promoted may already be applied, so such a slot continues. Its abandoned request is
// dropped for good, because the function may have sent it again (rule R10).
func (m *Machine) withdrawn(e Withdrawn) {
	s := m.hears(e.Slot)
	switch {
	case s == nil || s.state != running:
	case s.head, s.promoting:
		s.requests = slices.DeleteFunc(s.requests, func(r *request) bool { return r.op == e.Op && r.call == nil })
		s.blurred(forerun.Because(forerun.ReasonLooseRequest))
		m.changed = true
	default:
		m.rewind(s, cause{forerun.Failed, forerun.Because(forerun.ReasonWithdrew)}, true)
	}
}

// answerAll answers what can be answered now, in the order of asking.
func (m *Machine) answerAll(s *slot) {
	for i := 0; i < len(s.requests) && !s.dead; {
		r := s.requests[i]
		if m.answer(s, r) {
			s.requests = slices.DeleteFunc(s.requests, func(o *request) bool { return o == r })
			m.changed = true
		} else {
			i++
		}
	}
}

func (m *Machine) answer(s *slot, r *request) (done bool) {
	switch {
	case r.direct || s.promoting:
		return false
	case s.isBehind(r):
		if !s.head {
			m.stall(s, r, forerun.Because(forerun.ReasonBehindListening))
		}
		return false
	case r.call != nil:
		return m.callOut(s, r)
	case s.head:
		m.direct(s, r)
		return false // until Done
	case r.hold:
		m.stall(s, r, r.why)
	case m.isFull(s):
		r.records = nil // free the memory of a command that found no room
		m.stall(s, r, forerun.Because(forerun.ReasonColumnFull))
	default:
		return m.buffer(s, r)
	}
	return false
}

// isBehind tells whether something was asked for before that is to be done first.
func (s *slot) isBehind(r *request) bool {
	for _, o := range s.requests {
		if o == r {
			break
		}
		if o.first {
			return true
		}
	}
	return false
}

func (m *Machine) stall(s *slot, r *request, why *forerun.Reason) {
	if m.rehearses {
		m.breakOff(cause{forerun.Failed, why}, "It asked for something that waits for its turn.")
		return
	}
	if !r.stalled {
		r.stalled = true
		m.do(Stall{Slot: s.id, Op: r.op, Why: why})
	}
}

// direct lets a head reach the store itself, exactly as without speculation. Slots that have read its records too early are squashed
// first.
func (m *Machine) direct(s *slot, r *request) {
	r.direct = true
	for _, key := range r.writes.list {
		m.scan(s, key)
	}
	m.do(Reply{Slot: s.id, Op: r.op, Direct: true})
}

// done notes a head's reads and writes in the store.
func (m *Machine) done(e Done) {
	s := m.hears(e.Slot)
	if s == nil {
		return
	}
	s.requests = slices.DeleteFunc(s.requests, func(r *request) bool { return r.op == e.Op && r.direct })
	for _, key := range e.Wrote { // rule R3; where no keys were named before, only now it is known which
		m.scan(s, key)
	}
	s.note(e.Reads)
	s.judge(e)
	m.yield(s)
	m.changed = true
	if m.mode == Off { // else it is looked at in any case
		m.answerAll(s)
	}
}

// judge notes what a head's operation means for its row.
func (c *conduct) judge(e Done) {
	switch {
	case len(e.Wrote) > 0:
		c.acted(wrote(e.Wrote[0]))
	case e.Outside:
		c.acted(forerun.Because(forerun.ReasonAskedAPI))
	}
	switch {
	case e.Refused:
		c.blurred(forerun.Because(forerun.ReasonLooseCall))
	case !e.Exact && e.Command == "":
		c.blurred(forerun.Because(forerun.ReasonLooseRequest))
	case !e.Exact:
		c.blurred(noVersion(e.Command))
	}
}

func wrote(key forerun.Key) *forerun.Reason {
	return &forerun.Reason{Code: forerun.ReasonWrote, Record: forerun.ShownName(key.Name)}
}

func noVersion(command string) *forerun.Reason {
	return forerun.NewReason(forerun.ReasonNoVersion, forerun.Detail{Command: command})
}

// buffer executes a command of a speculative slot in its column.
func (m *Machine) buffer(s *slot, r *request) (done bool) {
	if r.fetching && !r.again { // a look may be at very much, and nothing of that was written since the last one
		return false
	}
	r.again = false
	if r.stale && !r.fetching {
		r.records, r.stale = nil, false
	}
	if m.doubts(s, r) {
		return false
	}
	if len(r.reads.list) > 0 && r.records == nil && !r.fetching && s.fetches >= maxFetches {
		return false
	}
	var room [4]*entry
	entries, missing, ok := m.gather(s, r, room[:0])
	switch {
	case !ok:
		return false
	case len(missing) > 0:
		if !r.fetching {
			r.fetching = true
			s.fetches++
			m.do(Fetch{Slot: s.id, Op: r.op, Keys: missing})
		}
		return false
	}
	m.images = m.images[:0]
	for _, e := range entries {
		m.images = append(m.images, e.image())
	}
	reply, writes := m.records.Execute(r.command, m.images)
	clear(m.images)
	if later, ok := reply.(Later); ok {
		r.hold, r.why, r.records = true, later.Why, nil
		m.stall(s, r, r.why)
		return false
	}
	for _, e := range entries {
		if s.column.at(e.key) == nil {
			s.column.add(e)
		}
	}
	m.write(s, r, reply, writes)
	return true
}

// gather adds the records that a command reads to entries: the entries of the slot's own column, or new ones. It appends
// to missing every record that must be fetched and is not being fetched. It stalls the command and returns false if the
// visible value of a record is not known.
func (m *Machine) gather(s *slot, r *request, entries []*entry) (_ []*entry, missing []forerun.Key, ok bool) {
	for i, key := range r.reads.list {
		if e := s.column.at(key); e != nil {
			record, ok := r.record(i)
			switch {
			case e.image() != nil:
			case !ok:
				missing = append(missing, key)
				continue
			case record.Version != e.version:
				m.doubt(s, r, key, found{why: forerun.ReasonChangedSinceCall})
				return nil, nil, false
			default:
				s.column.see(e, record.Image)
			}
			entries = append(entries, e)
			continue
		}
		f := m.find(s, key)
		switch f.where {
		case unknown:
			r.doubted = i + 1
			m.doubt(s, r, key, f)
			return nil, nil, false
		case inColumn:
			f.entry.blamed = f.blamed
			entries = append(entries, f.entry)
		case inStore:
			record, ok := r.record(i)
			if !ok {
				missing = append(missing, key)
				continue
			}
			entries = append(entries, &entry{key: key, read: true, seen: record.Image, version: record.Version, blamed: f.blamed})
		}
	}
	return entries, missing, true
}

// doubts reports whether what kept a command last still does. It is looked at often, and may read very many other records.
func (m *Machine) doubts(s *slot, r *request) bool {
	if r.doubted == 0 {
		return false
	}
	key := r.reads.list[r.doubted-1]
	return s.column.at(key) == nil && m.find(s, key).where == unknown
}

// doubt stalls a command, because the visible value of a record is unknown.
func (m *Machine) doubt(s *slot, r *request, key forerun.Key, f found) {
	if r.stalled { // stalled requests are examined often
		return
	}
	if f.listed {
		m.predictor.spend(f.blame(s, key))
	}
	m.stall(s, r, f.reason(key))
}

// record returns the fetched record of the read at a place.
func (r *request) record(place int) (record Record, ok bool) {
	if r.records == nil {
		return Record{}, false
	}
	record = r.records[place]
	return record, record.Image != nil
}

// take notes records that were fetched, which come in the order of reads.
func (r *request) take(records []Record) {
	if r.records == nil {
		r.records = make([]Record, len(r.reads.list))
	}
	for i, key := range r.reads.list {
		if len(records) > 0 && records[0].Key == key {
			r.records[i], records = records[0], records[1:]
		}
	}
}

// maxFetches bounds the operations of a slot that get copies of records at a time. A function that asks on many connections may not have
// room for all copies, nor has the server.
const maxFetches = 4

// fetched takes the store's records for an operation. A slot that may ask the store itself needs no copy.
func (m *Machine) fetched(e Fetched) {
	s := m.hears(e.Slot)
	if s == nil {
		return
	}
	s.fetches--
	m.changed = true
	for _, r := range s.requests {
		if r.op != e.Op || !r.fetching {
			continue
		}
		r.fetching = false
		switch {
		case s.head || s.promoting:
		case e.Failed:
			r.hold, r.why = true, forerun.Because(forerun.ReasonLargeCopy)
		default:
			r.take(e.Records)
		}
	}
}

// write installs the records that a command made, squashes the slots that read them too early, and answers, as one step (rule R3).
func (m *Machine) write(s *slot, r *request, reply any, writes []Image) {
	if r.inexact != "" {
		s.blurred(noVersion(r.inexact))
	}
	if writes != nil && len(r.writes.list) > 0 {
		s.column.commands = append(s.column.commands, r.command)
		s.column.grow(commandCost + r.size)
		s.acted(wrote(r.writes.list[0]))
	}
	for i, image := range writes {
		if image != nil {
			m.stamp++
			s.column.write(r.writes.list[i], image, m.stamp)
		}
	}
	for i, image := range writes {
		if image != nil {
			m.scan(s, r.writes.list[i])
		}
	}
	m.do(Reply{Slot: s.id, Op: r.op, Data: reply})
}

// scan squashes the slots that read a record before slot s wrote it, each with all slots that follow it (out-of-order RAW). On each line
// it ends at the first slot that wrote the record itself. It still looks at other lines, and behind the join (rule R2).
func (m *Machine) scan(s *slot, key forerun.Key) {
	c := scanner{m: m, writer: s, key: key}
	over := c.list(s.callees)
	for x := s; ; {
		if over {
			if x = x.innermostFork(); x == nil {
				return
			}
		}
		list, at := x.beside()
		if over = len(list) > 0 && c.list(list[at+1:]); over {
			continue
		}
		if x = x.around(); x == nil {
			return
		}
	}
}

type scanner struct {
	m      *Machine
	writer *slot
	key    forerun.Key
	passed []*entry // writes behind the writer's
}

// list examines slots in program order. It reports whether the search ended: a slot wrote the record, or was squashed.
func (c *scanner) list(slots []*slot) (over bool) {
	var room [8]*slot
	for _, x := range append(room[:0], slots...) { // squashes change the list
		switch {
		case x.dead:
			return true
		case x.kind == function:
			over = c.function(x)
		case x.kind == program:
			over = c.list(x.branches[0].steps)
		default:
			for _, t := range x.branches {
				c.list(t.steps)
			}
			over = x.dead
		}
		if over {
			return true
		}
	}
	return false
}

func (c *scanner) function(x *slot) (over bool) {
	for _, r := range x.requests {
		if (r.fetching || r.records != nil) && r.reads.has(c.key) {
			r.stale, r.again = true, true
		}
	}
	if x.state == checking && slices.ContainsFunc(x.row.Reads, func(read forerun.Seen) bool { return read.Key == c.key }) {
		x.overtaken = true
	}
	e := x.column.at(c.key)
	if e != nil && e.read && !x.head && !x.promoting && !slices.Contains(c.passed, e.origin()) {
		c.m.do(Blame{Producer: c.writer.code, Consumer: x.code, Key: c.key})
		why := ofRecord(forerun.ReasonStaleRead, c.key)
		why.Slot = c.writer.named()
		c.m.rewind(x, cause{forerun.StaleRead, why}, false)
		return true
	}
	if e != nil && e.wrote && !x.head {
		c.passed = append(c.passed, e)
		return true
	}
	return c.list(x.callees)
}
