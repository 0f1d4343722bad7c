package proc

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// monitorSlack is how late the Go runtime's monitor thread may wake up: so long, at most, a goroutine waits for a processor (a P of the
// runtime) that another has taken along into a system call that lasts.
const monitorSlack = time.Millisecond

// RelaxMonitor lets the Go runtime's monitor thread (sysmon) of this process wake up a millisecond late. While there is anything to do it
// wakes every 20 us to look for goroutines that stay in the kernel, or on a processor. That is a timer, and a processor that cannot
// rest, each time: in a virtual machine that was an eighth of what a server with many short calls, its helper and the functions took of
// the processors. The runtime has no setting for it, but the kernel has one for each thread (timerslack_ns in proc(5)).
// It must be called as the process begins. Without CAP_SYS_NICE it is an error, and all stays as it was.
func RelaxMonitor() error {
	monitor, err := monitorThread()
	if err != nil {
		return err
	}
	path := slackPath(monitor)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, strconv.AppendInt(nil, monitorSlack.Nanoseconds(), 10)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// monitorThread is the first thread that the runtime begins: the second of the process, which lists them in that order.
func monitorThread() (id string, err error) {
	folder, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("/proc/self/task: %w", err)
	}
	defer unix.Close(folder)
	threads, err := Names(folder)
	switch {
	case err != nil:
		return "", fmt.Errorf("/proc/self/task: %w", err)
	case len(threads) < 2:
		return "", errors.New("the runtime of this process has no monitor thread")
	}
	return threads[1], nil
}

// slackPath is the file of a thread's timer slack. Threads have it in folders that no listing of /proc shows.
func slackPath(thread string) string { return "/proc/" + thread + "/timerslack_ns" }
