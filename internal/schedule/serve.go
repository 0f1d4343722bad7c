package schedule

import (
	"cmp"
	"slices"
)

// serve gives slabs to those that want them, until there are none for any of them.
//
// A phase comes to the front if slabs are free for it, or if those in front can make way. For a phase that made way in this step only
// speculative ones do so again. So the loop ends.
func (m *Machine) serve() {
	for m.queued > 0 {
		if !m.serveOne() {
			break
		}
	}
	m.letInLight()
}

// serveOne brings the first phase to the front for which that can be done.
func (m *Machine) serveOne() bool {
	for _, c := range m.candidates() {
		p := c.phase
		if p.need() <= p.part.free() {
			m.begins(p)
			return true
		}
		if victims := m.victims(p); victims != nil {
			for _, v := range victims {
				m.demote(v)
			}
			m.begins(p)
			return true
		}
	}
	return false
}

// slabs is how many there are.
func (m *Machine) slabs() (n int) {
	for _, p := range m.parts {
		n += p.slabs
	}
	return n
}

// candidate is the first of a queue, with what its turn depends on.
type candidate struct {
	phase   *phase
	aged    bool
	backlog int // slabs that its queue wants
}

// candidates are the firsts of all queues in the order of their turns:
//
//  1. those in order before those ahead;
//  2. the tenant that was served least, then the tenant that holds least;
//  3. those that have waited longer than patience, the oldest first;
//  4. the queue with the greatest backlog, then the oldest.
func (m *Machine) candidates() (list []candidate) {
	least := m.leastServed()
	for _, t := range m.tenants {
		t.settle()
		t.served = min(t.served, least+Hold.Seconds()*float64(m.slabs())/float64(t.weight))
		for _, q := range t.queues {
			list = m.firsts(list, q.phases[:q.due])
			list = m.firsts(list, q.phases[q.due:])
		}
	}
	slices.SortFunc(list, before)
	return list
}

// firsts adds the first phase of a queue. If that phase is light and runs in the back, it adds the first one that waits, too. Only a light phase that
// waits takes slabs from others.
func (m *Machine) firsts(list []candidate, queue []*phase) []candidate {
	if len(queue) == 0 {
		return list
	}
	p := queue[0]
	list = append(list, m.candidate(p, len(queue)))
	if p.place == waiting || p.class > light {
		return list
	}
	if i := slices.IndexFunc(queue, func(p *phase) bool { return p.place == waiting }); i >= 0 {
		list = append(list, m.candidate(queue[i], len(queue)))
	}
	return list
}

func (m *Machine) candidate(p *phase, queued int) candidate {
	return candidate{phase: p, aged: m.now-p.asked >= patience, backlog: queued * int(p.class)}
}

func before(a, b candidate) int {
	p, q := a.phase, b.phase
	if p.ahead != q.ahead {
		return first(!p.ahead)
	}
	if t, u := p.tenant, q.tenant; t != u {
		return cmp.Or(cmp.Compare(t.served, u.served), cmp.Compare(t.share(0), u.share(0)), cmp.Compare(t.name, u.name))
	}
	if a.aged != b.aged {
		return first(a.aged)
	}
	if !a.aged && a.backlog != b.backlog {
		return cmp.Compare(b.backlog, a.backlog)
	}
	return cmp.Or(cmp.Compare(p.asked, q.asked), cmp.Compare(q.class, p.class))
}

func first(is bool) int {
	if is {
		return -1
	}
	return 1
}

// victims are phases in front that make way for p, in the fewest steps; nil if they would not free enough. These make way:
//
//  1. for a phase in order, speculative ones (C5), the newest first;
//  2. for a phase that is not light, light ones, which can do with the back;
//  3. those that have used up their quantum, or need less than p and overtook it after patience, the oldest first;
//  4. for a phase in order, phases of a tenant that holds more by weight than p's tenant would, the newest first.
//
// Only Microtask has 2, 3 and 4. A light phase that runs in the back takes slabs by 1 alone. Any phase that has used up its quantum makes way by 3.
// Other phases make way by 3 and 4 only if they are of p's own tenant, or of a tenant that was served more. A phase that came in this step stays.
func (m *Machine) victims(p *phase) []*phase {
	v := taking{phase: p, free: p.part.free(), need: p.need()}
	if !p.ahead && v.take(slices.Backward(m.front), func(f *phase) bool { return f.ahead }) {
		return v.taken
	}
	if m.settings.Policy != Microtask || p.moved == m.step || p.class <= light && p.place == back {
		return nil
	}
	losesLittle := func(f *phase) bool { return f.class <= light && (f.ahead || !p.ahead) }
	if p.class > light && v.take(slices.Backward(m.front), losesLittle) {
		return v.taken
	}
	owes := func(f *phase) bool { return f.tenant == p.tenant || p.tenant.served <= f.tenant.served }
	spent := func(f *phase) bool {
		overtook := f.came != m.step && owes(f) && f.held < v.need && f.since >= p.asked+patience
		return (m.isSpent(f) || overtook) && (f.ahead || !p.ahead)
	}
	if v.take(slices.All(m.front), spent) {
		return v.taken
	}
	share := p.tenant.share(v.need)
	over := func(f *phase) bool {
		return f.came != m.step && f.tenant != p.tenant && owes(f) && f.tenant.share(-v.takenOf(f.tenant)) > share
	}
	if !p.ahead && v.take(slices.Backward(m.front), over) {
		return v.taken
	}
	return nil
}

// taking is the choice of phases that make way.
type taking struct {
	phase      *phase
	free, need int
	taken      []*phase
}

// take takes phases that may be taken until there are slabs enough, and reports whether there are.
func (t *taking) take(from func(yield func(int, *phase) bool), may func(*phase) bool) bool {
	for _, f := range from {
		if f.part == t.phase.part && !slices.Contains(t.taken, f) && may(f) {
			t.taken = append(t.taken, f)
			if t.free += f.held; t.free >= t.need {
				return true
			}
		}
	}
	return false
}

// takenOf is how many slabs are taken from a tenant.
func (t *taking) takenOf(of *tenant) (slabs int) {
	for _, f := range t.taken {
		if f.tenant == of {
			slabs += f.held
		}
	}
	return slabs
}

// letInLight lets phases that need little in at once, in the back, as long as they need no more than the machine has, together.
func (m *Machine) letInLight() {
	if m.settings.Policy != Microtask || m.waiting == 0 {
		return
	}
	room := m.parts[0].slabs
	for _, t := range m.tenants {
		for _, q := range t.queues {
			if q.class > light {
				break
			}
			for _, p := range q.phases {
				if p.place == back {
					room -= int(p.class)
				}
			}
		}
	}
	for _, t := range m.tenants {
		for _, q := range t.queues {
			if q.class > light {
				break
			}
			for _, p := range q.phases[:q.due] {
				if p.place == waiting && int(p.class) <= room {
					room -= int(p.class)
					m.waiting--
					p.place = back
					m.touch(p)
				}
			}
		}
	}
}
