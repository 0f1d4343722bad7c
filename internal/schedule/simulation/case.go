// Package simulation plays random activations, phases, tenants, deaths,
// promotions and changes of the processors against the scheduler, in virtual
// time, from seeds.
//
// An oracle looks at every step. It knows the promises of package schedule and
// not its policy: it keeps its own books from the events and the decisions. A
// case with a problem is made smaller and told as a story.
package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"forerun.dev/forerun/internal/schedule"
)

// Case is what is played.
type Case struct {
	Policy     schedule.Policy
	Processors int
	Parts      []schedule.Part // of Static; none: the usual ones
	Weights    []int           // of the tenants
	// Flood is how many phases of each tenant always wait, besides the phases of Ops. Then the slabs that tenants get are compared.
	Flood int
	Ops   []Op
}

// Op is something that happens.
type Op struct {
	Kind  OpKind
	After time.Duration // that passes before; may be less than 0: the clock is set back
	Who   int           // chooses an activation, or a tenant
	Arg   int           // chooses the rest
}

// OpKind is the kind of an Op.
type OpKind int

// The kinds. One that finds no activation does nothing.
const (
	Ask     OpKind = iota // a new activation asks
	Phase                 // an activation that runs asks for its next phase
	Double                // an activation asks again, whatever it does
	Wait                  // one that runs waits at a door
	Answer                // one that waits at a door is answered
	Promote               // a speculative one
	Use                   // one that runs uses processor time
	End                   // one that runs
	Kill                  // any
	Resize                // processors
	Queue                 // a queue asks for a sandbox
	Pass                  // time
)

func (k OpKind) String() string {
	return [...]string{"ask", "phase", "double", "wait", "answer", "promote", "use", "end", "kill", "resize", "queue", "pass"}[k]
}

// Generate makes the case of a seed.
func Generate(seed uint64) *Case {
	r := rand.New(rand.NewPCG(seed, 47))
	c := &Case{Processors: 1 + r.IntN(4)}
	for range 1 + r.IntN(3) {
		c.Weights = append(c.Weights, 1+r.IntN(4))
	}
	if seed%20 == 0 {
		return c.flood(r)
	}
	policies := schedule.Policies()
	c.Policy = policies[min(r.IntN(len(policies)+3), len(policies)-1)] // Auto most often
	if c.Policy == schedule.Auto && r.IntN(2) == 0 {
		c.Policy = schedule.Microtask
	}
	if c.Policy == schedule.Static && r.IntN(2) == 0 {
		c.Parts = []schedule.Part{{UpTo: 4, Slabs: 16}, {UpTo: 15, Slabs: 16 * r.IntN(2)}, {UpTo: 16, Slabs: 32}}
		c.Parts = slices.DeleteFunc(c.Parts, func(p schedule.Part) bool { return p.Slabs == 0 })
	}
	weights := []int{Ask: 6, Phase: 4, Double: 1, Wait: 4, Answer: 3, Promote: 2, Use: 7, End: 4, Kill: 2, Resize: 1, Queue: 2, Pass: 5}
	if r.IntN(4) == 0 {
		weights[Resize], weights[Ask] = 0, 12
	}
	for range 10 + r.IntN(70) {
		c.Ops = append(c.Ops, Op{Kind: choose(r, weights), After: after(r), Who: r.IntN(1 << 16), Arg: r.IntN(1 << 16)})
	}
	return c
}

// flood makes a case in which all tenants want more than there is for long.
func (c *Case) flood(r *rand.Rand) *Case {
	c.Policy, c.Processors, c.Flood = schedule.Microtask, 1+r.IntN(2), 2
	weights := []int{Use: 6, End: 2, Pass: 4}
	if r.IntN(2) == 0 {
		c.Weights = c.Weights[:1]
		weights[Ask] = 1
	}
	for range 400 {
		c.Ops = append(c.Ops, Op{Kind: choose(r, weights), After: time.Duration(r.IntN(200)) * time.Millisecond, Who: r.IntN(1 << 16), Arg: r.IntN(1 << 16)})
	}
	return c
}

// choose returns a kind by weight.
func choose(r *rand.Rand, weights []int) OpKind {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	at := r.IntN(sum)
	for kind, w := range weights {
		if at -= w; at < 0 {
			return OpKind(kind)
		}
	}
	return Pass
}

// after is how long passes: often nothing, sometimes long.
func after(r *rand.Rand) time.Duration {
	switch r.IntN(10) {
	case 0, 1, 2, 3, 4:
		return 0
	case 5, 6, 7:
		return time.Duration(r.IntN(30)) * time.Millisecond
	case 8:
		return time.Duration(r.IntN(3000)) * time.Millisecond
	}
	return -time.Duration(r.IntN(20)) * time.Millisecond
}

func (c *Case) String() string {
	return fmt.Sprintf("%s, %d processors, parts %v, tenants of weights %v, flood %d, %d events", c.Policy, c.Processors, c.Parts, c.Weights, c.Flood, len(c.Ops))
}

// Shrink returns a case with a problem that has as few events as can be left out one after the other.
func (c *Case) Shrink() *Case {
	small := *c
	for size := len(c.Ops) / 2; size > 0; size /= 2 {
		for at := 0; at < len(small.Ops); {
			less := small
			less.Ops = slices.Delete(slices.Clone(small.Ops), at, min(at+size, len(small.Ops)))
			if _, problem := less.Play(false); problem != nil {
				small = less
				continue
			}
			at += size
		}
	}
	return &small
}
