package schedule

import "time"

// quanta is what is learnt of phases: the processor time that one of a kind takes. It is bounded; the oldest kind is forgotten.
type quanta struct {
	took  map[string]time.Duration
	order []string
}

const maxKinds = 1024

// quantumTimes is how much longer than usual a phase may compute before others take its slabs.
const quantumTimes = 1.5

// of is the quantum of a kind of phase. Of an unknown kind it is the least.
func (q *quanta) of(kind string) time.Duration {
	return min(mostQuantum, max(leastQuantum, time.Duration(quantumTimes*float64(q.took[kind]))))
}

// learn takes what a phase took: at once if it was more than before, else slowly.
func (q *quanta) learn(kind string, took time.Duration) {
	if kind == "" {
		return
	}
	before, known := q.took[kind]
	if !known {
		if len(q.order) == maxKinds {
			delete(q.took, q.order[0])
			q.order = q.order[1:]
		}
		q.order = append(q.order, kind)
	}
	q.took[kind] = max(took, before-before/10+took/10)
}
