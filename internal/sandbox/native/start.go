package native

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox/guard"
)

// startDeadline bounds how long a sandbox may take until it executes its initializer.
const startDeadline = 20 * time.Second

// forkThread runs functions on a thread that never ends. The kernel sends the parent-death signal of the sandboxes when the thread that
// forked them ends, not when the process does.
func forkThread(work <-chan func()) {
	runtime.LockOSThread()
	for do := range work {
		do()
	}
}

// start makes the sandbox of a request and returns the files that the server shall have.
func (h *helper) start(c *helperSandbox, r startRequest, files []*os.File) (handed []*os.File, err error) {
	if len(files) == startFDs {
		handed, err = h.make(c, r, files)
	} else {
		err = fmt.Errorf("a start came with %d descriptors, not %d", len(files), startFDs)
	}
	if err != nil {
		return nil, errors.Join(err, h.remove(c))
	}
	return handed, nil
}

func (h *helper) make(c *helperSandbox, r startRequest, files []*os.File) ([]*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, errors.New("the sandbox was closed before it was made")
	}
	binds, err := h.openBinds(r.binds)
	if err != nil {
		return nil, err
	}
	defer closeAll(binds)
	if c.group, err = h.cgroups.create(c.id, r); err != nil {
		return nil, fmt.Errorf("making the sandbox's cgroups: %w", err)
	}
	defer c.group.joined()
	if h.root {
		if err := errors.Join(c.own(files[startStdout]), c.own(files[startStderr])); err != nil {
			return nil, fmt.Errorf("giving the output to the sandbox: %w", err)
		}
	}
	c.unshared = r.launcher
	if c.outputs, err = outputsOf(files[startStdout], files[startStderr]); err != nil {
		return nil, err
	}
	ours, theirs, err := linkPair()
	if err != nil {
		return nil, err
	}
	setup, err := newLink(ours)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	defer setup.conn.Close()
	err = h.fork(c, files, theirs, binds)
	theirs.Close()
	if err != nil {
		return nil, fmt.Errorf("making the sandbox's namespaces: %w", err)
	}
	handed, err := h.handOver(c, r, setup)
	if err != nil {
		return nil, err
	}
	looks, err := c.looks()
	if err != nil {
		closeAll(handed)
		return nil, err
	}
	return slices.Concat(handed, looks), nil
}

// looks opens the files that the server reads and sets by itself.
func (c *helperSandbox) looks() (files []*os.File, err error) {
	meters, err := c.group.openMeters()
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox's meters: %w", err)
	}
	weight, err := c.group.openWeight()
	if err != nil {
		closeAll(meters)
		return nil, err
	}
	files = append(meters, weight)
	sights, err := c.sights()
	if err != nil {
		closeAll(files)
		return nil, err
	}
	return append(files, sights...), nil
}

// fork starts the first stage in its namespaces.
func (h *helper) fork(c *helperSandbox, files []*os.File, setup *os.File, binds []*os.File) (err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	inherit := []*os.File{null, files[startStdout], files[startStderr], files[startControl], setup, files[startSpec]}
	inherit = append(append(inherit, c.group.tasks...), binds...)
	done := make(chan struct{})
	h.forks <- func() {
		defer close(done)
		c.process, err = h.startApart(c, &os.ProcAttr{
			Dir: "/", Files: inherit, Sys: h.attributes(c),
			Env: []string{"GOMAXPROCS=1", "GOGC=off"}, // of a Go program that lives for a few milliseconds
		})
	}
	<-done
	if err != nil {
		return err
	}
	go h.reap(c, c.process)
	return nil
}

// reap waits for the initializer's end and tells the server.
func (h *helper) reap(c *helperSandbox, p *os.Process) {
	awaitEnd(p.Pid)
	state, err := p.Wait()
	close(c.exited)
	sentence := "the initializer ended"
	if err == nil {
		sentence = "the initializer ended: " + state.String()
	}
	h.tell(kindExited, c.id, sentence)
}

// awaitEnd waits for the end of a child without a thread of its own for it, as Process.Wait would need; it may return
// early.
func awaitEnd(child int) {
	fd, err := unix.PidfdOpen(child, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "child")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

func (h *helper) attributes(c *helperSandbox) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
	}
	if c.group.dir != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(c.group.dir.Fd())
	}
	if h.root {
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: c.firstID(), Size: idsPerRange}}
		a.GidMappings = a.UidMappings
		a.GidMappingsEnableSetgroups = true
		a.Credential = &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: true}
		return a
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideUID, HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideUID, HostID: os.Getegid(), Size: 1}}
	a.AmbientCaps = setupCapabilities() // a user that is not root loses the others when it executes
	return a
}

// setupCapabilities are those that the first stage needs in its own user namespace.
func setupCapabilities() []uintptr {
	return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE}
}

// handOver sends the first stage its plan, takes its files and waits until it has become the initializer.
func (h *helper) handOver(c *helperSandbox, r startRequest, setup *link) ([]*os.File, error) {
	if err := setup.conn.SetDeadline(time.Now().Add(startDeadline)); err != nil {
		return nil, err
	}
	p := plan{root: h.root, tasks: len(c.group.tasks), bindFDs: h.root, tmpMiB: r.tmpMiB, codeMiB: r.codeMiB, binds: r.binds}
	if !h.cgroups.limits("pids") {
		p.processes = r.processes
	}
	if err := setup.send(p.encode()); err != nil {
		return nil, fmt.Errorf("telling the first stage what to do: %w", err)
	}
	buffer := make([]byte, 4096)
	b, files, err := setup.receive(buffer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("waiting for the first stage: %w", err)
	case len(files) == 0:
		return nil, errors.New(string(b))
	case len(files) != readyFDs:
		closeAll(files)
		return nil, fmt.Errorf("the first stage handed out %d descriptors, not %d", len(files), readyFDs)
	}
	c.folders, c.seal = files[readyTmp:readySeal], files[readySeal]
	if err := h.supervise(c, r.owner, files[readyListener]); err != nil {
		closeAll(files[:readyForServer])
		return nil, err
	}
	if b, _, err = setup.receive(buffer); err == nil { // the end of the socket is good news
		closeAll(files[:readyForServer])
		return nil, errors.New(string(b))
	}
	return files[:readyForServer], nil
}

// user is the user of the sandbox's processes, as numbered here.
func (h *helper) user(c *helperSandbox) int {
	if h.root {
		return c.firstID() + insideUID
	}
	return os.Geteuid()
}

func (h *helper) supervise(c *helperSandbox, owner string, listener *os.File) error {
	fd, err := unix.FcntlInt(listener.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	listener.Close()
	if err != nil {
		return err
	}
	refused := func(sentence string) { h.tellCounted(kindDenied, c.id, sentence) }
	reached := func() { h.tellCounted(kindReached, c.id, "") }
	c.guard, err = guard.NewSupervisor(fd, guard.Confined{Policy: h.settings.policy, Confines: &c.confines}, h.user(c), h.host, owner, &h.shared.gates[c.number], refused, reached)
	if err != nil {
		return err
	}
	c.guarded = make(chan struct{})
	go func() {
		defer close(c.guarded)
		c.guard.Run()
	}()
	return nil
}
