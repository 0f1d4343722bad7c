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

// The end of a large process takes milliseconds. The kernel spends nearly all of them on taking back its memory. By then its threads
// execute nothing any more, and never will. So the killer need not wait for that.

// fading are processes that were killed, by id, and their pidfds. Once that has returned which killed them they only end.
type fading map[int]int

// others returns the processes of a list that do not fade. If a number is on the list and its process is still there afterwards, the
// number had no other owner meanwhile.
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
func (c *helperSandbox) mayFade(victims map[int]int) bool {
	return isLittle(slices.AppendSeq(slices.Collect(maps.Keys(c.fading)), maps.Keys(victims)), c.group.memory)
}

// fades reports whether a process that was killed only ends, and may do so behind the next activation: then it is listed no more.
// Its pidfd is taken over. It never does if that would be noticed.
func (c *helperSandbox) fades(pid, pidfd int) (fades, never bool) {
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

// Bounds for processes that may fade while another activation begins. They share the limits of the sandbox with it.
const (
	fadingThreads = 32
	fadingPart    = 2 // half of the memory
)

// isLittle reports whether processes have so little that its loss is not noticed. If it cannot be told, they have more.
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

// lastThread is the one thread that a killed process has left, if it is on its way out. It is 0 if there are others, or if it may execute
// something. A killed process gets no further threads, so the list of them is whole if it is as long as their number before. While there
// are more threads than the first, which stays, and one other, they are not looked at: looking delays their end.
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

// threads lists the threads of a process.
func threads(own string) (names []string, err error) {
	fd, err := unix.Open(own+"task", openFolder, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return proc.Names(fd)
}
