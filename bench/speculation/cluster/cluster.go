package cluster

import (
	"container/heap"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// Run is what is played.
type Run struct {
	Application *Application
	Mode        string // off, branches or all
	Processors  int
	Rate        float64 // requests in a second, which come at random
	InFlight    int     // in place of that: so many are always under way
	Requests    int
	Squash      time.Duration // how long a function that was squashed keeps those that run again from beginning
	Lazy        bool          // functions that were squashed run to their ends all the same (the paper's LazySquash)
}

// Played is what a run gave.
type Played struct {
	MS        []float64 // answers of all but the first tenth
	CPU       float64   // seconds of processors, of each request
	Squashed  float64   // of them, seconds of functions that were squashed
	PerSecond float64   // answers
}

// cluster is a run under way.
type cluster struct {
	Run
	random    *rand.Rand
	now       time.Duration
	events    queue
	sequence  int
	asked     int           // requests that have begun
	free      int           // processors
	heads     []*burst      // that wait for a processor
	ahead     []*burst      // likewise, behind those
	early     int           // functions that run ahead, of all invocations
	used      time.Duration // of processors
	wasted    time.Duration
	busy      time.Duration // of processors, until last
	last      time.Duration
	memo      *table
	predictor *speculate.Predictor
	played    Played
}

// Play plays a run.
func Play(r Run) Played {
	c := &cluster{Run: r, random: rand.New(rand.NewPCG(1, 7)), free: r.Processors, memo: newTable(), predictor: speculate.NewPredictor()}
	if r.InFlight > 0 {
		for range r.InFlight {
			c.request()
		}
	} else {
		at := time.Duration(0)
		for range r.Requests {
			at += time.Duration(c.random.ExpFloat64() / r.Rate * float64(time.Second))
			c.at(at, c.request)
		}
	}
	for c.events.Len() > 0 {
		e := heap.Pop(&c.events).(event)
		c.now = e.at
		e.do()
	}
	c.played.CPU = c.used.Seconds() / float64(r.Requests)
	c.played.PerSecond = float64(r.Requests) / c.now.Seconds()
	c.played.Squashed = c.wasted.Seconds() / float64(r.Requests)
	return c.played
}

// request begins the next request, if there are more.
func (c *cluster) request() {
	if c.asked < c.Requests {
		c.asked++
		c.begin(c.asked - 1)
	}
}

// event is something that happens at a moment; of those of one moment, the one that was planned first.
type event struct {
	at       time.Duration
	sequence int
	do       func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].sequence < q[j].sequence
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)   { *q = append(*q, e.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (c *cluster) at(t time.Duration, do func()) {
	c.sequence++
	heap.Push(&c.events, event{t, c.sequence, do})
}

func (c *cluster) after(d time.Duration, do func()) { c.at(c.now+d, do) }

// burst is work of a function for a processor, which does not interrupt it.
type burst struct {
	task *task
	took time.Duration
	then func()
}

// compute gives work to a processor: that of heads first.
func (c *cluster) compute(b *burst) {
	if b.task.head {
		c.heads = append(c.heads, b)
	} else {
		c.ahead = append(c.ahead, b)
	}
	c.assign()
}

func (c *cluster) assign() {
	for c.free > 0 {
		b := c.next()
		if b == nil {
			return
		}
		c.account()
		c.free--
		c.used += b.took
		b.task.used += b.took
		c.after(b.took, func() {
			c.account()
			c.free++
			if !b.task.over {
				b.then()
			}
			c.assign()
		})
	}
}

// next takes the burst whose turn it is. Those of squashed tasks are dropped.
func (c *cluster) next() *burst {
	for len(c.heads) > 0 {
		b := c.heads[0]
		c.heads = c.heads[1:]
		if !b.task.over {
			return b
		}
	}
	for len(c.ahead) > 0 {
		b := c.ahead[0]
		c.ahead = c.ahead[1:]
		if !b.task.over {
			return b
		}
	}
	return nil
}

// promote moves what a task has waiting to where heads wait.
func (c *cluster) promote(t *task) {
	t.head = true
	if t.turn != nil {
		c.after(0, t.turn)
		t.turn = nil
	}
	for i, b := range c.ahead {
		if b.task == t {
			c.ahead = append(c.ahead[:i:i], c.ahead[i+1:]...)
			c.heads = append(c.heads, b)
			return
		}
	}
}

// account keeps the share of the processors that were busy of late: the older, the less it counts.
func (c *cluster) account() {
	const memory = 100 * time.Millisecond
	passed := min(c.now-c.last, memory)
	share := float64(c.Processors-c.free) / float64(c.Processors)
	kept := 1 - float64(passed)/float64(memory)
	c.busy = time.Duration(float64(c.busy)*kept + share*float64(time.Second)*(1-kept))
	c.last = c.now
}

// depth is how many functions of an invocation may be ahead, by how busy the processors are and how many others' are, as Forerun has it.
func (c *cluster) depth(others int) int {
	bound := speculate.BoundUnder(forerun.Load{Busy: c.busy.Seconds(), Processors: c.Processors})
	return min(speculate.DefaultDepth, max(0, bound-others))
}

// table is a memo table that forgets the oldest.
type table struct {
	rows  map[string]*forerun.Row
	order []string
}

const maxRows = 50_000

func newTable() *table { return &table{rows: make(map[string]*forerun.Row)} }

func key(code forerun.Digest, input json.RawMessage) string { return string(code[:]) + string(input) }

// Find implements speculate.Memo.
func (t *table) Find(code forerun.Digest, input json.RawMessage) *forerun.Row {
	return t.rows[key(code, input)]
}

func (t *table) learn(l *speculate.Lesson) {
	k := key(l.Code, l.Input)
	if t.rows[k] == nil {
		t.order = append(t.order, k)
	}
	t.rows[k] = l.Row
	if len(t.order) > maxRows {
		delete(t.rows, t.order[0])
		t.order = t.order[1:]
	}
}

// bare is the name of an action without its namespace.
func bare(action string) string { return action[strings.LastIndexByte(action, '/')+1:] }
