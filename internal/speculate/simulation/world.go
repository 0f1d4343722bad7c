// Package simulation drives the machine of package speculate through random
// worlds: functions and programs over a few records, other clients of the same
// records, crashes, clients that give up, new code, and replies and events in any
// order that could be. What the world saw is judged by package oracle, which
// looks for an execution without speculation that explains it. Everything
// follows from a seed.
package simulation

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// world is a simulation under way.
type world struct {
	*rand.Rand
	actions   map[string]*oracle.Action
	store     *store
	memo      table
	predictor *speculate.Predictor
	version   map[string]int // of actions: an index of their versions
	codes     map[forerun.Digest]source
	flights   flights
	flight    uint64 // the number of the last one
	clock     int
	slow      pace
	prompt    bool       // actions are found at once
	quiet     bool       // one line of slots runs in the round, and nobody else does anything
	oneLine   bool       // no action does two things at once
	calm      int        // how rarely others do something
	rare      int        // how rarely an invocation begins beside others
	poor      *rand.Rand // for what the store has no room; nil: it has room for all
	runs      []*run
	history   []oracle.Event // of the round
	hints     []oracle.Hint
	story     *strings.Builder
	coverage  *Coverage
	states    int // that the oracle visited
	steps     int
	problem   error
}

// source is what code is of.
type source struct {
	action  string
	version int
}

// task is something that can happen next.
type task struct {
	slot   speculate.SlotID
	of     pace
	stores bool // it reaches the store for a head
	do     func()
}

// pace is what may be slow in a case.
type pace byte

// The parts that can be slow.
const (
	nothing pace = iota
	heads        // what heads ask for
	checks
	fetches
	promotions
	transactions // of promotions, on their way to the store
)

// Outcome is what became of a case.
type Outcome struct {
	Problem error
	Story   string
	States  int // that the oracle visited
	Steps   int
}

// Play simulates a case. With a story it tells what happens.
func (c *Case) Play(coverage *Coverage, tell bool) Outcome {
	w := &world{
		Rand: rand.New(rand.NewPCG(c.Order, 2)), actions: make(map[string]*oracle.Action), store: newStore(), memo: make(table),
		predictor: speculate.NewPredictor(), version: make(map[string]int), codes: make(map[forerun.Digest]source), coverage: coverage,
	}
	w.slow, w.calm = []pace{nothing, heads, heads, heads, heads, heads, checks, checks, fetches, promotions}[w.IntN(10)], 12
	w.prompt, w.store.large, w.rare = w.IntN(4) > 0, c.Large, 20
	if c.Paired && w.IntN(2) == 0 {
		w.slow = transactions
	}
	if c.Crowded {
		w.rare = 3
	}
	if c.Poor {
		w.poor = rand.New(rand.NewPCG(c.Order, 3))
	}
	if c.Equal {
		w.flights = make(flights)
	}
	if c.Stormy {
		w.calm = 5
	}
	if tell {
		w.story = new(strings.Builder)
	}
	for _, a := range c.Actions {
		w.actions[a.Name] = &a.Action
	}
	w.oneLine = c.isOneLine()
	w.play(c.Rounds)
	o := Outcome{Problem: w.problem, States: w.states, Steps: w.steps}
	if tell {
		o.Story = w.story.String()
	}
	return o
}

// lacksRoom tells whether the store has no room for what is asked of it now: what a function has written, or a copy.
func (w *world) lacksRoom() bool { return w.poor != nil && w.poor.IntN(5) == 0 }

// play plays rounds until one has a problem. A panic is one: its case can be played again, and made smaller.
func (w *world) play(rounds []Round) {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
		}
	}()
	for i, r := range rounds {
		w.say("round %d: the store has %v", i+1, w.store.values)
		if w.round(r); w.problem != nil {
			break
		}
	}
}

func (w *world) say(format string, values ...any) {
	if w.story != nil {
		fmt.Fprintf(w.story, format+"\n", values...)
	}
}

func (w *world) fail(format string, values ...any) {
	if w.problem == nil {
		w.problem = fmt.Errorf(format, values...)
		w.say("PROBLEM: %v", w.problem)
	}
}

// saw adds to the history.
func (w *world) saw(e oracle.Event) {
	w.say("    %v", e)
	w.history = append(w.history, e)
}

// hint tells the oracle where to search first: who does the command, with which accumulator if that is known.
func (r *run) hint(c oracle.Command, acc int) {
	w := r.world
	w.hints = append(w.hints, oracle.Hint{At: len(w.history), Invocation: r.family(), Command: c, Acc: acc})
}

// hintBegin tells it when the code of a slot's action was taken for good.
func (r *run) hintBegin(s *slot) {
	if w := r.world; !s.self {
		w.hints = append(w.hints, oracle.Hint{At: len(w.history), Invocation: r.family(), Action: s.action})
	}
}

// hintEnd tells it when a function has ended whose turn it is.
func (r *run) hintEnd(s *slot) {
	if w := r.world; s.head && s.finished && s.handler != nil {
		w.hints = append(w.hints, oracle.Hint{At: len(w.history), Invocation: r.family(), Action: s.action, Ended: true, Acc: s.handler.acc})
	}
}

// maxSteps bounds a round: one that takes more does not end.
const maxSteps = 20_000

// round plays a round and has it judged.
func (w *world) round(r Round) {
	seg := &oracle.Segment{Actions: w.actions, Version: make(map[string]int), Clock: w.clock, Before: w.store.values}
	for name, v := range w.version {
		seg.Version[name] = v
	}
	w.runs, w.history, w.hints = nil, nil, nil
	invocations, others := r.Invocations, r.Others
	w.quiet = w.oneLine && len(invocations) == 1 && len(others) == 0
	for last := w.steps + maxSteps; w.problem == nil; {
		if w.steps++; w.steps > last {
			w.fail("the round does not end")
			break
		}
		if len(invocations) > 0 && (len(w.runs) == 0 || w.IntN(w.rare) == 0) {
			w.invoke(invocations[0])
			invocations = invocations[1:]
			continue
		}
		if len(others) > 0 && w.isTime(others[0]) {
			if w.happen(others[0]) {
				others = others[1:]
			}
			continue
		}
		if !w.step() {
			if len(invocations) == 0 && !w.isOver() {
				w.fail("nothing can happen, and not all is over: %s", w.stuck())
			}
			if len(invocations) == 0 {
				break
			}
			w.invoke(invocations[0])
			invocations = invocations[1:]
		}
	}
	if w.problem != nil {
		return
	}
	seg.Events, seg.Hints, seg.After = w.history, w.hints, &w.store.values
	states, err := oracle.Check(seg)
	w.states += states
	if err != nil {
		w.fail("%w; the store is %v", err, w.store.values)
	}
}

func (w *world) isOver() bool {
	for _, r := range w.runs {
		if !r.isOver() {
			return false
		}
	}
	return true
}

func (w *world) stuck() string {
	var b strings.Builder
	for _, r := range w.runs {
		for id, s := range r.slots {
			if !s.over {
				fmt.Fprintf(&b, "slot %d of %d (%s) is %v; ", id, r.number, s.action, s.phase())
			}
		}
	}
	return b.String()
}

// step lets one thing happen of those that can.
func (w *world) step() bool {
	n := 0
	for _, r := range w.runs {
		n += r.ready()
	}
	if n == 0 {
		return false
	}
	at := w.IntN(n)
	for range 6 {
		if w.slow == nothing || !w.isSlow(at) {
			break
		}
		at = w.IntN(n)
	}
	for _, r := range w.runs {
		if k := r.ready(); at >= k {
			at -= k
			continue
		}
		r.step(at)
		break
	}
	return true
}

// isSlow tells whether what could happen is of what is slow.
func (w *world) isSlow(at int) bool {
	for _, r := range w.runs {
		if k := r.ready(); at >= k {
			at -= k
			continue
		}
		if at < len(r.tasks) && r.tasks[at].of == w.slow {
			return true
		}
		s := r.slots[r.whose(at)]
		return w.slow == heads && s != nil && s.head
	}
	return false
}

// isTime picks the time for something: often one at which it does most harm.
func (w *world) isTime(o Other) bool {
	return w.IntN(w.calm) == 0 || o.What == Change && w.some(w.isPromoting) && w.IntN(2) == 0
}

// happen lets something happen beside the invocations; false: it cannot yet.
func (w *world) happen(o Other) bool {
	switch o.What {
	case Touch:
		reply, _ := w.store.do(o.Command)
		w.saw(oracle.Event{Kind: oracle.Other, Command: o.Command, Reply: reply})
	case Change:
		if w.some(w.isJoining) { // the later of two was found before the transaction that the earlier ends with: a moment too early
			return false
		}
		action := w.target(o)
		w.version[action]++
		w.saw(oracle.Event{Kind: oracle.Update, Action: action})
		for _, r := range w.runs {
			r.renew()
		}
	case Tick:
		w.clock++
		w.saw(oracle.Event{Kind: oracle.Tick})
	case Load:
		for _, r := range w.runs {
			if !r.isOver() {
				r.limit, r.full = o.Number, o.Full
				r.tell(speculate.LoadChanged{Depth: o.Number, Full: o.Full})
			}
		}
	case Die:
		return w.die()
	case Kill:
		if v, ok := w.victim(func(s *slot) bool { return !s.handler.isBetween() }); ok {
			v.run.end(v.slot)
			v.run.failed(v.slot, []*forerun.Result{&oracle.Crashed, &oracle.TimedOut}[w.IntN(2)])
		}
	case Withdraw:
		if v, ok := w.victim(func(s *slot) bool { return s.handler.hasAsked() }); ok {
			v.run.withdraw(v.slot)
		}
	case GiveUp:
		for _, r := range w.runs {
			if r.number == o.Number && !r.answered && !r.apart {
				r.giveUp()
			}
		}
	}
	return true
}

// target picks the action that gets its next version: often the program that something is in which is being promoted.
func (w *world) target(o Other) (action string) {
	action = o.Action
	if w.IntN(2) == 0 {
		return action
	}
	for _, r := range w.runs {
		for id := range r.next {
			if s := r.slots[id]; s != nil && s.parent > 0 && w.isPromoting(s) {
				action = r.slots[s.parent].action
			}
		}
	}
	return action
}

// isPromoting tells whether what a function did is being promoted, and is in the store, or not yet sure to be refused.
func (w *world) isPromoting(s *slot) bool {
	return s.promoting && (s.applied || !w.store.refuses(s.expect))
}

// isJoining tells whether it is together with what others did, and not in the store yet.
func (w *world) isJoining(s *slot) bool { return w.isPromoting(s) && s.joint && !s.applied }

// some tells whether something holds for a slot.
func (w *world) some(is func(*slot) bool) bool {
	for _, r := range w.runs {
		for _, s := range r.slots {
			if is(s) {
				return true
			}
		}
	}
	return false
}

// victim is a slot whose handler runs.
type victim struct {
	run  *run
	slot *slot
}

// victim picks one of those for which is holds, if there are any.
func (w *world) victim(is func(*slot) bool) (v victim, ok bool) {
	victims := w.victims(is)
	if len(victims) == 0 {
		return v, false
	}
	return victims[w.IntN(len(victims))], true
}

// victims are all for which is holds.
func (w *world) victims(is func(*slot) bool) (victims []victim) {
	for _, r := range w.runs {
		for id := range r.next {
			if s := r.slots[id]; s != nil && s.handler != nil && !s.over && !s.finished && is(s) {
				victims = append(victims, victim{r, s})
			}
		}
	}
	return victims
}

func (w *world) digest(action string, version int, self bool) forerun.Digest {
	d := digestOf(action, version, self)
	w.codes[d] = source{action, version}
	return d
}

// digestNow is that of the code that an action has now.
func (w *world) digestNow(action string) forerun.Digest {
	return w.digest(action, w.version[action], false)
}

func (w *world) areCurrent(callees []forerun.Callee) bool {
	return !slices.ContainsFunc(callees, func(c forerun.Callee) bool {
		return c.Code != w.digestNow(c.Action) && c.Code != w.digest(c.Action, w.version[c.Action], true)
	})
}

func digestOf(action string, version int, self bool) forerun.Digest {
	return sha256.Sum256(fmt.Appendf(nil, "%s %d %v", action, version, self))
}

// code is what a version of an action is; nil: there is none.
func (w *world) code(action string, version int) *oracle.Code {
	a := w.actions[action]
	if a == nil {
		return nil
	}
	return &a.Versions[min(version, len(a.Versions)-1)]
}

func (w *world) invoke(in Invocation) {
	number := 0
	for _, r := range w.runs {
		if !r.apart {
			number++
		}
	}
	input := oracle.Object(in.Input)
	w.saw(oracle.Event{Kind: oracle.Begin, Invocation: number, Action: in.Action, Input: input})
	w.begin(&run{world: w, number: number, action: in.Action, limit: in.Depth}, in.Mode, input)
}

// Some invocations are made with the cache off, and some execute all the same.
const (
	uncachedEvery = 4
	bypassEvery   = 5
)

// caches tells whether rows may stand for executions in an invocation, whatever its mode.
func (r *run) caches() bool { return r.number%uncachedEvery != uncachedEvery-1 }

func (w *world) begin(r *run, mode speculate.Mode, input json.RawMessage) {
	r.mode = mode
	r.slots = make(map[speculate.SlotID]*slot)
	w.runs = append(w.runs, r)
	options := []speculate.Option{}
	if mode != speculate.Off {
		options = append(options, speculate.Speculate(mode, w.memo, w.predictor, records{w}), speculate.Depth(r.limit))
	}
	if r.caches() {
		options = append(options, speculate.Cache(w.memo, r.number%bypassEvery == bypassEvery-1))
	}
	m, actions := speculate.New(r.action, input, options...)
	r.machine = m
	r.carryOut(actions)
}
