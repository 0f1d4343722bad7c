package harness

import (
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Foreign is the processes that are neither a benchmark's nor what it has started: the machine's own. What they take of the
// processors is no doing of what is measured, and is missing only when nothing is idle.
type Foreign struct{ clocks []int32 }

// FindForeign finds the processes that are there, but those of a tree.
func FindForeign(tree int) *Foreign {
	own := Descendants(tree)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return new(Foreign)
	}
	f := new(Foreign)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && !slices.Contains(own, e.Name()) {
			f.clocks = append(f.clocks, clockOf(pid))
		}
	}
	return f
}

// clockOf is the clock of what all threads of a process have used: CPUCLOCK_SCHED of the kernel's posix-timers.h.
func clockOf(pid int) int32 { return int32(^pid)<<3 | 2 }

// Time is what they have used of the processors, those left out that have ended.
func (f *Foreign) Time() (total time.Duration) {
	var t unix.Timespec
	for _, clock := range f.clocks {
		if unix.ClockGettime(clock, &t) == nil {
			total += time.Duration(t.Nano())
		}
	}
	return total
}
