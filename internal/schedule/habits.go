package schedule

import (
	"slices"
	"time"
)

// habits are what is learnt of phases, by their kinds. They are bounded, for each tenant and for all: the oldest kind is forgotten. What a kind
// is contains the code's digest. So nothing is known of changed code.
type habits struct {
	of    map[string]*habit
	order []*habit // the oldest first
}

// habit is what phases of one kind do.
type habit struct {
	kind, tenant string
	took         time.Duration // of processor time
	need         float64       // slabs, while it does not wait
	learnt       int           // times that need was
}

// How many kinds are known of one tenant and of all.
const (
	maxOwnKinds = 128
	maxKinds    = 1024
)

// quantumTimes is how much longer than usual a phase may compute before others take its slabs.
const quantumTimes = 1.5

// quantum is how long a phase of a kind may compute before others take its slabs. Of an unknown kind it is the least.
func (h *habits) quantum(kind string) time.Duration {
	took := time.Duration(0)
	if known := h.of[kind]; known != nil {
		took = known.took
	}
	return min(mostQuantum, max(leastQuantum, time.Duration(quantumTimes*float64(took))))
}

// Learning of needs.
const (
	sure      = 3    // phases of a kind after which its class is known
	headroom  = 1.25 // times the need, for phases that need more than others
	needRises = 0.5  // the part of a greater need that counts at once
	needFalls = 0.1
)

// class is the class that is learnt of a kind; otherwise it is not known yet.
func (h *habits) class(kind string, otherwise Class) Class {
	known := h.of[kind]
	switch {
	case known == nil || known.learnt < sure:
		return otherwise
	case known.need <= headroom*float64(Core): // what uses little more than a processor has one
		return classFor(min(known.need*headroom, float64(Core)))
	}
	return classFor(known.need)
}

// learn takes what a phase took: at once if it was more than before, else slowly. need is how many slabs it used while it did not wait;
// 0: that was not measured.
func (h *habits) learn(tenant, kind string, took time.Duration, need float64) {
	if kind == "" {
		return
	}
	k := h.of[kind]
	if k == nil {
		k = &habit{kind: kind, tenant: tenant}
		h.makeRoom(tenant)
		h.of[kind], h.order = k, append(h.order, k)
	}
	k.took = max(took, k.took-k.took/10+took/10)
	switch {
	case need <= 0:
		return
	case k.learnt == 0:
		k.need = need
	case need > k.need:
		k.need += needRises * (need - k.need)
	default:
		k.need += needFalls * (need - k.need)
	}
	k.learnt++
}

// makeRoom forgets the oldest kind of a tenant that has as many as it may have, or else of all.
func (h *habits) makeRoom(tenant string) {
	own, oldest := 0, 0
	for i, k := range slices.Backward(h.order) {
		if k.tenant == tenant {
			own, oldest = own+1, i
		}
	}
	if own < maxOwnKinds {
		oldest = 0
	}
	if own >= maxOwnKinds || len(h.order) >= maxKinds {
		delete(h.of, h.order[oldest].kind)
		h.order = slices.Delete(h.order, oldest, oldest+1)
	}
}
