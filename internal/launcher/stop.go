package launcher

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// A program that speaks lines does not say when it waits for one, and may go on with something else meanwhile. So what is to wait
// beside another's activations is stopped: when it has come to rest, or as far as it has come.
const (
	settleLook = time.Millisecond
	settleMost = time.Second
)

// stop stops a process that was started. When it returns none of its threads executes anything, if it lives.
func (ps *processes) stop(p *process) {
	rests := 0
	for end := time.Now().Add(settleMost); rests < 2 && !p.hasExited() && time.Now().Before(end); {
		time.Sleep(settleLook)
		rests++
		if !isResting(p.pid) {
			rests = 0
		}
	}
	if !ps.signal(p.pid, syscall.SIGSTOP) {
		return
	}
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			p.stopped = true // or it has ended
			return
		}
	}
}

// letGoOn has a process that was stopped go on.
func (ps *processes) letGoOn(pid int) { ps.signal(pid, syscall.SIGCONT) }

// signal sends a signal to a language process, if it is one that was not reaped yet.
func (ps *processes) signal(pid int, s syscall.Signal) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.byPID[pid] != nil && syscall.Kill(pid, s) == nil
}

// isResting reports whether all threads of a process sleep.
func isResting(pid int) bool {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range threads {
		if task, ok := proc.ReadTask(fmt.Sprintf("/proc/%d/task/%s/stat", pid, t.Name())); !ok || task.State != 'S' {
			return false
		}
	}
	return err == nil && len(threads) > 0
}
