package schedule

import (
	"fmt"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// place is where a phase is.
//
//	waiting -> front, back       it is let in
//	any     -> waiting, back     its activation begins the next one
//	front   -> back              others take its slabs
//	back    -> front             slabs are free for it
//	front, back -> away -> back  it waits at a door, and is answered, or computes
type place int

const (
	waiting place = iota // in its tenant's queue; it does not run
	front                // it runs and holds slabs
	back                 // it runs with less weight; in its tenant's queue for slabs
	away                 // it waits at a door
)

func (p place) String() string { return [...]string{"waiting", "front", "back", "away"}[p] }

// phase is the present phase of an activation.
//
// Invariants: held > 0 only in front; it is in a queue only while waiting or in the back; begun is false only while waiting.
type phase struct {
	id     forerun.ActivationID
	tenant *tenant
	part   *part
	kind   string
	class  Class
	ahead  bool
	place  place
	held   int           // slabs
	asked  time.Duration // since when it wants slabs
	since  time.Duration // when it came to the front
	moved  int           // the step in which others took its slabs last
	came   int           // the step in which it came to the front last

	cpu     time.Duration // used since it was let in
	atFront time.Duration // cpu as it came to the front
	seen    time.Duration // cpu at the last look at its rate
	looked  time.Duration // when that was

	entered time.Duration // when it was let in
	left    time.Duration // when it went away
	idle    time.Duration // for how long it was away before
	delayed time.Duration // for how long it wanted a processor since it was let in, and had none

	gauged  bool // seen is of the time since it is away
	begun   bool // the caller knows that it is let in
	behind  bool // the caller knows it in the back
	touched bool // its place may have changed in this step
}

// need is how many slabs it takes: a class greater than what there is takes all.
func (p *phase) need() int { return min(int(p.class), p.part.slabs) }

// isSpent reports whether others may take its slabs.
func (m *Machine) isSpent(p *phase) bool {
	return p.cpu-p.atFront >= m.habits.quantum(p.kind) || m.now-p.since >= Hold
}

// begins moves a phase out of its queue to the front. There are slabs for it.
func (m *Machine) begins(p *phase) {
	p.tenant.remove(p)
	p.place, p.came = front, m.step
	if p.moved != m.step { // else its turn goes on
		p.since, p.atFront = m.now, p.cpu
	}
	p.held = p.need()
	p.part.used += p.held
	p.tenant.hold(p.held)
	m.front = append(m.front, p)
	m.touch(p)
}

// leaves takes a phase from where it is, and its slabs.
func (m *Machine) leaves(p *phase) {
	switch p.place {
	case waiting, back:
		p.tenant.remove(p)
	case front:
		m.front = slices.DeleteFunc(m.front, func(f *phase) bool { return f == p })
		p.part.used -= p.held
		p.tenant.hold(-p.held)
		p.held = 0
	case away:
		m.doors = slices.DeleteFunc(m.doors, func(d *phase) bool { return d == p })
	}
	m.touch(p)
}

// asksAgain puts a phase into its queue: it waits, or runs in the back meanwhile.
func (m *Machine) asksAgain(p *phase, where place) {
	p.place, p.asked = where, m.now
	p.tenant.wants(p)
	m.touch(p)
}

// returns has a phase go on that was away.
func (m *Machine) returns(p *phase) {
	p.idle += m.now - p.left
	m.leaves(p)
	m.asksAgain(p, back)
}

// needed is how many slabs a phase used of the time in which it could run; 0: that is not known, or too short to tell.
func (m *Machine) needed(p *phase) float64 {
	idle := p.idle
	if p.place == away {
		idle += m.now - p.left
	}
	could := m.now - p.entered - idle - p.delayed
	if p.cpu <= 0 || could <= 0 {
		return 0
	}
	return float64(p.cpu) / float64(max(could, p.cpu/mostProcessors)) * float64(Core)
}

// demote moves a phase from the front to the back.
func (m *Machine) demote(p *phase) {
	m.leaves(p)
	m.demoted++
	p.moved = m.step
	m.asksAgain(p, back)
}

// gauge holds a phase to its class. One that uses far more gets the class of what it uses, and asks again. One that computes while it is away has
// other threads than the one that waits, and asks again, too.
func (m *Machine) gauge(p *phase) {
	if p.place == away && !p.gauged {
		p.seen, p.looked, p.gauged = p.cpu, m.now, true
	}
	passed := m.now - p.looked
	if passed < leastQuantum || !p.begun {
		return
	}
	uses := float64(p.cpu-p.seen) / float64(passed) * float64(Core)
	p.seen, p.looked = p.cpu, m.now
	switch {
	case uses > liar*float64(p.class):
		m.reclassify(p, classFor(uses))
	case p.place == away && uses >= idles*float64(p.class):
		m.returns(p)
	}
}

// reclassify gives a phase another class.
func (m *Machine) reclassify(p *phase, class Class) {
	if p.place == front {
		p.moved = m.step
	}
	if p.place == away {
		p.idle += m.now - p.left
	}
	m.leaves(p)
	p.class, p.part = class, m.partOf(class)
	m.reclassified++
	m.out = append(m.out, Decision{Activation: p.id, Kind: Reclassified, Class: p.class})
	m.asksAgain(p, back)
}

// liar is how many times its class a phase uses before it gets another class.
const liar = 1.5

// idles is the part of its class from which a phase that is away computes.
const idles = 0.5

// invariant returns an error if the machine's books are wrong, for the tests.
func (m *Machine) invariant() error {
	used := make(map[*part]int)
	for id, p := range m.phases {
		if (p.place == front) != (p.held > 0) || p.place != waiting && !p.begun || p.id != id {
			return fmt.Errorf("%s is %v with %d slabs, begun %v", id, p.place, p.held, p.begun)
		}
		if queued := p.tenant.has(p); queued != (p.place == waiting || p.place == back) {
			return fmt.Errorf("%s is %v, and in a queue: %v", id, p.place, queued)
		}
		if p.place == away != slices.Contains(m.doors, p) {
			return fmt.Errorf("%s is %v, and at a door: %v", id, p.place, p.place != away)
		}
		used[p.part] += p.held
	}
	for _, t := range m.tenants {
		for _, q := range t.queues {
			if len(q.phases) == 0 {
				return fmt.Errorf("tenant %s keeps an empty queue of class %d", t.name, q.class)
			}
		}
	}
	for _, part := range m.parts {
		if used[part] != part.used || part.used > part.slabs {
			return fmt.Errorf("classes up to %d hold %d of %d slabs, and %d are counted", part.upTo, used[part], part.slabs, part.used)
		}
	}
	return nil
}
