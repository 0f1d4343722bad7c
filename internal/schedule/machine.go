package schedule

import (
	"iter"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Machine is the policy of one node. It is not safe for concurrent use.
type Machine struct {
	settings Settings
	now      time.Duration
	step     int
	parts    []*part
	phases   map[forerun.ActivationID]*phase
	tenants  []*tenant // by name
	front    []*phase  // in the order in which they came
	doors    []*phase  // that are away, those first that are to be measured next
	habits   habits
	auto     bool // the policy is Auto, and settings has Microtask
	queued   int  // phases in queues
	waiting  int  // of them those that do not run
	touched  []*phase

	demoted, reclassified int64

	out []Decision
}

// part is the slabs that a range of classes has.
type part struct {
	upTo  Class
	slabs int
	used  int
}

func (p *part) free() int { return p.slabs - p.used }

// New makes a Machine. Without processors it has one.
func New(s Settings) *Machine {
	m := &Machine{settings: s, phases: make(map[forerun.ActivationID]*phase), habits: habits{of: make(map[string]*habit)}}
	if m.auto = s.Policy == Auto; m.auto {
		m.settings.Policy = Microtask
	}
	m.processors(s.Processors)
	return m
}

// Step takes an event at a time since any one moment, and returns what follows from it. A time before the last one counts as that. The
// result is valid until the next Step.
func (m *Machine) Step(now time.Duration, e Event) []Decision {
	m.now = max(m.now, now)
	m.step++
	m.out, m.touched = m.out[:0], m.touched[:0]
	switch e := e.(type) {
	case Asks:
		m.asks(e)
	case Waits:
		if p := m.phases[e.Activation]; p != nil && (p.place == front || p.place == back) {
			m.leaves(p)
			p.place, p.gauged, p.left = away, false, m.now
			m.doors = append(m.doors, p)
		}
	case Answered:
		if p := m.phases[e.Activation]; p != nil && p.place == away {
			m.returns(p)
		}
	case Promoted:
		m.promoted(m.phases[e.Activation])
	case Used:
		m.used(m.phases[e.Activation], e)
	case Ended:
		m.ended(m.phases[e.Activation], e.Killed)
	case Processors:
		m.processors(e.Number)
	case Passed:
		m.forget()
		m.rotate()
	}
	m.serve()
	m.tell()
	return m.out
}

// asks begins a phase. Under Task an activation has one.
func (m *Machine) asks(e Asks) {
	if m.settings.Policy == Oversubscribe {
		e.Tenant = "" // nothing is shared out
	}
	p := m.phases[e.Activation]
	switch {
	case p == nil:
		p = &phase{id: e.Activation, tenant: m.tenantOf(e.Tenant, e.Weight), ahead: e.Ahead}
		p.tenant.phases++
		m.phases[e.Activation] = p
	case m.settings.Policy == Task:
		if p.begun {
			m.letIn(p)
		}
		return
	default:
		m.learn(p)
		m.leaves(p)
	}
	p.kind, p.class = e.Kind, max(1, e.Class)
	if m.auto && e.Learn {
		p.class = m.habits.class(e.Kind, p.class)
	}
	if m.settings.Policy == Task {
		p.class = Core
	}
	p.part = m.partOf(p.class)
	where := waiting
	if e.AtOnce && p.begun {
		where = back
	}
	p.begun, p.cpu, p.atFront, p.seen, p.idle, p.delayed = false, 0, 0, 0, 0, 0
	m.asksAgain(p, where)
}

// promoted puts a phase before all speculative ones.
func (m *Machine) promoted(p *phase) {
	if p == nil || !p.ahead {
		return
	}
	queued := p.place == waiting || p.place == back
	if queued {
		p.tenant.remove(p)
	}
	p.ahead = false
	if queued {
		p.tenant.wants(p)
	}
}

func (m *Machine) used(p *phase, e Used) {
	if p == nil || e.CPU < p.cpu {
		return
	}
	p.cpu, p.delayed = e.CPU, e.Delayed
	if m.settings.Policy == Microtask {
		m.gauge(p)
	}
}

func (m *Machine) ended(p *phase, killed bool) {
	if p == nil {
		return
	}
	if !killed {
		m.learn(p)
	}
	m.leaves(p)
	p.tenant.phases--
	delete(m.phases, p.id)
	if p.tenant.phases == 0 {
		m.forget()
	}
}

// learn notes what a phase took that has ended. Nothing is learnt from speculative ones (C3).
func (m *Machine) learn(p *phase) {
	if p.begun && !p.ahead {
		m.habits.learn(p.tenant.name, p.kind, p.cpu, m.needed(p))
	}
}

// processors changes the slabs. Phases in front for which none are left go to the back, those that came last first. Those that need
// more now, or fewer, ask again.
func (m *Machine) processors(n int) {
	parts := m.settings.parts(max(1, n))
	old := m.parts
	m.parts = nil
	for i := range parts {
		m.parts = append(m.parts, &part{upTo: parts[i].UpTo, slabs: parts[i].Slabs})
	}
	if old == nil {
		return
	}
	for _, p := range m.phases {
		p.part = m.partOf(p.class)
		p.part.used += p.held
	}
	for _, p := range slices.Backward(slices.Clone(m.front)) {
		if p.part.used > p.part.slabs || p.held != p.need() {
			m.demote(p)
		}
	}
}

func (m *Machine) partOf(c Class) *part {
	i := slices.IndexFunc(m.parts, func(p *part) bool { return c <= p.upTo })
	return m.parts[i]
}

// touch notes that the place of a phase may have changed.
func (m *Machine) touch(p *phase) {
	if !p.touched {
		p.touched = true
		m.touched = append(m.touched, p)
	}
}

// tell says where phases are, if the caller does not know it.
func (m *Machine) tell() {
	for _, p := range m.touched {
		p.touched = false
		if m.phases[p.id] != p || p.place != front && p.place != back {
			continue
		}
		behind := p.place == back
		begun, was := p.begun, p.behind
		p.begun, p.behind = true, behind
		switch {
		case !begun:
			p.looked, p.entered = m.now, m.now
			m.letIn(p)
		case behind && !was:
			m.out = append(m.out, Decision{Activation: p.id, Kind: ToBack})
		case !behind && was:
			m.out = append(m.out, Decision{Activation: p.id, Kind: ToFront})
		}
	}
}

func (m *Machine) letIn(p *phase) {
	kind := LetIn
	if p.behind {
		kind = LetInBehind
	}
	m.out = append(m.out, Decision{Activation: p.id, Kind: kind})
}

// Contended reports whether a phase wants slabs that time may give it.
func (m *Machine) Contended() bool { return m.queued > 0 && m.settings.Policy == Microtask }

// maxGauged is how many phases at doors are measured in a Tick.
const maxGauged = 16

// rotate has other phases at doors be measured next.
func (m *Machine) rotate() {
	if n := min(maxGauged, len(m.doors)); n < len(m.doors) {
		m.doors = append(m.doors, m.doors[:n]...)[n:]
	}
}

// Measured lists the activations whose use the machine wants to know: those in front, and some of those at doors, in turns.
func (m *Machine) Measured() iter.Seq[forerun.ActivationID] {
	return func(yield func(forerun.ActivationID) bool) {
		for _, list := range [][]*phase{m.front, m.doors[:min(maxGauged, len(m.doors))]} {
			for _, p := range list {
				if !yield(p.id) {
					return
				}
			}
		}
	}
}

// Class is the class of the phase of an activation; 0: it is not known.
func (m *Machine) Class(id forerun.ActivationID) Class {
	if p := m.phases[id]; p != nil {
		return p.class
	}
	return 0
}

// Use is a moment of a Machine.
type Use struct {
	Slabs, Used  int   // without bound, Slabs is 0
	Known        int   // activations
	Waiting      int   // of them those that are not let in
	Away         int   // of them those that wait at doors
	Demoted      int64 // how often a phase was moved to the back so far
	Reclassified int64 // how often a phase got another class
}

// Use tells what is in use.
func (m *Machine) Use() Use {
	u := Use{Known: len(m.phases), Waiting: m.waiting, Away: len(m.doors), Demoted: m.demoted, Reclassified: m.reclassified}
	for _, p := range m.parts {
		if m.settings.Policy != Oversubscribe {
			u.Slabs += p.slabs
		}
		u.Used += p.used
	}
	return u
}
