package statetest

import (
	"context"
	"fmt"
	"sync"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// exec executes lines as one step.
func (w *world) exec(expect []state.Expect, lines ...string) ([]state.Reply, forerun.Version, error) {
	ops := make([]state.Command, len(lines))
	for i, line := range lines {
		ops[i] = command(space, line)
	}
	return w.store.Exec(context.Background(), expect, ops)
}

func testExec(w *world) {
	_, before := w.do("SET a 1")
	replies, v, err := w.exec([]state.Expect{expect("a", before), expect("b", 0)}, "INCR a", "LPUSH a x", "NONSENSE", "GET", "SET b y", "GET b")
	if err != nil || v <= before || len(replies) != 6 {
		w.Fatalf("%d replies, version %d, %v", len(replies), v, err)
	}
	if replies[0].Int != 2 || string(replies[5].Text) != "y" {
		w.Errorf("%+v", replies)
	}
	for i, r := range replies {
		if (r.Kind == state.Error) != (i >= 1 && i <= 3) {
			w.Errorf("reply %d is %+v", i, r)
		}
	}
	if a, b := w.want("a", "2"), w.want("b", "y"); a.Version != v || b.Version != v {
		w.Errorf("versions %d and %d, want %d", a.Version, b.Version, v)
	}
	if _, rests, err := w.exec(nil, "GET a"); err != nil || rests < v {
		w.Errorf("what was read rests on %d, %v", rests, err)
	}
	_, _, err = w.exec([]state.Expect{expect("a", v), expect("b", before), expect("c", 3)}, "SET a 3")
	w.conflict(err, "b", "c")
	w.want("a", "2")
	if replies, _, err = w.exec(nil); err != nil || len(replies) != 0 {
		w.Errorf("nothing to do: %v, %v", replies, err)
	}
}

// testExecIsOneStep moves units between two counters while others look at both.
func testExecIsOneStep(w *world) {
	w.do("SET a 1000")
	w.do("SET b 0")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				_, _, err := w.exec(nil, "DECR a", "INCR b")
				replies, _, err2 := w.exec(nil, "MGET a b")
				var a, b int
				if err != nil || err2 != nil {
					w.Errorf("%v, %v", err, err2)
					return
				}
				_, err = fmt.Sscan(string(replies[0].Items[0].Text)+" "+string(replies[0].Items[1].Text), &a, &b)
				if err != nil || a+b != 1000 {
					w.Errorf("%d and %d, %v", a, b, err)
				}
			}
		})
	}
	all.Wait()
	w.want("b", "200")
}
