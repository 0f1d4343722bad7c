package embedded

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// database is Pebble, as far as a pacer sees it.
type database struct {
	*pacer
	allowed int
	waiting int // compactions that were refused
	runs    []pebble.CompactionGrantHandle
	asked   func() // as it is asked whether one waits
}

func newDatabase(t *testing.T) *database {
	d := &database{pacer: newPacer(func() bool { return false }), allowed: 1, asked: func() {}}
	d.Register(1, d)
	t.Cleanup(d.Unregister)
	return d
}

func (d *database) GetAllowedWithoutPermission() int { return d.allowed }

func (d *database) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	waits := d.waiting > 0
	d.asked()
	return waits, pebble.WaitingCompaction{}
}

func (d *database) Schedule(h pebble.CompactionGrantHandle) bool {
	if d.waiting == 0 {
		return false
	}
	d.waiting--
	d.runs = append(d.runs, h)
	return true
}

// want wants one more compaction.
func (d *database) want() {
	if ok, h := d.TrySchedule(); ok {
		d.runs = append(d.runs, h)
	} else {
		d.waiting++
	}
}

// finish ends the compaction that runs.
func (d *database) finish() {
	h := d.runs[0]
	d.runs = d.runs[1:]
	h.Done()
}

func TestPacerRunsOneAtATime(t *testing.T) {
	d := newDatabase(t)
	for range 3 {
		d.want()
	}
	for left := 2; left >= 0; left-- {
		if len(d.runs) != 1 || d.waiting != left {
			t.Fatalf("%d run and %d wait, of %d", len(d.runs), d.waiting, left+1)
		}
		d.finish()
	}
	if d.want(); len(d.runs) != 1 {
		t.Error("where none runs none may")
	}
}

// TestPacerForgetsNobody: one is refused just when the one before it has found that none waits.
func TestPacerForgetsNobody(t *testing.T) {
	d := newDatabase(t)
	d.want()
	d.asked = func() {
		d.asked = func() {}
		d.want()
	}
	d.finish()
	if len(d.runs) != 1 || d.waiting != 0 {
		t.Errorf("%d run and %d wait", len(d.runs), d.waiting)
	}
}

func TestPacerAfterTheEnd(t *testing.T) {
	d := &database{pacer: newPacer(func() bool { return false }), allowed: 1}
	d.Register(1, d)
	d.asked = func() { t.Error("it was asked for the next") }
	d.want()
	d.Unregister()
	d.finish()
	if d.want(); len(d.runs) > 0 {
		t.Error("one runs")
	}
}

// rested is for how long a compaction rests that has worked for a while.
func rested(d *database, worked time.Duration) time.Duration {
	d.runs[0].Started()
	time.Sleep(worked)
	begin := time.Now()
	d.runs[0].CumulativeStats(pebble.CompactionGrantHandleStats{})
	return time.Since(begin)
}

func TestCompactionRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(t)
		d.want()
		for _, c := range []struct {
			worked  time.Duration
			allowed int
			rests   time.Duration
		}{{2 * time.Millisecond, 1, 6 * time.Millisecond}, {time.Second, 1, paceMost}, {2 * time.Millisecond, 2, 0}} {
			if d.allowed = c.allowed; rested(d, c.worked) != c.rests {
				t.Errorf("after %v, where %d may run, it does not rest for %v", c.worked, c.allowed, c.rests)
			}
		}
	})
}

// TestCompactionDoesNotKeepTheStoreOpen: it goes on without rests.
func TestCompactionDoesNotKeepTheStoreOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &database{pacer: newPacer(func() bool { return false }), allowed: 1}
		d.Register(1, d)
		d.want()
		d.Unregister()
		if d := rested(d, time.Second); d != 0 {
			t.Errorf("it rests for %v", d)
		}
	})
}
