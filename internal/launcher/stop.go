package launcher

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// A process may go on by itself while it waits for its activation, and a program that speaks lines does not say when it waits. So what
// is to wait beside another's activations is stopped: when it has come to rest, or as far as it has come.
const (
	settleLook = time.Millisecond
	settleRest = 20          // looks
	settleWork = time.Second // of the processors: one that is busy never rests, and one that gets little of them may yet
	settleMost = 10 * time.Second
	pauseLook  = 100 * time.Microsecond
	pauseRest  = 100 * time.Millisecond // in which no thread would stop if it got a processor
	pauseMost  = 5 * time.Second
)

// stop pauses a process that was started, when it has come to rest.
func (ps *processes) stop(p *process) {
	rests, enough := 0, workOf(p.pid)+settleWork
	for end := time.Now().Add(settleMost); rests < settleRest && !p.hasExited() && workOf(p.pid) < enough && time.Now().Before(end); {
		time.Sleep(settleLook)
		rests++
		if !isResting(p.pid) {
			rests = 0
		}
	}
	p.stopped = ps.pause(p.pid)
}

// pause stops a process: none of its threads executes anything then, or it has ended. It reports false of one that cannot be stopped
// soon, as a thread that waits in the kernel for something held need not be, and lets that go on.
func (ps *processes) pause(pid int) bool {
	if !ps.signal(pid, syscall.SIGSTOP) {
		return true
	}
	began := time.Now()
	for last := began; time.Since(last) < pauseRest && time.Since(began) < pauseMost; time.Sleep(pauseLook) {
		var changed unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &changed, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		if err == unix.ECHILD || err == nil && changed.Signo != 0 {
			return true
		}
		if isAny(pid, wantsProcessor) {
			last = time.Now()
		}
	}
	ps.letGoOn(pid)
	return false
}

// letGoOn has a process that was stopped go on.
func (ps *processes) letGoOn(pid int) { ps.signal(pid, syscall.SIGCONT) }

// signal sends a signal to a language process, if it is one that was not reaped yet.
func (ps *processes) signal(pid int, s syscall.Signal) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.byPID[pid] != nil && syscall.Kill(pid, s) == nil
}

// workOf is what a process has had of the processors, or nothing of one that has ended.
func workOf(pid int) time.Duration {
	t, _ := proc.ReadTask(fmt.Sprintf("/proc/%d/stat", pid))
	return t.Work
}

// isResting reports whether all threads of a process sleep, and none as it connects: that is looked at first, which takes a moment, and
// one that is stopped then may find that it timed out once it goes on.
func isResting(pid int) bool {
	return !isAny(pid, func(folder string, t proc.Task) bool {
		call, ok := proc.ReadCall(folder + "syscall")
		return t.State != 'S' || ok && call == unix.SYS_CONNECT
	})
}

func wantsProcessor(_ string, t proc.Task) bool { return t.State == 'R' }

// isAny reports whether something is true of any thread of a process. Of what has just ended, anything is.
func isAny(pid int, is func(folder string, t proc.Task) bool) bool {
	tasks := fmt.Sprintf("/proc/%d/task/", pid)
	threads, err := os.ReadDir(tasks)
	if err != nil || len(threads) == 0 {
		return true
	}
	return slices.ContainsFunc(threads, func(e os.DirEntry) bool {
		folder := tasks + e.Name() + "/"
		t, ok := proc.ReadTask(folder + "stat")
		return !ok || is(folder, t)
	})
}
