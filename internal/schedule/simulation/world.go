package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/schedule"
)

// place is where an activation is, as far as the decisions tell.
type place int

const (
	waiting place = iota
	front
	back
	away
)

func (p place) String() string { return [...]string{"waiting", "front", "back", "away"}[p] }

// activation is what the world and the oracle know of one.
type activation struct {
	id     forerun.ActivationID
	tenant int
	class  schedule.Class
	ahead  bool
	place  place
	weight place // the place whose weight it has while it is away
	flood  bool  // it keeps the flood up

	cpu      time.Duration // used since it was let in
	measured time.Duration // cpu when it was measured at its door; less than 0: it was not
	last     time.Duration // when that was
	asked    time.Duration // when it asked
	since    time.Duration // when it came to the front
	atFront  time.Duration // cpu then
	bound    time.Duration // on its wait
	demoted  int           // the step in which it was moved to the back last
	awaiting bool          // an answer to its ask
}

// world plays a case.
type world struct {
	c           *Case
	machine     *schedule.Machine
	now         time.Duration
	latest      time.Duration // the latest time of a step
	step        int
	next        int
	processors  int
	resized     bool
	activations []*activation
	ended       []int     // phases of each tenant
	served      []float64 // slab seconds of each tenant in front
	problem     error
	story       *strings.Builder // nil: it is not told
}

// Play plays the case. It returns the story if it is to be told, and what is wrong.
func (c *Case) Play(tell bool) (story string, problem error) {
	w := &world{c: c, processors: c.Processors, ended: make([]int, len(c.Weights)), served: make([]float64, len(c.Weights))}
	w.machine = schedule.New(schedule.Settings{Policy: c.Policy, Processors: c.Processors, Parts: c.Parts})
	if tell {
		w.story = new(strings.Builder)
	}
	for _, op := range c.Ops {
		if w.pass(op.After); w.problem == nil {
			w.refill()
		}
		if w.problem != nil {
			break
		}
		w.do(op)
	}
	if w.problem == nil && c.Flood > 0 {
		w.checkShares()
	}
	if w.problem == nil {
		w.finish()
	}
	if tell {
		if w.problem != nil {
			fmt.Fprintf(w.story, "PROBLEM: %v\n", w.problem)
		}
		story = w.story.String()
	}
	return story, w.problem
}

// pass lets time pass. While phases contend, the caller's duty is to tell the machine once in each Tick. Long times are cut short, so that the
// machine hears of the moments at which it may have to decide.
func (w *world) pass(d time.Duration) {
	const long = 10 * schedule.Tick
	for ; d > long && w.machine.Contended() && w.problem == nil; d -= long {
		w.now += long
		w.tell(schedule.Passed{})
	}
	w.now += d
}

// refill keeps a flood up.
func (w *world) refill() {
	for tenant := range w.c.Weights {
		waits := 0
		for _, a := range w.activations {
			if a.tenant == tenant && a.flood && a.place == waiting {
				waits++
			}
		}
		for ; waits < w.c.Flood; waits++ {
			w.ask(tenant, schedule.Core, false).flood = true
		}
	}
}

var classes = []schedule.Class{1, 2, 4, 8, 16, 16, 16, 32}

func (w *world) ask(tenant int, class schedule.Class, ahead bool) *activation {
	a := &activation{id: forerun.ActivationID(fmt.Sprint("a", w.next)), tenant: tenant, ahead: ahead}
	w.next++
	w.activations = append(w.activations, a)
	w.begin(a, class, false)
	return a
}

// begin has an activation ask for a phase, which it may begin at once.
func (w *world) begin(a *activation, class schedule.Class, atOnce bool) {
	whole := w.c.Policy == schedule.Task && a.class > 0 // it has its place already
	if w.c.Policy == schedule.Task {
		class = schedule.Core
	}
	if a.awaiting = true; !whole {
		a.class, a.place, a.cpu, a.asked = class, waiting, 0, w.latestAt()
		a.bound = w.boundOf(a)
	}
	w.tell(schedule.Asks{
		Activation: a.id, Tenant: w.tenant(a.tenant), Weight: w.c.Weights[a.tenant], Kind: w.tenant(a.tenant), Class: class, Learn: w.step%2 == 0,
		Ahead: a.ahead, AtOnce: atOnce,
	})
	if atOnce && a.place == waiting {
		w.wrong("%s waits, and was to go on at once", a.id)
	}
}

// latestAt is the time that the machine takes the present for: its clock is never set back.
func (w *world) latestAt() time.Duration { return max(w.latest, w.now) }

func (w *world) tenant(i int) string { return string(rune('p' + i)) }

// some chooses an activation that satisfies a condition; nil if there is none.
func (w *world) some(who int, is func(*activation) bool) *activation {
	var list []*activation
	for _, a := range w.activations {
		if is(a) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[who%len(list)]
}

func runs(a *activation) bool    { return a.place == front || a.place == back }
func uses(a *activation) bool    { return a.place != waiting }
func isAway(a *activation) bool  { return a.place == away }
func isAhead(a *activation) bool { return a.ahead }
func any1(*activation) bool      { return true }

// chosenBy says which activations an event may be of.
var chosenBy = map[OpKind]func(*activation) bool{
	Phase: runs, Double: any1, Wait: runs, Answer: isAway, Promote: isAhead, Use: uses, End: runs, Kill: any1,
}

func (w *world) do(op Op) {
	class := classes[op.Arg%len(classes)]
	switch op.Kind {
	case Ask:
		ahead := w.c.Flood == 0 && op.Arg>>8%3 == 0
		w.ask(op.Who%len(w.c.Weights), class, ahead)
		return
	case Resize:
		w.processors, w.resized = 1+op.Arg%4, true
		w.tell(schedule.Processors{Number: w.processors})
		return
	case Queue:
		if w.c.Policy != schedule.Oversubscribe {
			w.asksForSandbox(op)
		}
		return
	case Pass:
		w.tell(schedule.Passed{})
		return
	}
	a := w.some(op.Who, chosenBy[op.Kind])
	if a == nil {
		return
	}
	switch op.Kind {
	case Phase, Double:
		w.ended[a.tenant]++
		w.begin(a, class, op.Kind == Phase && op.Arg>>8%3 == 0)
	case Wait:
		a.weight, a.place, a.measured = a.place, away, -1
		w.tell(schedule.Waits{Activation: a.id})
	case Answer:
		w.returns(a)
		w.tell(schedule.Answered{Activation: a.id})
	case Promote:
		a.ahead = false
		a.asked, a.bound = w.latestAt(), w.boundOf(a)
		w.tell(schedule.Promoted{Activation: a.id})
	case Use:
		a.cpu += time.Duration(op.Arg%100) * time.Millisecond
		if w.computes(a) {
			w.returns(a)
		}
		w.tell(schedule.Used{Activation: a.id, CPU: a.cpu})
	case End, Kill:
		w.end(a, op.Kind == Kill)
	}
}

// returns has an activation that was at a door go on where it was.
func (w *world) returns(a *activation) {
	if a.place = a.weight; a.place == front {
		a.since, a.atFront = w.latestAt(), a.cpu
	}
}

// computes reports whether an activation that is measured computes while it waits at a door: half of its class or more, for 50 ms or longer. Only
// Microtask and Auto ask.
func (w *world) computes(a *activation) bool {
	if a.place != away || !w.takesBack() {
		return false
	}
	used, passed := a.cpu-a.measured, w.latestAt()-a.last
	if a.measured >= 0 && passed < 50*time.Millisecond {
		return false
	}
	known := a.measured >= 0
	a.measured, a.last = a.cpu, w.latestAt()
	return known && used.Seconds()*32 >= passed.Seconds()*float64(a.class)
}

func (w *world) end(a *activation, killed bool) {
	w.ended[a.tenant]++
	w.activations = slices.DeleteFunc(w.activations, func(o *activation) bool { return o == a })
	w.tell(schedule.Ended{Activation: a.id, Killed: killed})
}

// finish ends all activations that run, until none is left.
func (w *world) finish() {
	for len(w.activations) > 0 && w.problem == nil {
		w.now += schedule.Tick
		if a := w.some(0, isAway); a != nil {
			w.do(Op{Kind: Answer})
			continue
		}
		a := w.some(0, runs)
		if a == nil {
			w.wrong("%d activations wait, and none runs", len(w.activations))
			return
		}
		w.end(a, false)
	}
	if u := w.machine.Use(); w.problem == nil && (u.Used != 0 || u.Known != 0 || u.Waiting != 0) {
		w.wrong("nothing runs, and %+v are in use", u)
	}
}

// tell gives the machine an event, takes its decisions, and has the oracle look.
func (w *world) tell(e schedule.Event) {
	w.note()
	w.step++
	decisions := w.machine.Step(w.now, e)
	if asks, ok := e.(schedule.Asks); ok && asks.Learn && w.c.Policy == schedule.Auto {
		w.learns(asks)
	}
	if w.story != nil {
		fmt.Fprintf(w.story, "%v %T%+v\n", w.now, e, e)
	}
	for _, d := range decisions {
		if w.story != nil {
			fmt.Fprintf(w.story, "\t%s %v\n", d.Activation, d.Kind)
		}
		w.take(d)
	}
	if w.problem == nil {
		w.check()
	}
}

// learns takes the class that the machine gives a phase of which nothing is said. It knows one after three phases of the kind, which is the tenant's.
func (w *world) learns(asks schedule.Asks) {
	a := w.some(0, func(a *activation) bool { return a.id == asks.Activation })
	class := w.machine.Class(a.id)
	if known := w.ended[a.tenant] >= 3; class != asks.Class && !known {
		w.wrong("%s has class %d, and %d of its kind have ended", a.id, class, w.ended[a.tenant])
	}
	if class < 1 || class < schedule.Core && class&(class-1) != 0 || class > schedule.Core && class%schedule.Core != 0 {
		w.wrong("%s has class %d, and there is no such class", a.id, class)
	}
	a.class = class
}

// note adds up what tenants had since the last step.
func (w *world) note() {
	if passed := (w.latestAt() - w.latest).Seconds(); passed > 0 {
		for _, a := range w.activations {
			if a.place == front {
				w.served[a.tenant] += passed * float64(w.need(a))
			}
		}
	}
	w.latest = w.latestAt()
}

// take notes a decision. It must fit to where the activation is.
func (w *world) take(d schedule.Decision) {
	a := w.some(0, func(a *activation) bool { return a.id == d.Activation })
	if a == nil {
		w.wrong("%s: %v, and it has ended", d.Activation, d.Kind)
		return
	}
	was := a.place
	switch d.Kind {
	case schedule.LetIn, schedule.LetInBehind:
		if !a.awaiting {
			w.wrong("%s is let in, and did not ask", a.id)
		}
		if a.awaiting = false; was == waiting {
			a.cpu = 0
		} else if w.c.Policy == schedule.Task { // a phase of one that is let in already
			return
		}
		if a.place = front; d.Kind == schedule.LetInBehind {
			a.place = back
		}
	case schedule.ToFront:
		a.place = front
	case schedule.ToBack:
		a.place, a.demoted = back, w.step
	case schedule.Reclassified:
		if d.Class <= a.class {
			w.wrong("%s has class %d, and gets %d", a.id, a.class, d.Class)
		}
		a.class, a.demoted = d.Class, w.step
		return // it is told if it has to leave the front
	}
	if was == away || was == waiting && (d.Kind == schedule.ToFront || d.Kind == schedule.ToBack) {
		w.wrong("%s: %v, and it is %v", a.id, d.Kind, was)
	}
	if a.place == front && was != front {
		a.since, a.atFront = w.latest, a.cpu
	}
}

func (w *world) wrong(format string, args ...any) {
	if w.problem == nil {
		w.problem = fmt.Errorf(format, args...)
	}
}
