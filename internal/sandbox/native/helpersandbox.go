package native

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// helperSandbox is the helper's part of a sandbox.
type helperSandbox struct {
	id     string
	number int           // of its range of user ids
	exited chan struct{} // closed when the initializer has ended and been waited for

	confines egress.Confines

	mu       sync.Mutex // guards what follows; held during reset and end, which exclude one another
	ended    bool
	group    *group
	process  *os.Process
	folders  []*os.File // what handlers may write to
	seal     *os.File   // of the folder of the code; nil: it was used
	guard    *guard.Supervisor
	guarded  chan struct{} // closed when that has nothing more to do; nil: there was none
	fading   fading
	unshared bool // its initializer has nothing that its handlers share but the outputs, and never will
	outputs  outputs
}

// outputs are the pipes that all processes of a sandbox write to.
type outputs struct {
	device uint64 // that all pipes without a name are on
	inodes []uint64
}

func outputsOf(pipes ...*os.File) (o outputs, err error) {
	for _, f := range pipes {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return o, fmt.Errorf("looking at the output: %w", err)
		}
		o.device, o.inodes = st.Dev, append(o.inodes, st.Ino)
	}
	return o, nil
}

// hasOther reports whether a file is a pipe without a name, and none of these.
func (o outputs) hasOther(st *unix.Stat_t) bool {
	return st.Dev == o.device && !slices.Contains(o.inodes, st.Ino)
}

// have reports whether a pipe is one of these, by the kernel's name of it.
func (o outputs) have(name string) bool {
	return slices.ContainsFunc(o.inodes, func(inode uint64) bool { return name == fmt.Sprintf("pipe:[%d]", inode) })
}

// reset is Sandbox.Reset. Killed processes may fade if they are little.
func (c *helperSandbox) reset(keep []int, mayFade bool) (killed int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.process == nil {
		return 0, fmt.Errorf("the sandbox %q has ended", c.id)
	}
	ctx, cancel := resetContext()
	defer cancel()
	k := killer{c.processes, append([]int{c.process.Pid}, keep...), c.group.freeze, nil}
	if mayFade {
		k.fades = c
	}
	if killed, err = k.killAll(ctx); err != nil {
		return killed, fmt.Errorf("ending what the activation left: %w", err)
	}
	if err := c.guard.Sweep(ctx); err != nil {
		return killed, fmt.Errorf("ending connects of the activation: %w", err)
	}
	for _, f := range c.folders {
		if err := wipe(ctx, int(f.Fd())); err != nil {
			return killed, fmt.Errorf("emptying the sandbox's folders: %w", err)
		}
	}
	return killed, nil
}

// processes are those that execute something.
func (c *helperSandbox) processes() ([]int, error) { return c.fading.others(c.listed) }

func (c *helperSandbox) listed() ([]int, error) {
	if c.group.listing() {
		return c.group.pids()
	}
	return c.walked(inhabitants)
}

// walked lists the processes that a walk from the initializer meets. When that has ended and been waited for, its number may be
// another's, and all others have ended before.
func (c *helperSandbox) walked(walk func(root int) ([]int, error)) ([]int, error) {
	pids, err := walk(c.process.Pid)
	if gone := c.process.Signal(syscall.Signal(0)); errors.Is(gone, os.ErrProcessDone) {
		return nil, nil
	}
	return pids, err
}

// limit is Sandbox.Limit, but for the share of the processors.
func (c *helperSandbox) limit(owner string, memoryMiB int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.group == nil {
		return fmt.Errorf("the sandbox %q has ended", c.id)
	}
	if owner != "" {
		c.guard.SetOwner(owner)
	}
	if memoryMiB == 0 {
		return nil
	}
	return c.group.resize(memoryMiB)
}

// setSeal is Sandbox.Seal.
func (c *helperSandbox) setSeal() (sealed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.seal == nil {
		return false, fmt.Errorf("the sandbox %q has ended, or is sealed", c.id)
	}
	defer func() { c.seal = nil }()
	defer c.seal.Close()
	if err = unix.FsconfigReconfigure(int(c.seal.Fd())); err != nil && err != unix.EBUSY {
		return false, fmt.Errorf("making the code's folder read-only: %w", err)
	}
	return err == nil, nil
}

// end kills the sandbox, waits until nothing of it runs and removes its cgroups.
func (c *helperSandbox) end() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	c.ended = true
	if c.process != nil {
		// Ending the first process ends all of its PID namespace before it can be waited for.
		if err := c.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("killing the sandbox: %w", err)
		}
		<-c.exited
	}
	c.fading.close()
	closeAll(append(c.folders, c.seal))
	if c.group == nil {
		return nil
	}
	return c.group.remove()
}

// firstID is the first host id of the sandbox's range.
func (c *helperSandbox) firstID() int { return firstHostID + c.number*idsPerRange }

// own gives a pipe to the sandbox's user, which may open it again by name (/dev/stdout).
func (c *helperSandbox) own(f *os.File) error {
	return unix.Fchown(int(f.Fd()), c.firstID()+insideUID, -1)
}
