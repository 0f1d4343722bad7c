package native

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/sandbox"
)

// hold looks for what the gate of the sandbox, which is shut, does not hold back. unshared is for good.
func (c *cell) hold(permit []netip.AddrPort) (held sandbox.Held, unshared bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.process == nil {
		return held, false, fmt.Errorf("the sandbox %q has ended", c.id)
	}
	c.guard.Permit(permit)
	held.Connected = c.guard.Connected()
	if !c.unshared {
		held.Shared = shares(c.process.Pid)
		loaded := c.seal == nil // else the code may open something yet
		c.unshared = loaded && !held.Shared && isAlone(c.process.Pid)
	}
	return held, c.unshared, nil
}

// release lets go what waits there, and returns for how long the first call has.
func (c *cell) release() (waited time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.process == nil {
		return 0, fmt.Errorf("the sandbox %q has ended", c.id)
	}
	return c.guard.Release(), nil
}

// waiting is how many calls wait there.
func (c *cell) waiting() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.process == nil {
		return 0, fmt.Errorf("the sandbox %q has ended", c.id)
	}
	return c.guard.Waiting(), nil
}

// isAlone reports whether a process has one thread: then an initializer whose code is loaded opens nothing more.
func isAlone(pid int) bool {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && len(threads) == 1
}

// shares reports whether processes forked from this one could change something for one another through what they inherit.
// When it cannot be told, they could.
func shares(pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], "rw") && strings.HasSuffix(f[1], "s") {
			return true
		}
	}
	return sharesFiles(pid)
}

// What the initializer of a language that forks has of its own: descriptors below firstOwn, and pipes that it or the
// runtime in its handlers reads alone.
const (
	firstOwn = 4
	ownPipes = 2
)

// sharesFiles looks for files that are open for writing, pipes, and what counts or waits for events. In handlers, sockets are
// replaced and files that are only read are opened anew.
func sharesFiles(pid int) bool {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return true
	}
	pipes := map[string]bool{}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd < firstOwn {
			continue
		}
		target, err := os.Readlink(folder + "/" + e.Name())
		switch {
		case err != nil: // closed meanwhile
		case strings.HasPrefix(target, "pipe:"):
			pipes[target] = true
		case strings.HasPrefix(target, "anon_inode:") && !strings.Contains(target, "[pidfd]"):
			return true
		case strings.HasPrefix(target, "/") && target != os.DevNull && writable(pid, fd):
			return true
		}
	}
	return len(pipes) > ownPipes
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
