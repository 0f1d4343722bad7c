// Package proc reads what the kernel tells of processes and their threads in /proc (proc(5)).
package proc

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ReadFile reads a file, as os.ReadFile does with thrice the system calls: it looks, among others, whether the file can be waited for.
func ReadFile(path string) ([]byte, error) { return ReadFileAt(unix.AT_FDCWD, path) }

// ReadFileAt reads a file in an open folder.
func ReadFileAt(folder int, name string) ([]byte, error) {
	fd, err := unix.Openat(folder, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for b := make([]byte, 0, 2048); ; b = slices.Grow(b, len(b)) {
		for len(b) < cap(b) {
			n, err := unix.Read(fd, b[len(b):cap(b)])
			if n <= 0 {
				return b, err
			}
			b = b[:len(b)+n]
		}
	}
}

// Names lists an open folder.
func Names(folder int) (names []string, err error) {
	for buffer := make([]byte, 4096); ; {
		n, err := unix.ReadDirent(folder, buffer)
		if err != nil || n == 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buffer[:n], -1, names)
	}
}

// Task is what the kernel tells of a thread, or of a process, which is its first thread.
type Task struct {
	State   byte // 'R' it runs, 'S' it sleeps, 'Z' and 'X' it has ended, ...
	Flags   uint64
	Work    time.Duration // that it, or all of the process, has had of the processors, in steps of 10 ms
	Threads int           // of its process
}

// Fields of a task's line in stat, counted from the one after the name.
const (
	statFlags   = 6
	statUser    = 11
	statSystem  = 12
	statThreads = 17
)

// tick is what times are counted in, everywhere that Linux tells programs of them.
const tick = 10 * time.Millisecond

// exiting is PF_EXITING of the kernel: a task that has it executes no system call and returns to none of its code.
const exiting = 0x4

// ReadTask reads a task's file stat. ok is false if there is none, as the task is gone, or not all of it.
func ReadTask(path string) (t Task, ok bool) {
	b, err := ReadFile(path)
	if err != nil {
		return t, false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the name before may hold anything
	if len(fields) <= statThreads {
		return t, false
	}
	t.State = fields[0][0]
	if t.Flags, err = strconv.ParseUint(string(fields[statFlags]), 10, 64); err != nil {
		return t, false
	}
	user, err := strconv.ParseInt(string(fields[statUser]), 10, 64)
	if err != nil {
		return t, false
	}
	system, err := strconv.ParseInt(string(fields[statSystem]), 10, 64)
	if err != nil {
		return t, false
	}
	t.Work = time.Duration(user+system) * tick
	t.Threads, err = strconv.Atoi(string(fields[statThreads]))
	return t, err == nil
}

// HasEnded tells one that nothing is left of but its number, for its parent.
func (t Task) HasEnded() bool { return t.State == 'Z' || t.State == 'X' }

// Exits tells one that is on its way out, or has ended.
func (t Task) Exits() bool { return t.Flags&exiting != 0 || t.HasEnded() }

// ReadCall reads a task's file syscall: the number of the system call that it waits in. ok is false if it waits in none, and for who may
// not trace it, who is not told.
func ReadCall(path string) (number int, ok bool) {
	b, err := ReadFile(path)
	if err != nil {
		return 0, false
	}
	first, _, _ := bytes.Cut(b, []byte(" "))
	number, err = strconv.Atoi(string(first)) // that may be "running"
	return number, err == nil && number >= 0
}

// stops are the signals that stop a process, as bits of the masks in status.
const stops = 1<<(syscall.SIGSTOP-1) | 1<<(syscall.SIGTSTP-1) | 1<<(syscall.SIGTTIN-1) | 1<<(syscall.SIGTTOU-1)

// looksForStop is how often is looked at a process that runs: between its state and its signals are told it may have taken one.
const looksForStop = 3

// IsStopped reports whether a process was stopped by a signal, or is about to be.
func IsStopped(pid int) bool {
	for range looksForStop {
		status, err := ReadStatus(pid)
		if err != nil { // there is no such process
			return false
		}
		state := status.Field("State")
		if strings.HasPrefix(state, "T") || (status.Signals("SigPnd")|status.Signals("ShdPnd"))&stops != 0 {
			return true
		}
		if !strings.HasPrefix(state, "R") {
			return false
		}
	}
	return false
}

// Delayed is for how long the main thread of a process wanted a processor and had none, since it began. It is 0 if there is no such process,
// or the kernel does not count that.
func Delayed(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	text, err := ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
	fields := strings.Fields(string(text)) // on a processor, waiting for one, turns
	if err != nil || len(fields) < 2 {
		return 0
	}
	delayed, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(delayed)
}
