package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/linger"
	"forerun.dev/forerun/internal/proc"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// HelperMain is the helper. It serves the server at the other end of the inherited socket fd until that end closes. Then it removes
// everything it made. The result is the process's exit code.
func HelperMain(fd int) int {
	_ = proc.RelaxMonitor() // where it may not it takes more of the processors
	debug.SetGCPercent(25)  // it allocates little: small is better than fast
	// The helper ends when the server does. It does not end when a signal tells both to, nor when the reader of its messages is gone. The
	// signals are caught, not ignored: sandboxes would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGPIPE)
	l, err := newLink(os.NewFile(uintptr(fd), "server"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-helper is started by forerun serve, not by hand:", err)
		return 2
	}
	h, err := newHelper(l)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-helper:", err)
		return 1
	}
	err = h.serve()
	h.closeAll()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox-helper:", err)
		return 1
	}
	return 0
}

// helper makes sandboxes for one server.
type helper struct {
	link     *link
	shared   *shared // with the server
	settings settings
	host     *guard.Host
	root     bool                // ids and mounts of the host are ours to give
	roots    map[string]*os.File // of what sandboxes may see, opened
	cgroups  *cgroups
	ids      idLocks            // of the ranges in use, for other servers
	aside    *linger.Goroutines // that serve requests
	forks    chan func()        // run one after the other by the one thread whose children the sandboxes are

	mu        sync.Mutex                // guards what follows; nothing is waited for under it
	sandboxes map[string]*helperSandbox // by the sandbox's id
	ranges    map[int]bool              // of user ids that are in use
	ending    bool
	work      sync.WaitGroup // requests being served
}

func newHelper(l *link) (*helper, error) {
	buffer := make([]byte, maxFrame)
	b, files, err := l.receive(buffer)
	if err != nil {
		return nil, fmt.Errorf("receiving the settings: %w", err)
	}
	defer closeAll(files)
	if len(files) != 1 {
		return nil, fmt.Errorf("the settings came with %d descriptors, not one", len(files))
	}
	memory, err := mapShared(files[0])
	if err != nil {
		return nil, err
	}
	s, err := decodeSettings(b)
	if err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	h := &helper{
		link: l, shared: memory, settings: s, host: guard.NewHost(), root: os.Geteuid() == 0,
		forks: make(chan func()), aside: linger.New(nil), sandboxes: map[string]*helperSandbox{}, ranges: map[int]bool{},
	}
	raiseFileLimit()
	noCores()
	if h.root {
		if err := guard.ConfineHelper(); err != nil {
			return nil, err
		}
	}
	go forkThread(h.forks)
	answer := report{kind: kindReply}
	if answer.enforced, err = h.prepare(); err != nil {
		answer.problem = err.Error()
	}
	meters, err := h.cgroups.openMeters()
	if err != nil {
		answer.problem = cmp.Or(answer.problem, err.Error())
	}
	defer closeAll(meters)
	if err := l.send(answer.encode(), meters...); err != nil {
		return nil, fmt.Errorf("answering the settings: %w", err)
	}
	if answer.problem != "" {
		return nil, errors.New(answer.problem)
	}
	return h, nil
}

// prepare finds what can be enforced here; an error says why no sandbox can be made.
func (h *helper) prepare() (enforced []sandbox.Enforcement, err error) {
	if h.roots, err = openBindRoots(h.settings.bindRoots); err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	var reasons map[string]string
	h.cgroups, reasons = openCgroups(h.settings)
	if h.root {
		if h.ids, err = openIDLocks(idsFolder); err != nil {
			reasons[idsReason] = "another server of this machine may give sandboxes the same ids: " + err.Error()
		}
	}
	return h.enforced(reasons), nil
}

// idsReason is the key of the reason why user ids may be another server's, too.
const idsReason = "ids"

func raiseFileLimit() {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) // with less there are fewer sandboxes
	}
}

// noCores keeps the kernel from dumping the core of this process, and of any that it starts. A limit of 0 would do that for files only. A
// limit of one byte also keeps away a host's program for dumps, which mostly runs as root and writes into the host's log.
func noCores() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}) // an ordinary user may have none to give
}

// serve answers requests, none of which waits for another, until the server has gone.
func (h *helper) serve() error {
	buffer := make([]byte, maxFrame)
	for {
		b, files, err := h.link.receive(buffer)
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receiving a request: %w", err)
		}
		r, err := decodeRequest(b)
		if err != nil {
			closeAll(files)
			return fmt.Errorf("reading a request: %w", err)
		}
		var c *helperSandbox
		if r.kind == kindStart { // here, so that a later request about it finds it
			c, err = h.reserve(r.id)
		}
		h.work.Add(1)
		h.aside.Go(func() {
			defer h.work.Done()
			h.answer(r, files, c, err)
		})
	}
}

// answer serves one request. c is the sandbox that a start shall make; err is why there can be none.
func (h *helper) answer(r request, files []*os.File, c *helperSandbox, err error) {
	defer closeAll(files)
	answer := report{kind: kindReply, number: r.number, id: r.id}
	var handed []*os.File
	switch r.kind {
	case kindStart:
		if err == nil {
			answer.place, answer.shares = c.number, h.cgroups.scaled()
			handed, err = h.start(c, r.start, files)
		}
	case kindReset:
		err = h.with(r.id, func(c *helperSandbox) (err error) { answer.killed, err = c.reset(r.pids, false); return err })
	case kindStrike:
		err = h.with(r.id, func(c *helperSandbox) error { _, err := c.reset(r.pids, true); return err })
	case kindLimit:
		err = h.with(r.id, func(c *helperSandbox) error { return c.limit(r.owner, r.memory) })
	case kindHold:
		err = h.with(r.id, func(c *helperSandbox) (err error) { answer.held, answer.unshared, err = c.hold(r.permit); return err })
	case kindRelease:
		err = h.with(r.id, func(c *helperSandbox) (err error) { answer.waited, err = c.release(); return err })
	case kindWaiting:
		err = h.with(r.id, func(c *helperSandbox) (err error) { answer.waiting, err = c.waiting(); return err })
	case kindPermit:
		err = h.with(r.id, func(c *helperSandbox) error { c.guard.Permit(r.permit); return nil })
	case kindConfine:
		err = h.with(r.id, func(c *helperSandbox) error { c.confines.Set(r.lists); return nil })
	case kindPin:
		err = h.with(r.id, func(c *helperSandbox) error { c.confines.Pin(r.permit); return nil })
	case kindSeal:
		err = h.with(r.id, func(c *helperSandbox) (err error) { answer.sealed, err = c.setSeal(); return err })
	case kindReachable:
		err = h.with(r.id, func(c *helperSandbox) (err error) { answer.hears, err = c.reachable(r.pids); return err })
	case kindClose:
		err = h.with(r.id, func(c *helperSandbox) error { return h.remove(c) })
	default:
		err = fmt.Errorf("there is no request of kind %d", r.kind)
	}
	if err != nil {
		answer.problem = err.Error()
	}
	_ = h.link.send(answer.encode(), handed...) // fails if the server has gone: serve sees it too
	closeAll(handed)
}

func (h *helper) with(id string, do func(*helperSandbox) error) error {
	h.mu.Lock()
	c := h.sandboxes[id]
	h.mu.Unlock()
	if c == nil {
		return fmt.Errorf("there is no sandbox %q", id)
	}
	return do(c)
}

// tell sends something that the server did not ask for.
func (h *helper) tell(kind int, id, sentence string) {
	_ = h.link.send(report{kind: kind, id: id, problem: sentence}.encode()) // fails if the server has gone
}

// tellCounted tells of a connection that was refused, or waits. The counter is raised first, so a reader of the message finds it counted.
func (h *helper) tellCounted(kind int, id, sentence string) {
	h.shared.told.Add(1)
	h.tell(kind, id, sentence)
}

// reserve takes the id and a range of user ids for a new sandbox.
func (h *helper) reserve(id string) (*helperSandbox, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending {
		return nil, errors.New("the server is ending")
	}
	if !validID.MatchString(id) { // it becomes a path
		return nil, fmt.Errorf("%q is not an id of a sandbox", id)
	}
	if _, ok := h.sandboxes[id]; ok {
		return nil, fmt.Errorf("there is a sandbox %q already", id)
	}
	for n := range rangesAtMost {
		if !h.ranges[n] && h.ids.take(n) {
			c := &helperSandbox{id: id, number: n, exited: make(chan struct{}), fading: make(fading)}
			h.ranges[n], h.sandboxes[id] = true, c
			h.shared.gates[n].Clear()
			return c, nil
		}
	}
	return nil, errors.New("all ranges of user ids are in use")
}

// remove ends a sandbox and forgets it. Calling it twice is harmless.
func (h *helper) remove(c *helperSandbox) error {
	err := c.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sandboxes[c.id] == c {
		delete(h.sandboxes, c.id)
		h.aside.Go(func() { h.free(c) })
	}
	return err
}

// free lets another sandbox have the number once nothing of this one is left, its guard included: that changes the switch of its gate.
func (h *helper) free(c *helperSandbox) {
	if c.guarded != nil {
		<-c.guarded
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ranges, c.number)
	h.ids.free(c.number)
}

// closeAll ends every sandbox and removes the cgroups.
func (h *helper) closeAll() {
	h.mu.Lock()
	h.ending = true
	all := make([]*helperSandbox, 0, len(h.sandboxes))
	for _, c := range h.sandboxes {
		all = append(all, c)
	}
	h.mu.Unlock()
	var ended sync.WaitGroup
	for _, c := range all {
		ended.Go(func() { _ = h.remove(c) })
	}
	ended.Wait()
	h.work.Wait()
	h.cgroups.close()
}

// resetContext bounds a reset by resetDeadline.
func resetContext() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), resetDeadline, fmt.Errorf("waited %v", resetDeadline))
}
