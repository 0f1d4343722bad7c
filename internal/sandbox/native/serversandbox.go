package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// serverSandbox is the server's part of a sandbox.
type serverSandbox struct {
	maker          *Maker
	id             string
	control        *net.UnixConn
	stdout, stderr *os.File
	doors          map[string]net.Listener
	names          *nameRelay
	datagrams      *datagramRelay
	refusals       *refusals
	glance         *glance
	meters         *meters
	hosts          readHosts
	confines       egress.Confines
	telling        sync.Mutex // held while the helper is told of addresses
	outlet         outlet
	reached        atomic.Bool // something has waited at the helper's gate since the last Hold

	done      chan struct{}
	endOnce   sync.Once
	freeOnce  sync.Once
	closeOnce sync.Once
	closeErr  error // of Close
}

var validID = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// Start implements sandbox.Maker.
func (m *Maker) Start(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	if !validID.MatchString(s.ID) || s.MemoryMiB <= 0 || !validWeight(s.CPUWeight) || s.Processes <= 0 || s.TmpMiB < 0 || s.CodeMiB < 0 {
		return nil, forerun.Errorf(forerun.Invalid, "sandbox "+s.ID, "The specification has a bad id or a limit that cannot be: %d MiB of memory, a CPU weight of %d, %d processes, %d MiB for /tmp, %d for /action.",
			s.MemoryMiB, s.CPUWeight, s.Processes, s.TmpMiB, s.CodeMiB)
	}
	b := &serverSandbox{maker: m, id: s.ID, refusals: newRefusals(), done: make(chan struct{})}
	passed, err := b.open(s)
	if err != nil {
		b.release()
		return nil, err
	}
	m.mu.Lock()
	if m.sandboxes[s.ID] != nil || m.closed {
		m.mu.Unlock()
		closeAll(passed)
		b.release()
		return nil, forerun.Errorf(forerun.Exists, "sandbox "+s.ID, "There is a sandbox of this name already, or the maker is closing.")
	}
	m.sandboxes[s.ID] = b // before the start: its end may be told before the reply is read
	m.mu.Unlock()
	r := request{kind: kindStart, id: s.ID, start: startRequest{s.Owner, s.MemoryMiB, cmp.Or(s.CPUWeight, sandbox.DefaultCPUWeight), s.Processes, s.TmpMiB, s.CodeMiB, s.Launcher, s.Binds}}
	answer, err := m.ask(ctx, r, passed...)
	closeAll(passed)
	if err == nil {
		b.outlet.gate, b.outlet.usual = &m.shared.gates[answer.place], r.start.cpuWeight
		b.outlet.weight.shares, b.outlet.unshared = answer.shares, s.Launcher
		err = b.serve(s.Owner, answer.files)
	}
	if err != nil {
		_ = b.Close() // also when only the answer did not arrive
		return nil, err
	}
	return b, nil
}

// validWeight reports whether every kernel takes a weight; 0 leaves it.
func validWeight(w int) bool { return w >= 0 && w <= 10_000 }

// open makes the server's ends of control and output, and returns the sandbox's in the order of startFDs.
func (b *serverSandbox) open(s sandbox.Spec) (passed []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(passed)
		}
	}()
	spec, err := memoryFile(program{s.Argv, s.Env, s.Files}.encode())
	if err != nil {
		return nil, err
	}
	passed = append(passed, spec)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return passed, os.NewSyscallError("socketpair", err)
	}
	passed = append(passed, os.NewFile(uintptr(fds[1]), "control"))
	ours, err := newLink(os.NewFile(uintptr(fds[0]), "control"))
	if err != nil {
		return passed, err
	}
	b.control = ours.conn
	for _, end := range []**os.File{&b.stdout, &b.stderr} {
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
			return passed, os.NewSyscallError("pipe2", err)
		}
		passed = append(passed, os.NewFile(uintptr(pipe[1]), "output")) // blocking: a handler waits when it is full
		if err := unix.SetNonblock(pipe[0], true); err != nil {
			return passed, err
		}
		*end = os.NewFile(uintptr(pipe[0]), "output")
	}
	return passed, nil
}

// memoryFile holds b, for a process that is given its descriptor.
func memoryFile(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "program")
	if _, err := f.WriteAt(b, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// serve takes the sockets from the first stage, and the files that the helper added.
func (b *serverSandbox) serve(owner string, files []*os.File) error {
	const weight = readyForServer + meterFiles
	if len(files) <= weight {
		closeAll(files)
		return fmt.Errorf("the helper handed out %d descriptors, not %d", len(files), weight+1)
	}
	b.meters, b.outlet.weight.file, b.glance = newMeters(files[readyForServer:weight]), files[weight], newGlance(files[weight+1:])
	files = files[:readyForServer]
	defer closeAll(files)
	doors := map[string]net.Listener{}
	b.doors = doors
	for name, i := range map[string]int{sandbox.DoorState: readyState, sandbox.DoorAPI: readyAPI} {
		l, err := net.FileListener(files[i])
		if err != nil {
			return fmt.Errorf("opening the door %s: %w", name, err)
		}
		doors[name] = l
	}
	var err error
	if b.names, err = newNameRelay(files[readyNamesUDP], files[readyNamesTCP], b.maker.names, owner, relayParts{
		hosts: &b.hosts, confines: &b.confines, ports: b.maker.ports, refused: b.refusals.add, learned: b.learned,
	}); err != nil {
		return err
	}
	b.datagrams, err = newDatagramRelay(files[readyPackets], guard.Confined{Policy: b.maker.policy, Confines: &b.confines}, &b.hosts, b.maker.ports, owner, b.refusals.add)
	return err
}

func (b *serverSandbox) Control() *net.UnixConn            { return b.control }
func (b *serverSandbox) Output() (stdout, stderr *os.File) { return b.stdout, b.stderr }
func (b *serverSandbox) Door(name string) net.Listener     { return b.doors[name] }
func (b *serverSandbox) Denied() <-chan struct{}           { return b.refusals.some }
func (b *serverSandbox) Flooded() <-chan struct{}          { return b.datagrams.floods }
func (b *serverSandbox) Done() <-chan struct{}             { return b.done }
func (b *serverSandbox) ended()                            { b.endOnce.Do(func() { close(b.done) }) }

// Refused implements sandbox.Sandbox.
func (b *serverSandbox) Refused() []string {
	b.maker.awaitTold()
	return b.refusals.take()
}

// Reset implements sandbox.Sandbox.
func (b *serverSandbox) Reset(ctx context.Context, keep ...int) (killed int, err error) {
	if !b.glance.nothing(keep) {
		if err := b.outlet.hurry(); err != nil {
			return 0, b.ill(err)
		}
		var answer reply
		answer, err = b.maker.ask(ctx, request{kind: kindReset, id: b.id, pids: keep})
		killed = answer.killed
	}
	b.names.reset()
	b.datagrams.reset()
	return killed, err
}

// Strike implements sandbox.Sandbox.
func (b *serverSandbox) Strike(ctx context.Context, keep ...int) error {
	if err := b.outlet.hurry(); err != nil {
		return b.ill(err)
	}
	_, err := b.maker.ask(ctx, request{kind: kindStrike, id: b.id, pids: keep})
	b.names.reset()
	b.datagrams.reset()
	return err
}

// Limit implements sandbox.Sandbox.
func (b *serverSandbox) Limit(ctx context.Context, l sandbox.Limits) error {
	if l.MemoryMiB < 0 || !validWeight(l.CPUWeight) {
		return forerun.Errorf(forerun.Invalid, "sandbox "+b.id, "A limit is out of its range: %d MiB of memory, a CPU weight of %d.", l.MemoryMiB, l.CPUWeight)
	}
	if l.CPUWeight != 0 {
		if err := b.outlet.weigh(l.CPUWeight); err != nil {
			return b.ill(err)
		}
	}
	if l.MemoryMiB == 0 && l.Owner == "" {
		return nil
	}
	if l.Owner != "" {
		b.names.own(l.Owner)
		b.datagrams.own(l.Owner)
	}
	_, err := b.maker.ask(ctx, request{kind: kindLimit, id: b.id, owner: l.Owner, memory: l.MemoryMiB})
	return err
}

// Hold implements sandbox.Sandbox.
func (b *serverSandbox) Hold(ctx context.Context, hosts []string) (sandbox.Held, error) {
	b.maker.awaitTold() // of connections that are gone
	b.reached.Store(false)
	b.names.gate.forget()
	permit := b.hosts.name(hosts)
	b.names.gate.shut()
	b.datagrams.hold()
	surely, err := b.outlet.shut()
	switch {
	case err != nil:
		return sandbox.Held{}, b.ill(err)
	case surely && len(permit) == 0:
		return sandbox.Held{}, nil
	}
	answer, err := b.maker.ask(ctx, request{kind: kindHold, id: b.id, permit: permit})
	if answer.unshared {
		b.outlet.noteUnshared()
	}
	return answer.held, err
}

// Release implements sandbox.Sandbox.
func (b *serverSandbox) Release(ctx context.Context) (waited time.Duration, err error) {
	waited = b.names.gate.lift()
	b.datagrams.release()
	waiting, err := b.outlet.lift()
	if err != nil {
		return waited, b.ill(err)
	}
	if !waiting {
		return waited, nil
	}
	answer, err := b.maker.ask(ctx, request{kind: kindRelease, id: b.id})
	return max(waited, answer.waited), err
}

// ill is what keeps the server from having a hand on the sandbox.
func (b *serverSandbox) ill(err error) error {
	return forerun.Errorf(forerun.Internal, "sandbox "+b.id, "%w", err)
}

// Waiting is how many calls, questions for names and datagrams of processes inside wait since a Hold. Tests ask for it, which squash
// what waits.
func (b *serverSandbox) Waiting(ctx context.Context) (int, error) {
	answer, err := b.maker.ask(ctx, request{kind: kindWaiting, id: b.id})
	return answer.waiting + b.names.gate.waiting() + b.datagrams.waiting(), err
}

// Reached implements sandbox.Sandbox.
func (b *serverSandbox) Reached() bool {
	b.maker.awaitTold()
	return b.reached.Load() || b.names.gate.reached() || b.datagrams.flooded()
}

// TakeHeld implements sandbox.Sandbox.
func (b *serverSandbox) TakeHeld() (send func()) { return b.datagrams.takeHeld() }

// Seal implements sandbox.Sandbox.
func (b *serverSandbox) Seal(ctx context.Context) (sealed bool, err error) {
	answer, err := b.maker.ask(ctx, request{kind: kindSeal, id: b.id})
	return answer.sealed, err
}

// Reachable implements sandbox.Sandbox.
func (b *serverSandbox) Reachable(ctx context.Context, pids ...int) (bool, error) {
	answer, err := b.maker.ask(ctx, request{kind: kindReachable, id: b.id, pids: pids})
	return answer.hears, err
}

// Confine implements sandbox.Sandbox.
func (b *serverSandbox) Confine(ctx context.Context, lists egress.Lists) error {
	b.telling.Lock()
	defer b.telling.Unlock()
	b.confines.Set(lists)
	b.datagrams.allowMore()
	_, err := b.maker.ask(ctx, request{kind: kindConfine, id: b.id, lists: lists.Networks()})
	return err
}

// learned takes note of a nameserver's answer before it is passed on. The addresses of hosts that are only read from pass, and those of
// hosts in the sandbox's lists are reachable.
func (b *serverSandbox) learned(ctx context.Context, answer []byte) {
	b.telling.Lock() // a caller that gets an address learned by another finds it told
	defer b.telling.Unlock()
	if permit := b.hosts.learn(answer); len(permit) > 0 {
		_, _ = b.maker.ask(ctx, request{kind: kindPermit, id: b.id, permit: permit}) // else the connection waits
	}
	if !b.confines.Bounds() {
		return
	}
	if pins := b.confines.Learn(answered(answer)); len(pins) > 0 {
		b.datagrams.allowMore()
		_, _ = b.maker.ask(ctx, request{kind: kindPin, id: b.id, permit: pins}) // else the connection is refused
	}
}

// Memory implements sandbox.Sandbox.
func (b *serverSandbox) Memory() (bytes int64, err error) { return b.meters.number(meterMemory, "") }

// OOMKills implements sandbox.Sandbox.
func (b *serverSandbox) OOMKills() (int, error) {
	kills, err := b.meters.number(meterKills, "oom_kill ")
	return int(kills), err
}

// Spent implements sandbox.Sandbox.
func (b *serverSandbox) Spent() (time.Duration, error) { return b.meters.spent() }

// Close implements sandbox.Sandbox. A second caller waits for the same end.
func (b *serverSandbox) Close() error {
	b.closeOnce.Do(func() { b.closeErr = b.remove() })
	return b.closeErr
}

func (b *serverSandbox) remove() error {
	m := b.maker
	m.mu.Lock()
	mine := m.sandboxes[b.id] == b
	m.mu.Unlock()
	if !mine {
		return nil
	}
	b.outlet.close()
	_, err := m.ask(context.Background(), request{kind: kindClose, id: b.id})
	if errors.Is(err, net.ErrClosed) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		<-m.done // the link is lost before the helper's end is known
	}
	if m.hasEnded() {
		err = nil // it ended with the helper
	}
	m.mu.Lock()
	delete(m.sandboxes, b.id)
	m.mu.Unlock()
	b.release()
	return err
}

// release closes the server's files of the sandbox.
func (b *serverSandbox) release() {
	b.freeOnce.Do(func() {
		b.ended()
		if b.control != nil {
			_ = b.control.Close()
		}
		closeAll([]*os.File{b.stdout, b.stderr})
		for _, d := range b.doors {
			_ = d.Close()
		}
		b.glance.close()
		b.meters.close()
		b.outlet.close()
		b.names.close()
		b.maker.closing.Go(b.datagrams.close)
	})
}
