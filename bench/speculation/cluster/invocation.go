package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"forerun.dev/forerun/internal/speculate"
)

// invocation is a request under way.
type invocation struct {
	*cluster
	number  int
	ways    []bool
	began   time.Duration
	machine *speculate.Machine
	depth   int // that the machine was told last
	early   int // functions that run ahead, as the cluster counts them
	tasks   map[speculate.SlotID]*task
	ready   map[string]time.Duration // by function: from when it can begin, where one was squashed
}

// task is an execution of a function.
type task struct {
	slot     speculate.SlotID
	action   string
	function *function
	input    json.RawMessage
	head     bool
	turn     func() // what waits until the task is the head
	over     bool
	launched bool
	next     int // of its calls
	used     time.Duration
}

// records: no function of a cluster reads or writes any.
type records struct{}

func (records) Execute(any, []speculate.Image) (any, []speculate.Image) { return nil, nil }

// Over tells that no record has a life.
func (records) Over(speculate.Image) bool { return false }

const entry = "/_/application"

func (c *cluster) begin(number int) {
	input, ways := c.Application.draw(c.random)
	i := &invocation{cluster: c, number: number, ways: ways, began: c.now, tasks: make(map[speculate.SlotID]*task), ready: make(map[string]time.Duration)}
	var options []speculate.Option
	if mode, _ := speculate.ParseMode(c.Mode); mode != speculate.Off {
		i.depth = c.depth(c.early)
		options = []speculate.Option{speculate.Speculate(mode, c.memo, c.predictor, records{}), speculate.Depth(i.depth)}
	}
	action := entry
	if c.Application.program == nil {
		action = "/_/" + c.Application.first
	}
	m, actions := speculate.New(action, input, options...)
	i.machine = m
	i.carryOut(actions)
}

// tell tells the machine what has happened, and before that how many functions may be ahead now.
func (i *invocation) tell(e speculate.Event) {
	if depth := i.cluster.depth(i.cluster.early - i.early); depth != i.depth {
		i.depth = depth
		i.carryOut(i.machine.Step(speculate.LoadChanged{Depth: depth}))
	}
	i.carryOut(i.machine.Step(e))
}

func (i *invocation) carryOut(actions []speculate.Action) {
	for _, a := range actions {
		i.perform(a)
	}
	now := i.machine.Ahead()
	i.cluster.early += now - i.early
	i.early = now
}

func (i *invocation) perform(a speculate.Action) {
	switch a := a.(type) {
	case speculate.Resolve:
		i.tasks[a.Slot] = &task{slot: a.Slot, action: bare(a.Action), input: a.Input}
		i.after(0, func() { i.resolve(i.tasks[a.Slot]) })
	case speculate.Launch:
		i.launch(a)
	case speculate.Promote:
		for _, slot := range a.Slots {
			if t := i.tasks[slot]; t != nil {
				i.promote(t)
			}
		}
	case speculate.Reply:
		t := i.tasks[a.Slot]
		i.after(0, func() { i.goOn(t) })
	case speculate.Squash:
		i.squash(a.Slot)
	case speculate.Learn:
		if t := i.tasks[a.Slot]; a.Lesson != nil && a.Lesson.Row != nil && t.function.branch == 0 { // a branch is its predictor's alone
			i.memo.learn(a.Lesson)
		}
		if a.Lesson != nil && a.Lesson.Outcome != nil {
			i.predictor.Learn(*a.Lesson.Outcome)
		}
	case speculate.Finish:
		if i.number >= i.Requests/10 {
			i.played.MS = append(i.played.MS, float64(i.now-i.began)/float64(time.Millisecond))
		}
		if i.InFlight > 0 {
			i.request()
		}
	}
}

// resolve tells what the action of a slot is.
func (i *invocation) resolve(t *task) {
	switch {
	case t.over:
	case t.action == bare(entry):
		i.tell(speculate.Entered{Slot: t.slot, Program: i.Application.program, Code: sha256.Sum256([]byte(i.Application.Name)), Input: t.input})
	default:
		t.function = i.Application.functions[t.action]
		i.tell(speculate.Resolved{Slot: t.slot, Code: t.function.code, Input: t.input})
	}
}

// launch executes a function.
func (i *invocation) launch(a speculate.Launch) {
	t := i.tasks[a.Slot]
	if t == nil { // without speculation nothing is resolved before
		t = &task{slot: a.Slot, action: bare(a.Action), input: a.Input}
		i.tasks[a.Slot] = t
		if t.action == bare(entry) {
			i.after(0, func() { i.resolve(t) })
			return
		}
		t.function = i.Application.functions[t.action]
	}
	t.head = !a.Speculative
	i.at(max(i.now, i.ready[t.action]), func() {
		if t.over {
			return
		}
		t.launched = true
		i.compute(&burst{t, t.function.CPU / 2, func() { i.wait(t) }})
	})
}

// wait has a function wait, once it may.
func (i *invocation) wait(t *task) {
	if t.function.Acts && !t.head {
		t.turn = func() { i.wait(t) }
		return
	}
	i.after(t.function.Wait, func() { i.goOn(t) })
}

// goOn makes the next call of a function, or ends it.
func (i *invocation) goOn(t *task) {
	if t == nil || t.over {
		return
	}
	if t.next < len(t.function.calls) {
		callee := t.function.calls[t.next]
		t.next++
		i.compute(&burst{t, t.function.Call, func() {
			i.tell(speculate.Call{
				Slot: t.slot, Op: speculate.OpID(t.next), Action: "/_/" + callee, Input: t.input, Code: i.Application.functions[callee].code,
			})
		}})
		return
	}
	i.compute(&burst{t, t.function.CPU / 2, func() {
		i.tell(speculate.Output{Slot: t.slot, Result: t.function.output(t.input, i.ways)})
	}})
}

// squash ends a function at once, or has what is left of it computed for nobody.
func (i *invocation) squash(slot speculate.SlotID) {
	t := i.tasks[slot]
	if t == nil {
		return
	}
	t.over = true
	i.wasted += t.used
	if i.Lazy && t.launched {
		left := t.function.CPU + time.Duration(len(t.function.calls))*t.function.Call - t.used
		i.wasted += left
		i.compute(&burst{&task{}, left, func() {}})
	}
	i.ready[t.action] = i.now + i.Squash
}
