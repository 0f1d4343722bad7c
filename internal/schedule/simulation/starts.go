package simulation

import (
	"fmt"
	"time"

	"forerun.dev/forerun/internal/schedule"
)

// asksForSandbox asks whether a queue gets one more sandbox, and compares the answer with the promises.
func (w *world) asksForSandbox(op Op) {
	q := schedule.Queue{
		Due: op.Arg % 4, Ahead: op.Arg >> 2 % 4, Starting: op.Arg >> 4 % 3,
		Service: time.Duration(op.Arg>>6%3) * time.Second, Start: time.Second,
		Waited: time.Duration(op.Arg>>8%3) * 3 * time.Second, SinceLast: time.Duration(op.Arg>>10%3) * 3 * time.Second,
	}
	served, busy := false, 0 // by one that is in order and not at a door
	for i, a := range w.activations {
		if (op.Who>>i)&1 == 0 {
			continue
		}
		busy++
		if !a.ahead {
			q.Serving = append(q.Serving, a.id)
			served = served || a.place != away
		}
	}
	q.Sandboxes = busy + q.Starting
	starts := w.machine.Starts(q)
	if w.story != nil {
		fmt.Fprintf(w.story, "%v %+v: %v\n", w.now, q, starts)
	}
	wants, free := w.wantSlabs(q.Due > 0)
	long := q.Sandboxes == 0 || time.Duration(q.Due+q.Ahead)*q.Service > time.Duration(q.Sandboxes)*q.Start
	switch {
	case starts && q.Starting >= q.Due+q.Ahead:
		w.wrong("a sandbox starts for no activation: %+v", q)
	case q.Starting >= q.Due+q.Ahead:
	case !starts && q.Due > 0 && q.Starting == 0 && !served:
		w.wrong("no sandbox starts for one in order, and none comes to it: %+v", q)
	case !starts && !wants && free && long:
		w.wrong("no sandbox starts, and slabs are free: %+v", q)
	case !starts && q.Due > q.Starting && q.Waited >= 5*time.Second && q.SinceLast >= 5*time.Second:
		w.wrong("no sandbox starts after a long wait: %+v", q)
	case starts && q.Due == 0 && (wants || !free):
		w.wrong("a sandbox starts for speculative activations, and there is no room: %+v", q)
	case starts && (wants || !free || !long) && (q.Starting > 0 || served) && (q.Waited < 5*time.Second || q.SinceLast < 5*time.Second):
		w.wrong("a sandbox starts, and there is no room for it: %+v", q)
	}
}

// wantSlabs reports whether phases want slabs, and whether any are free. For one in order, those of speculative phases are.
func (w *world) wantSlabs(inOrder bool) (wants, free bool) {
	for _, a := range w.activations {
		queued := a.place == waiting || a.place == back
		wants = wants || queued && !(inOrder && a.ahead)
		free = free || inOrder && a.ahead && a.place == front
	}
	for _, s := range w.slots() {
		free = free || s.used < s.slabs
	}
	return wants, free
}
