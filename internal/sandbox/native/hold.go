package native

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// hold looks for ways out that the sandbox's gate, which is shut, does not hold. unshared is permanent.
func (c *helperSandbox) hold(permit []netip.AddrPort) (held sandbox.Held, unshared bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.process == nil {
		return held, false, fmt.Errorf("the sandbox %q has ended", c.id)
	}
	c.guard.Permit(permit)
	held.Connected = c.guard.Connected(c.initializers)
	if !c.unshared {
		held.Shared = c.shares()
		loaded := c.seal == nil // else the code may open something yet
		c.unshared = loaded && !held.Shared && isAlone(c.process.Pid)
	}
	return held, c.unshared, nil
}

// initializers reports whether only the initializer has a socket, which it opened when it loaded the code: handlers replace these with
// dead ones. Sockets that handlers opened as they were forked are not among them.
func (c *helperSandbox) initializers() func(inode uint32) bool {
	own, others := map[uint32]bool{}, map[uint32]bool{}
	pids, err := c.processes()
	for _, pid := range pids {
		in := others
		if pid == c.process.Pid {
			in = own
		}
		if err == nil {
			err = addSockets(in, pid)
		}
	}
	return func(inode uint32) bool { return err == nil && own[inode] && !others[inode] }
}

// addSockets adds the inodes of a process's sockets.
func addSockets(to map[uint32]bool, pid int) error {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		target, _ := os.Readlink(folder + "/" + e.Name()) // fails if it was closed meanwhile
		if number, ok := strings.CutPrefix(target, "socket:["); ok {
			inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
			if err != nil {
				return err
			}
			to[uint32(inode)] = true
		}
	}
	return err
}

// release lets go what waits there, and returns for how long the first call has.
func (c *helperSandbox) release() (waited time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.process == nil {
		return 0, fmt.Errorf("the sandbox %q has ended", c.id)
	}
	return c.guard.Release(), nil
}

// waiting is how many calls wait there.
func (c *helperSandbox) waiting() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.process == nil {
		return 0, fmt.Errorf("the sandbox %q has ended", c.id)
	}
	return c.guard.Waiting(), nil
}

// isAlone reports whether a process has one thread. An initializer with loaded code then opens nothing more.
func isAlone(pid int) bool {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && len(threads) == 1
}

// shares reports whether processes forked from the initializer could change something for one another through inherited files. If it
// cannot be told, they could.
func (c *helperSandbox) shares() bool {
	pid := c.process.Pid
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return true
	}
	shared := false
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasSuffix(f[1], "s") {
			if f[1][1] == 'w' {
				return true
			}
			shared = true
		}
	}
	devices, err := c.devices()
	return err != nil || shared && mayWrite(pid) || sharesFiles(pid, c.outputs, devices)
}

// mayWrite reports whether a process could make shared memory writable that it only reads (mprotect). To ask takes the kernel a while.
func mayWrite(pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(maps)) {
		if text, ok := strings.CutPrefix(line, "VmFlags:"); ok {
			if flags := strings.Fields(text); slices.Contains(flags, "sh") && slices.Contains(flags, "mw") {
				return true
			}
		}
	}
	return false
}

// ownPipes are the initializer's own pipes, beside the outputs, in a language that forks. Only it, or the runtime in its handlers, reads
// them.
const ownPipes = 2

// sharesFiles looks for files that are open for writing, or are the sandbox's own: a process that inherited them can open them once more
// by their descriptors. It also looks for pipes, counters and event queues. Handlers replace sockets, and open the host's files, which are
// only read, again.
func sharesFiles(pid int, outputs outputs, devices []uint64) bool {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return true
	}
	pipes := map[string]bool{}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		target, err := os.Readlink(folder + "/" + e.Name())
		switch {
		case err != nil: // closed meanwhile
		case strings.HasPrefix(target, "pipe:"):
			if !outputs.have(target) {
				pipes[target] = true
			}
		case strings.HasPrefix(target, "anon_inode:") && !strings.Contains(target, "[pidfd]"), strings.HasPrefix(target, "/memfd:"):
			return true
		case strings.HasPrefix(target, "/") && target != os.DevNull && (writable(pid, fd) || isOn(folder+"/"+e.Name(), devices)):
			return true
		}
	}
	return len(pipes) > ownPipes
}

// isOn reports whether a file is on one of these devices.
func isOn(path string, devices []uint64) bool {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err != unix.ENOENT // closed meanwhile
	}
	return slices.Contains(devices, st.Dev)
}

func writable(pid, fd int) bool {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) // closed meanwhile
	}
	for line := range strings.Lines(string(info)) {
		if text, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
			return err != nil || flags&uint64(os.O_WRONLY|os.O_RDWR) != 0
		}
	}
	return true
}
