package schedule

import (
	"cmp"
	"slices"
	"time"
)

// tenant is the machine's state of a namespace: what it holds, what it was given, and its queues, one for each class that a phase waits for.
//
// served is its virtual time: slab seconds by weight. The tenant with the least is next. A tenant that comes back is not owed the time
// in which it wanted nothing. A tenant that had the slabs for itself owes no more than it could use of them in Hold.
type tenant struct {
	m      *Machine
	name   string
	weight int
	phases int // of it that the machine knows
	held   int // slabs
	served float64
	at     time.Duration // of served
	queues []*queue      // by class
}

// queue is the phases of one class that want slabs: those in order first, and each kind by when it asked.
type queue struct {
	class  Class
	phases []*phase
	due    int // how many of them are in order
}

// hold notes that the tenant has more slabs, or fewer.
func (t *tenant) hold(more int) {
	t.settle()
	t.held += more
}

// settle brings served up to date.
func (t *tenant) settle() {
	t.served += float64(t.held) * (t.m.now - t.at).Seconds() / float64(t.weight)
	t.at = t.m.now
}

// isActive reports whether the tenant has slabs, or wants any.
func (t *tenant) isActive() bool {
	return t.held > 0 || len(t.queues) > 0
}

// wants puts a phase into the queue of its class.
func (t *tenant) wants(p *phase) {
	m := t.m
	if t.settle(); !t.isActive() {
		t.served = max(t.served, m.leastServed())
	}
	i, found := t.findQueue(p.class)
	if !found {
		t.queues = slices.Insert(t.queues, i, &queue{class: p.class})
	}
	t.queues[i].insert(p)
	m.queued++
	if p.place == waiting {
		m.waiting++
	}
}

// insert puts a phase behind those that come before it.
func (q *queue) insert(p *phase) {
	from, to := 0, q.due
	if p.ahead {
		from, to = q.due, len(q.phases)
	} else {
		q.due++
	}
	for to > from && q.phases[to-1].asked > p.asked {
		to--
	}
	q.phases = slices.Insert(q.phases, to, p)
}

// findQueue is where the queue of a class is, or would be.
func (t *tenant) findQueue(c Class) (at int, found bool) {
	return slices.BinarySearchFunc(t.queues, c, func(q *queue, c Class) int { return cmp.Compare(q.class, c) })
}

func (t *tenant) has(p *phase) bool {
	at, found := t.findQueue(p.class)
	return found && slices.Contains(t.queues[at].phases, p)
}

// remove takes a phase out of its queue, and drops that with its last one.
func (t *tenant) remove(p *phase) {
	at, _ := t.findQueue(p.class)
	q := t.queues[at]
	i := slices.Index(q.phases, p)
	if i < q.due {
		q.due--
	}
	if q.phases = slices.Delete(q.phases, i, i+1); len(q.phases) == 0 {
		t.queues = slices.Delete(t.queues, at, at+1)
	}
	t.m.queued--
	if p.place == waiting {
		t.m.waiting--
	}
}

// share is what the tenant would hold by weight with so many more slabs.
func (t *tenant) share(more int) float64 { return float64(t.held+more) / float64(t.weight) }

// leastServed is the virtual time of the active tenant that was served least; 0 if no tenant is active.
func (m *Machine) leastServed() (least float64) {
	found := false
	for _, t := range m.tenants {
		if t.isActive() {
			if t.settle(); !found || t.served < least {
				least, found = t.served, true
			}
		}
	}
	return least
}

// tenantOf finds a tenant, or makes one. It sets its weight.
func (m *Machine) tenantOf(name string, weight int) *tenant {
	i, found := slices.BinarySearchFunc(m.tenants, name, func(t *tenant, name string) int { return cmp.Compare(t.name, name) })
	if !found {
		m.tenants = slices.Insert(m.tenants, i, &tenant{m: m, name: name, weight: 1, at: m.now})
	}
	t := m.tenants[i]
	t.settle()
	t.weight = max(1, weight)
	return t
}

// forget drops the tenants that have no phase, and no more than the others of virtual time.
func (m *Machine) forget() {
	if len(m.tenants) < 2 {
		return
	}
	least := m.leastServed()
	m.tenants = slices.DeleteFunc(m.tenants, func(t *tenant) bool { return t.phases == 0 && (len(m.phases) == 0 || t.served <= least) })
}
