package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// configureDeadline bounds the helper's start.
const configureDeadline = 10 * time.Second

// Maker makes sandboxes through the helper.
type Maker struct {
	link     *link
	helper   *exec.Cmd
	policy   guard.Policy
	names    []string        // nameservers, as host:port
	ports    *sandbox.Shares // that datagrams and questions go out from
	enforced []sandbox.Enforcement
	meters   *meters       // of all sandboxes together; empty if this machine has none
	done     chan struct{} // closed when the helper has ended

	mu        sync.Mutex // guards what follows
	next      uint64
	waiting   map[uint64]chan reply
	sandboxes map[string]*serverSandbox
	closed    bool
	err       error // why the helper ended

	shared    *shared       // with the helper
	heard     atomic.Uint64 // of what that has told of; changes with mu held
	hearsMore sync.Cond     // of mu: heard has changed, or the helper has ended

	closing sync.WaitGroup // what sandboxes that are closed still have to close
}

type reply struct {
	report
	files []*os.File
}

// StartHelper starts the helper with the caller's present privileges, which the caller may then give up. It fails,
// with a sentence for the operator, if no sandbox can be made on this machine by this user.
func StartHelper(c Config) (*Maker, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	names, err := nameservers(c.ResolvConf)
	if err != nil {
		return nil, err
	}
	memory, page, err := newShared()
	if err != nil {
		return nil, err
	}
	defer page.Close()
	ours, theirs, err := linkPair()
	if err != nil {
		return nil, err
	}
	l, err := newLink(ours)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	cmd := exec.Command(c.Executable, c.HelperArgs...)
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{theirs}
	cmd.Dir, cmd.Env = "/", []string{"GOMAXPROCS=2"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the server, which ends the helper last
	err = startBounded(cmd)
	theirs.Close()
	if err != nil {
		l.conn.Close()
		return nil, forerun.Errorf(forerun.Internal, "sandbox helper", "The sandbox helper could not be started: %w", err)
	}
	m := &Maker{
		link: l, helper: cmd, policy: c.Policy, names: names, ports: sandbox.NewShares(min(portsAtMost, sandbox.Descriptors()/8)), done: make(chan struct{}),
		waiting: map[uint64]chan reply{}, sandboxes: map[string]*serverSandbox{}, shared: memory,
	}
	m.hearsMore.L = &m.mu
	if err := m.configure(c, page); err != nil {
		m.meters.close()
		l.conn.Close()
		_ = cmd.Wait()
		return nil, forerun.Errorf(forerun.Unavailable, "sandbox helper", "No sandbox can be made: %w", err)
	}
	go m.receive()
	return m, nil
}

func (m *Maker) configure(c Config, memory *os.File) error {
	if err := m.link.conn.SetReadDeadline(time.Now().Add(configureDeadline)); err != nil {
		return err
	}
	s := settings{
		dataDir: c.DataDir, bindRoots: c.BindRoots, policy: c.Policy, memoryMiB: c.MemoryMiB, cpuWeight: c.CPUWeight,
		executable: c.Executable, initArgs: c.InitArgs,
	}
	if err := m.link.send(s.encode(), memory); err != nil {
		return err
	}
	b, files, err := m.link.receive(make([]byte, maxFrame))
	if err != nil {
		return fmt.Errorf("waiting for the helper: %w", err)
	}
	m.meters = newMeters(files)
	r, err := decodeReport(b)
	switch {
	case err != nil:
		return err
	case r.problem != "":
		return errors.New(r.problem)
	case len(files) != meterFiles:
		return fmt.Errorf("the helper came with %d descriptors, not %d", len(files), meterFiles)
	}
	m.enforced = r.enforced
	return m.link.conn.SetReadDeadline(time.Time{})
}

// Enforced implements sandbox.Maker.
func (m *Maker) Enforced() []sandbox.Enforcement { return slices.Clone(m.enforced) }

// Spent implements sandbox.Maker.
func (m *Maker) Spent() (d time.Duration, known bool) {
	var helper unix.Timespec
	sandboxes, err := m.meters.spent()
	if err != nil || sandboxes == 0 || unix.ClockGettime(cpuClock(m.helper.Process.Pid), &helper) != nil {
		return 0, false
	}
	return sandboxes + time.Duration(helper.Nano()), true
}

// cpuClock is the clock of what all threads of a process have taken of the processors (clock_getcpuclockid(3)).
func cpuClock(pid int) int32 {
	const ofProcess = 2 // CPUCLOCK_SCHED
	return int32(^pid<<3 | ofProcess)
}

// Done is closed when the helper has ended; Err then says why, nil after Close. Without it no sandbox can be made or
// reset, and those that there were have ended with it.
func (m *Maker) Done() <-chan struct{} { return m.done }

// Err is why the helper ended.
func (m *Maker) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// receive takes the helper's frames until it ends.
func (m *Maker) receive() {
	buffer := make([]byte, maxFrame)
	for {
		b, files, err := m.link.receive(buffer)
		if err == nil {
			var r report
			if r, err = decodeReport(b); err == nil {
				m.dispatch(reply{r, files})
				continue
			}
			closeAll(files)
		}
		m.end(err)
		return
	}
}

func (m *Maker) dispatch(r reply) {
	m.mu.Lock()
	waiting := m.waiting[r.number]
	found := m.sandboxes[r.id]
	if r.kind == kindReply {
		delete(m.waiting, r.number)
	}
	m.mu.Unlock()
	switch {
	case r.kind == kindReply && waiting != nil:
		waiting <- r // has room for one
	case r.kind == kindExited && found != nil:
		found.ended()
	case r.kind == kindDenied && found != nil:
		found.refusals.add(r.problem)
	case r.kind == kindReached && found != nil:
		found.reached.Store(true)
	default:
		closeAll(r.files) // of a start whose caller has gone
	}
	if r.kind == kindDenied || r.kind == kindReached {
		m.mu.Lock()
		m.heard.Add(1)
		m.mu.Unlock()
		m.hearsMore.Broadcast()
	}
}

// end is the end of the helper, asked for or not.
func (m *Maker) end(cause error) {
	_ = m.link.conn.Close()
	waitErr := m.helper.Wait()
	m.mu.Lock()
	if !m.closed {
		if errors.Is(cause, io.EOF) {
			cause = waitErr
		}
		m.err = forerun.Errorf(forerun.Internal, "sandbox helper", "The sandbox helper ended, and every sandbox with it: %w", cause)
	}
	sandboxes := make([]*serverSandbox, 0, len(m.sandboxes))
	for _, b := range m.sandboxes {
		sandboxes = append(sandboxes, b)
	}
	close(m.done)
	m.hearsMore.Broadcast()
	m.mu.Unlock()
	for _, b := range sandboxes {
		b.ended()
	}
}

// ask sends a request and waits for its reply.
func (m *Maker) ask(ctx context.Context, r request, files ...*os.File) (reply, error) {
	answer := make(chan reply, 1)
	m.mu.Lock()
	m.next++
	r.number = m.next
	m.waiting[r.number] = answer
	m.mu.Unlock()
	err := m.link.send(r.encode(), files...)
	if err == nil {
		select {
		case got := <-answer:
			if got.problem != "" {
				closeAll(got.files)
				return reply{}, forerun.Errorf(forerun.Internal, "sandbox "+r.id, "%w", errors.New(got.problem))
			}
			return got, nil
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-m.done:
			err = errors.Join(m.Err(), os.ErrClosed)
		}
	}
	m.abandon(r.number, answer)
	return reply{}, forerun.Errorf(forerun.Unavailable, "sandbox "+r.id, "The sandbox helper did not answer: %w", err)
}

// abandon forgets a request; a reply that came meanwhile is taken apart.
func (m *Maker) abandon(number uint64, answer chan reply) {
	m.mu.Lock()
	delete(m.waiting, number)
	m.mu.Unlock()
	select {
	case late := <-answer:
		closeAll(late.files)
	default:
	}
}

// Close implements sandbox.Maker.
func (m *Maker) Close() error {
	m.mu.Lock()
	m.closed = true
	sandboxes := make([]*serverSandbox, 0, len(m.sandboxes))
	for _, b := range m.sandboxes {
		sandboxes = append(sandboxes, b)
	}
	m.mu.Unlock()
	// The helper ends everything when the socket ends, faster than one by one.
	_ = m.link.conn.CloseWrite()
	<-m.done
	for _, b := range sandboxes {
		b.release()
	}
	m.closing.Wait()
	m.meters.close()
	return m.Err()
}
