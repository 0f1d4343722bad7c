// Package schedule decides which phases of activations run on the processors
// of a node, and which wait.
//
// A phase is a part of an activation with a need of processor time. Its class
// is this need in slabs, and a slab is a sixteenth of a processor. A phase in
// front holds as many slabs as its class says. A phase in the back runs with
// less weight and holds none. All other phases wait.
//
// The Machine is a pure function of its events: it has no clock and no
// goroutine, and it does no input or output. It promises:
//
//   - The classes in front never exceed the slabs.
//   - The slabs of a phase come back however the phase ends, and while it waits
//     at a door.
//   - While slabs for a phase are free, the phase does not wait.
//   - A speculative phase is in front only on slabs that no other phase wants
//     (C5).
//   - While several tenants want slabs, each gets them by its weight.
//   - A phase that is not speculative does not starve: Bound is the longest
//     wait.
//
// The caller has these duties:
//
//  1. It begins no phase before the Machine let it in.
//  2. It carries out ToFront and ToBack as weights of processor time.
//  3. It tells every end of an activation with Ended, once or more often.
//  4. While Contended, it sends Used for the activations in Front, and then
//     Passed, at least once in each Tick.
//  5. The times that it passes come from one clock.
package schedule

import (
	"fmt"
	"time"
)

// Policy is one of the settings of the Machine.
type Policy string

// The policies.
const (
	// Oversubscribe lets in everything at once, as if the slabs had no end.
	Oversubscribe Policy = "oversubscribe"
	// Task gives each activation one processor for its whole duration, whatever its phases need.
	Task Policy = "task"
	// Static gives slabs to phases, from a part of the slabs that is fixed for a range of classes.
	Static Policy = "microtask-static"
	// Microtask gives slabs to phases, and takes them back from phases that keep others waiting for long.
	Microtask Policy = "microtask"
	// Auto is Microtask with classes that are learnt for phases of which nothing is said.
	Auto Policy = "auto"
)

// Policies lists the policies, the default first.
func Policies() []Policy { return []Policy{Oversubscribe, Task, Static, Microtask, Auto} }

// ParsePolicy finds a policy by its name. The error is a sentence for a person.
func ParsePolicy(name string) (Policy, error) {
	for _, p := range Policies() {
		if string(p) == name {
			return p, nil
		}
	}
	return "", fmt.Errorf("%q is not a policy of the scheduler; it may be one of %q", name, Policies())
}

// Times of the policy.
const (
	// Tick is how often the caller tells what was used, while phases contend for slabs.
	Tick = 10 * time.Millisecond
	// Hold is how long a phase stays in front at most while others want its slabs.
	Hold = 2 * time.Second
	// patience is how long a phase waits until its age counts more than the backlog of its class.
	patience = time.Second
	// leastQuantum and mostQuantum bound the processor time after which a phase gives its slabs to others.
	leastQuantum = 50 * time.Millisecond
	mostQuantum  = time.Second
)

// light is the greatest class of light phases. A light phase runs in the back at once if no slabs are free for it, and makes way for others.
const light Class = 4

// Part is what a range of classes has of the slabs under Static.
type Part struct {
	UpTo  Class // the greatest class in it; the last part has all greater ones, too
	Slabs int
}

// Settings make a Machine.
type Settings struct {
	Policy     Policy
	Processors int
	// Parts divide the slabs under Static, the smallest classes first. They are scaled if the number of processors changes.
	// None: classes below one processor have half of the processors, and the others the rest.
	Parts []Part
}

// parts are the slabs of each range of classes for a number of processors.
func (s Settings) parts(processors int) []Part {
	all := processors * int(Core)
	switch {
	case s.Policy == Oversubscribe:
		return []Part{{UpTo: unlimited, Slabs: int(unlimited)}}
	case s.Policy != Static || processors < 2:
		return []Part{{UpTo: unlimited, Slabs: all}}
	case s.Parts == nil:
		small := processors / 2 * int(Core)
		return []Part{{UpTo: Core - 1, Slabs: small}, {UpTo: unlimited, Slabs: all - small}}
	}
	sum := 0
	for _, p := range s.Parts {
		sum += p.Slabs
	}
	parts := make([]Part, 0, len(s.Parts))
	for _, p := range s.Parts {
		parts = append(parts, Part{UpTo: p.UpTo, Slabs: p.Slabs * all / sum})
	}
	parts[len(parts)-1].UpTo = unlimited
	return parts
}

// Bound is the longest wait of a phase in order under Microtask and Auto. Its tenant had so many phases before it. The weights of all tenants together are
// so many times its tenant's weight. Phases that came to the front before its age counted stay for Hold. Then each
// phase before it, and the phase itself, waits for the turn of its tenant. The simulation holds this bound.
func Bound(before, weights int) time.Duration {
	return patience + Hold + time.Duration((before+1)*(weights+2))*(Hold+Tick)
}
