package native

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
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

// fade has processes that are about to be killed fade, if they and those that do have little together.
func (c *cell) fade(victims map[int]int) bool {
	if !isLittle(slices.AppendSeq(slices.Collect(maps.Keys(c.fading)), maps.Keys(victims)), c.group.memory) {
		return false
	}
	maps.Copy(c.fading, victims)
	return true
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
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return false
		}
		memory += statusField(status, "RssAnon:") + statusField(status, "RssShmem:")
		threads += statusField(status, "Threads:")
	}
	return threads <= fadingThreads && memory/1024 <= uint64(memoryMiB)/fadingPart
}

// statusField reads a number; 0 if there is none.
func statusField(status []byte, name string) uint64 {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name))
	if fields := bytes.Fields(rest[:max(0, bytes.IndexByte(rest, '\n'))]); len(fields) > 0 {
		n, _ := strconv.ParseUint(string(fields[0]), 10, 64)
		return n
	}
	return 0
}

// exiting is PF_EXITING of the kernel: a task that has it executes no system call and returns to none of its code.
const exiting = 0x4

// onlyEnds reports whether every thread of a killed process is on its way out. Such a process gets no further threads, so the
// list of those that it has is whole if it is as long as their number was before.
func onlyEnds(pid int) bool {
	own := fmt.Sprintf("/proc/%d/", pid)
	flags, threads, ok := taskStat(own + "stat")
	if !ok || flags&exiting == 0 || threads < 1 {
		return false
	}
	if threads == 1 {
		return true
	}
	folder, err := os.Open(own + "task")
	if err != nil {
		return false
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil || len(names) != threads {
		return false
	}
	for _, name := range names {
		if flags, _, ok := taskStat(own + "task/" + name + "/stat"); !ok || flags&exiting == 0 {
			return false // it may have made way for one that goes under its number
		}
	}
	return true
}

// Fields of a task's line in stat, counted from the one after the name.
const (
	statFlags   = 6
	statThreads = 17
)

// taskStat reads a task's flags, and how many threads its process has.
func taskStat(path string) (flags uint64, threads int, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the name before may hold anything
	if len(fields) <= statThreads {
		return 0, 0, false
	}
	flags, err = strconv.ParseUint(string(fields[statFlags]), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	threads, err = strconv.Atoi(string(fields[statThreads]))
	return flags, threads, err == nil
}
