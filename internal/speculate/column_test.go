package speculate

import (
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// text is a record's value.
type text string

func (t text) Size() int    { return len(t) }
func (t text) Absent() bool { return false }

// TestColumnsOfALoopAreLetGo: each turn reads the record that the turn before wrote, and writes it itself. A promoted turn keeps its own
// writes, and nothing of the turns before.
func TestColumnsOfALoopAreLetGo(t *testing.T) {
	key := forerun.Key{Name: "k"}
	var before *entry
	for stamp := uint64(1); stamp <= 3; stamp++ {
		var total int
		c := column{total: &total}
		e := &entry{key: key, read: true}
		if before != nil {
			e.from, e.seen, e.stamp = before, before.value, before.made
		}
		c.add(e)
		c.write(key, text("a value"), stamp)
		e.flushed, e.applied = true, forerun.Version(stamp)
		c.settle()
		if e.from != nil || e.seen != nil || e.version != forerun.Version(stamp-1) {
			t.Errorf("turn %d: %+v", stamp, e)
		}
		if want := entryCost + len("k") + len("a value"); c.size != want || total != want {
			t.Errorf("turn %d: %d bytes, %d of the invocation; want %d", stamp, c.size, total, want)
		}
		before = e
	}
}
