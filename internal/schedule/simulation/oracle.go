package simulation

import (
	"math"
	"time"

	"forerun.dev/forerun/internal/schedule"
)

// light is the greatest class of phases that can do with the back.
const light schedule.Class = 4

// slots are the slabs of a range of classes, as the oracle counts them.
type slots struct {
	upTo  schedule.Class
	slabs int
	used  int // by phases in front
	ahead int // of them by speculative ones
}

// slots counts the slabs of all ranges.
func (w *world) slots() []slots {
	all := w.processors * int(schedule.Core)
	list := []slots{{upTo: math.MaxInt, slabs: all}}
	switch {
	case w.c.Policy != schedule.Static || w.processors == 1:
	case w.c.Parts == nil:
		half := w.processors / 2 * int(schedule.Core)
		list = []slots{{upTo: 15, slabs: half}, {upTo: math.MaxInt, slabs: all - half}}
	default:
		sum := 0
		for _, p := range w.c.Parts {
			sum += p.Slabs
		}
		list = nil
		for _, p := range w.c.Parts {
			list = append(list, slots{upTo: p.UpTo, slabs: p.Slabs * all / sum})
		}
		list[len(list)-1].upTo = math.MaxInt
	}
	for _, a := range w.activations {
		if a.place == front {
			s := slotsOf(list, a)
			s.used += min(int(a.class), s.slabs)
			if a.ahead {
				s.ahead += min(int(a.class), s.slabs)
			}
		}
	}
	return list
}

func slotsOf(list []slots, a *activation) *slots {
	for i := range list {
		if a.class <= list[i].upTo {
			return &list[i]
		}
	}
	return nil
}

func (w *world) need(a *activation) int {
	list := w.slots()
	return min(int(a.class), slotsOf(list, a).slabs)
}

// check looks at everything that must hold after each step.
func (w *world) check() {
	if w.c.Policy == schedule.Oversubscribe {
		for _, a := range w.activations {
			if a.place == waiting || a.place == back {
				w.wrong("%s is %v, and nothing bounds what runs", a.id, a.place)
			}
		}
		return
	}
	list := w.slots()
	for _, s := range list {
		if s.used > s.slabs {
			w.wrong("phases in front hold %d of %d slabs", s.used, s.slabs)
		}
	}
	for _, a := range w.activations {
		if a.place == waiting || a.place == back {
			w.checkQueued(a, slotsOf(list, a))
		}
	}
}

// checkQueued looks at a phase that wants slabs.
func (w *world) checkQueued(a *activation, s *slots) {
	need, free := min(int(a.class), s.slabs), s.slabs-s.used
	if need <= free {
		w.wrong("%s is %v and needs %d slabs, and %d are free", a.id, a.place, need, free)
	}
	if a.ahead {
		return
	}
	if need <= free+s.ahead {
		w.wrong("%s is %v and needs %d slabs: %d are free, and speculative phases have %d (C5)", a.id, a.place, need, free, s.ahead)
	}
	if !w.takesBack() {
		return
	}
	if waited := w.latest - a.asked; a.place == waiting && waited > a.bound {
		w.wrong("%s waits for %v, and the bound is %v", a.id, waited, a.bound)
	}
	if a.demoted == w.step || a.place == back && a.class <= light {
		return
	}
	for _, f := range w.activations {
		if f.place == front && f.tenant == a.tenant && need <= free+min(int(f.class), s.slabs) && w.mustGo(f) {
			w.wrong("%s is %v, and %s of the same tenant is in front for %v and has used %v", a.id, a.place, f.id, w.latest-f.since, f.cpu-f.atFront)
		}
	}
}

// takesBack reports whether the policy takes slabs from phases that have had them for long.
func (w *world) takesBack() bool {
	return w.c.Policy == schedule.Microtask || w.c.Policy == schedule.Auto
}

// mustGo reports whether a phase has had more than its turn.
func (w *world) mustGo(a *activation) bool {
	return w.latest-a.since >= schedule.Hold || a.cpu-a.atFront >= time.Second
}

// boundOf is the bound on the wait of a phase that asks.
func (w *world) boundOf(a *activation) time.Duration {
	before, weights := 0, 0
	for _, o := range w.activations {
		if o != a && o.tenant == a.tenant {
			before++
		}
	}
	for _, weight := range w.c.Weights {
		weights += weight
	}
	own := w.c.Weights[a.tenant]
	return schedule.Bound(before, (weights+own-1)/own) + 10*schedule.Tick
}

// checkShares compares the shares of tenants that always wanted more. By weight, two shares may differ by as much as one tenant may hold for two turns
// and a half.
func (w *world) checkShares() {
	for t, weight := range w.c.Weights {
		for u, other := range w.c.Weights[:t] {
			mine, others := w.served[t]/float64(weight), w.served[u]/float64(other)
			if differs := math.Abs(mine - others); differs > 2.5*schedule.Hold.Seconds()*float64(schedule.Core) {
				w.wrong("tenants got %.1f and %.1f slab seconds by weight", mine, others)
			}
		}
	}
}
