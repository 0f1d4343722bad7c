package native

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// The end of a large process takes milliseconds, nearly all of which the kernel spends on giving back its memory. By then none of
// its threads executes anything, nor ever will: who killed it need not wait for that.

// fading are processes that were killed, by id, and their pidfds. Once that has returned which killed them they only end.
type fading map[int]int

// others returns the processes of a list but those that fade. A number that is on the list, and whose process is there still
// afterwards, was no other's.
func (f fading) others(list func() ([]int, error)) ([]int, error) {
	pids, err := list()
	for pid, fd := range f {
		if hasEnded(fd, 0) {
			_ = unix.Close(fd)
			delete(f, pid)
		}
	}
	return slices.DeleteFunc(pids, func(pid int) bool { _, ok := f[pid]; return ok }), err
}

// close closes all pidfds.
func (f fading) close() {
	for _, fd := range f {
		_ = unix.Close(fd)
	}
	clear(f)
}

// mayFade reports whether processes that are about to be killed have little, together with those that fade.
func (c *cell) mayFade(victims map[int]int) bool {
	return isLittle(slices.AppendSeq(slices.Collect(maps.Keys(c.fading)), maps.Keys(victims)), c.group.memory)
}

// fades reports whether a process that was killed only ends, and may do so behind the next activation: then it is listed no more.
// Its pidfd is taken over. It never does if that would be noticed.
func (c *cell) fades(pid, pidfd int) (fades, never bool) {
	tid := lastThread(pid)
	if tid == 0 {
		return false, false
	}
	unnoticed, known := c.unnoticed(pid, tid)
	if unnoticed {
		c.fading[pid] = pidfd
	}
	return unnoticed, known && !unnoticed
}

// hasEnded waits so long until a pidfd's process, with all its threads, has ended.
func hasEnded(pidfd int, wait time.Duration) bool {
	timeout := unix.NsecToTimespec(wait.Nanoseconds())
	n, _ := unix.Ppoll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, &timeout, nil) // interrupted, it has not
	return n > 0
}

// What processes may have that fade while another activation begins. It shares the limits of the sandbox with them.
const (
	fadingThreads = 32
	fadingPart    = 2 // half of the memory
)

// isLittle reports whether processes have so little that nobody misses it. When it cannot be told, they have not.
func isLittle(pids []int, memoryMiB int) bool {
	var memory, threads uint64
	for _, pid := range pids {
		status, err := proc.ReadStatus(pid)
		if err != nil {
			return false
		}
		memory += status.Number("RssAnon") + status.Number("RssShmem")
		threads += status.Number("Threads")
	}
	return threads <= fadingThreads && memory/1024 <= uint64(memoryMiB)/fadingPart
}

// lastThread is the one thread that a killed process has left, and which is on its way out; 0 if there are others, or it may execute
// something. Such a process gets no further threads, so the list of those that it has is whole if it is as long as their number was
// before. As long as there are more than its first, which stays, and another, they are not looked at: that keeps them from their end.
func lastThread(pid int) int {
	own := fmt.Sprintf("/proc/%d/", pid)
	leader, ok := proc.ReadTask(own + "stat")
	if !ok || !leader.Exits() || leader.Threads < 1 || leader.Threads > 2 {
		return 0
	}
	if leader.Threads == 1 {
		return pid
	}
	names, err := threads(own)
	if err != nil || len(names) != leader.Threads {
		return 0
	}
	last := 0
	for _, name := range names {
		t, ok := proc.ReadTask(own + "task/" + name + "/stat")
		tid, err := strconv.Atoi(name)
		switch {
		case !ok || err != nil || !t.Exits(): // or it has made way for one that goes under its number
			return 0
		case t.HasEnded():
		case last != 0:
			return 0
		default:
			last = tid
		}
	}
	return last
}

// threads lists those of a process.
func threads(own string) (names []string, err error) {
	fd, err := unix.Open(own+"task", openFolder, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return proc.Names(fd)
}
