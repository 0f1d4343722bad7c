package harness

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Foreign is the processes that are neither a benchmark's nor what it has started: the machine's own. What they take of the
// processors is no doing of what is measured, and is missing only when nothing is idle. Threads of the kernel do not count, which
// work for everybody, but for the one that watches the machine's memory.
type Foreign struct{ clocks []int32 }

// memoryWatcher is the kernel's DAMON, which nobody asks for anything.
const memoryWatcher = "kdamond."

// FindForeign finds the processes that are there, but those of a tree.
func FindForeign(tree int) *Foreign {
	f := new(Foreign)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return f
	}
	own := Descendants(tree) // after the list, so that none in it is younger
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || slices.Contains(own, e.Name()) {
			continue
		}
		name, values := stat(e.Name())
		ofKernel := pid == kernelThreads || len(values) > 1 && values[1] == strconv.Itoa(kernelThreads)
		if !ofKernel || strings.HasPrefix(name, memoryWatcher) {
			f.clocks = append(f.clocks, clockOf(pid))
		}
	}
	return f
}

// kernelThreads is the parent of all threads of the kernel.
const kernelThreads = 2

// clockOf is the clock of what all threads of a process have used: CPUCLOCK_SCHED of the kernel's posix-timers.h.
func clockOf(pid int) int32 { return int32(^pid)<<3 | 2 }

// ProcessClock is what a process has used of the processors, its ended threads included; 0 if it is not there.
func ProcessClock(pid int) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clockOf(pid), &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Reading is what each of them had used at one moment.
type Reading []time.Duration

// Read reads what they have used.
func (f *Foreign) Read() Reading {
	r := make(Reading, len(f.clocks))
	var t unix.Timespec
	for i, clock := range f.clocks {
		if unix.ClockGettime(clock, &t) == nil {
			r[i] = time.Duration(t.Nano())
		}
	}
	return r
}

// Since is what they have used since an earlier reading, those left out that have ended.
func (r Reading) Since(earlier Reading) (total time.Duration) {
	for i, used := range r {
		total += max(0, used-earlier[i])
	}
	return total
}
