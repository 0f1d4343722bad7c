package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/proc"
	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
)

// handlerConn is a connection with a handler: frames, or lines that look like them.
type handlerConn interface {
	Run(header runtimewire.Run, input []byte) error
	Read() (runtimewire.Frame, error)
	Unread(err error) bool // of what Read failed with: the process has ended without having read all of the Run
	SetReadDeadline(t time.Time) error
	Close() error
}

// spare is a handler: made before its activation, then executing it. In some languages one handler executes many
// activations, one after the other.
type spare struct {
	conn      handlerConn
	asked     sandbox.Asked // of the outside, before it was made
	pid       int           // in the sandbox's namespace
	hostPID   int           // in ours; known when ready is closed
	stopped   bool          // until it is let go on
	threads   bool          // run in the initializer, and could carry something from one activation to the next
	ready     chan struct{}
	failed    error         // why it will never be of use; known when ready is closed
	exited    chan struct{} // closed by listen, when the initializer said so
	exit      runtimewire.Exit
	killed    atomic.Bool                 // or it is being killed, with everything else
	replaced  bool                        // another handler is made for the same activation; guarded by pooledSandbox.reseting
	conns     *tenure                     // the owner of connections made while its code was loaded beside another process; nil: none; of pooledSandbox.live
	served    bool                        // it has served an activation; of pooledSandbox.live
	fresh     bool                        // it was made for the next activation, and has not waited in an idle sandbox; of pooledSandbox.live
	lines     bool                        // a program that reads lines
	runs      int                         // that it has served, of a forked one that is kept; of pooledSandbox.live
	born      int64                       // bytes of memory that it had before the first; of pooledSandbox.live
	memory    atomic.Pointer[proc.Memory] // of a forked one that is kept, from then on until it is closed
	unreached bool                        // others cannot connect to it, as was seen since it served; of pooledSandbox.live
	stays     bool                        // it answered, and serves the next activation after its next Ready; of pooledSandbox.live
}

// hear waits for the handler's first frame, with which it shows its process id.
func (s *spare) hear() {
	defer close(s.ready)
	f, err := s.conn.Read()
	switch {
	case err != nil:
		s.failed = err
	case f.Type != runtimewire.TypeReady || f.PID <= 0:
		s.failed = errors.New("the first frame of a handler was not Ready, or came without its process id")
	}
	s.hostPID = f.PID
}

// isReady reports whether the spare waits for a run.
func (s *spare) isReady() bool {
	return s.isDecided() && s.failed == nil
}

// isDecided reports whether it is known if the spare will be of use.
func (s *spare) isDecided() bool { return isClosed(s.ready) }

func (s *spare) hasExited() bool { return isClosed(s.exited) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// readyLimit is how long a handler that answered may take until it can serve the next activation.
const readyLimit = time.Second

// readyAgain waits until a handler that answered says Ready, and reports whether it did. When the time is over it looks once more: it may
// have passed before anybody looked.
func (s *spare) readyAgain() bool {
	f, err := s.readWithin(readyLimit)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		f, err = s.readWithin(readyLimit / 20)
	}
	return err == nil && f.Type == runtimewire.TypeReady && s.conn.SetReadDeadline(time.Time{}) == nil
}

func (s *spare) readWithin(limit time.Duration) (f runtimewire.Frame, err error) {
	if err = s.conn.SetReadDeadline(time.Now().Add(limit)); err == nil {
		f, err = s.conn.Read()
	}
	return f, err
}

// listen hears the initializer until it is gone.
func (b *pooledSandbox) listen() {
	defer close(b.dead)
	for {
		f, err := b.control.Read()
		if err == nil {
			err = b.heard(&f)
		}
		for _, file := range f.Files {
			_ = file.Close() // those of a refused frame; the others are closed, or copied
		}
		if err != nil {
			_ = b.control.Close()
			return
		}
	}
}

// heard handles one frame of the initializer. An unexpected frame is an error, and ends the sandbox. So no sender waits
// for room in the channels.
func (b *pooledSandbox) heard(f *runtimewire.Frame) error {
	switch f.Type {
	case runtimewire.TypeHello:
		return offer(f, b.hello)
	case runtimewire.TypeInitDone:
		return offer(f, b.initDone)
	case runtimewire.TypeHandler:
		return b.heardHandler(f)
	case runtimewire.TypeExit:
		return b.heardExit(f)
	case runtimewire.TypePaused:
		return offer(f, b.paused)
	default:
		return fmt.Errorf("a frame of type %d is not the initializer's to send", f.Type)
	}
}

func offer[T any](f *runtimewire.Frame, to chan T) error {
	var message T
	if err := f.Decode(&message); err != nil {
		return err
	}
	select {
	case to <- message:
		return nil
	default:
		return fmt.Errorf("a frame of type %d was not asked for", f.Type)
	}
}

func (b *pooledSandbox) heardHandler(f *runtimewire.Frame) error {
	var h runtimewire.Handler
	if err := f.Decode(&h); err != nil {
		return err
	}
	s := &spare{pid: h.PID, stopped: h.Stopped, threads: h.Threads, lines: h.Lines, ready: make(chan struct{}), exited: make(chan struct{})}
	if asked := b.asked.Swap(nil); asked != nil { // else it was not asked for
		s.asked = *asked
	}
	if len(f.Files) == 0 {
		if s.failed = fmt.Errorf("no handler could be forked: %s", h.Error); h.Code {
			s.failed = codeError{result: forerun.Failure(forerun.DeveloperError, h.Error)}
		}
		close(s.ready)
	} else {
		var err error
		if s.conn, err = b.connectHandler(&h, f.Files); err != nil {
			return err
		}
		b.handlers[h.PID] = s
	}
	b.upcoming.Store(s)
	b.living.Go(func() {
		if s.conn != nil {
			s.hear()
		}
		b.sayDecided()
	})
	select {
	case b.spares <- s:
		return nil
	default:
		s.close()
		return errors.New("a handler was not asked for")
	}
}

// connectHandler makes a connection over the descriptors of a handler.
func (b *pooledSandbox) connectHandler(h *runtimewire.Handler, files []*os.File) (handlerConn, error) {
	switch {
	case h.Lines && len(files) == 2:
		return runtimewire.NewLines(files[0], files[1], b.pool().environment())
	case !h.Lines && len(files) == 1:
		return runtimewire.FileConn(files[0], runtimewire.Limits{Header: 64 << 10, Payload: b.w.config.Bounds.Payload})
	default:
		return nil, fmt.Errorf("a handler came with %d descriptors", len(files))
	}
}

// heardExit notes how a handler ended. If it was executing and a process that it left holds its socket, killing that
// ends the activation.
func (b *pooledSandbox) heardExit(f *runtimewire.Frame) error {
	var e runtimewire.Exit
	if err := f.Decode(&e); err != nil {
		return err
	}
	s := b.handlers[e.PID]
	if s == nil {
		return nil
	}
	delete(b.handlers, e.PID)
	s.exit = e
	close(s.exited)
	if t := b.doors.tenure(); t.handler.Load() == s {
		b.living.Add(1)
		time.AfterFunc(leftoverGrace, func() {
			defer b.living.Done()
			b.kill(t, s)
		})
	}
	return nil
}

// leftoverGrace is how long a handler's last bytes may take after its end.
const leftoverGrace = 50 * time.Millisecond

// fork asks for a spare, unless one was asked for that is not taken yet.
func (b *pooledSandbox) fork() { b.askFork(nil) }

func (b *pooledSandbox) askFork(how any) {
	if b.forking.CompareAndSwap(false, true) {
		b.noteAsked()
		b.tell(runtimewire.TypeFork, how)
	}
}

// tell tells the initializer something.
func (b *pooledSandbox) tell(t runtimewire.Type, header any) {
	if err := b.control.Tell(t, header); err != nil {
		_ = b.control.Close() // listen ends, and the sandbox with it
	}
}

// nextSpare takes the spare that was asked for, when it is ready, or asks for others while they are killed. One that ended by itself is the
// doing of the code, which would do it again.
func (b *pooledSandbox) nextSpare() error { return b.nextSpareWithin(b.forkTime()) }

func (b *pooledSandbox) nextSpareWithin(limit time.Duration) error {
	if s := b.takeOver(); s != nil {
		b.spare = s
		return nil
	}
	var err error
	for range maxForks {
		b.fork()
		var s *spare
		if s, err = b.awaitSpare(limit); err == nil {
			b.spare, s.fresh = s, true
			return nil
		}
		if c, ok := errors.AsType[codeError](err); errors.Is(err, context.DeadlineExceeded) || ok && !c.killed {
			break
		}
	}
	return err
}

// forkTime is how long a spare may take.
func (b *pooledSandbox) forkTime() time.Duration {
	limit := forkLimit
	if b.language.launched { // it loads the code
		limit += time.Duration(b.pool().action.Limits.Timeout) * time.Millisecond
	}
	return limit
}

func (b *pooledSandbox) awaitSpare(limit time.Duration) (*spare, error) {
	ctx, cancel := context.WithTimeout(b.stopped, limit)
	defer cancel()
	var s *spare
	select {
	case s = <-b.spares:
		b.forking.Store(false)
	case <-b.dead:
		return nil, errors.New("the initializer ended")
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a handler: %w", ctx.Err())
	}
	var err error
	select {
	case <-s.ready:
		if err = s.failed; err != nil && s.conn != nil && b.awaitExit(s) {
			err = b.codesEnd(s)
		}
	case <-b.dead:
		err = errors.New("the initializer ended before its handler was ready")
	case <-ctx.Done():
		err = fmt.Errorf("waiting for a handler to be ready: %w", ctx.Err())
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// kill ends a running activation: when its handler is gone, await returns. If the handler cannot be killed, the sandbox
// is closed. A run that was squashed before it had a handler gets none, and the handler being loaded serves the next
// run.
//
// For a handler that has ended by itself, kill acts only if no other handler has taken its place, or is about to.
func (b *pooledSandbox) kill(t *tenure, ended *spare) {
	if t.over.Load() && t.handler.Load() == nil {
		return
	}
	striking, stop := context.WithTimeout(b.stopped, forkLimit) // the helper may be late
	defer stop()
	struck, err := b.killAll(striking, t, ended)
	if err != nil && b.stopped.Err() == nil {
		b.w.config.Log.Warn("a handler could not be killed: its sandbox is closed", "action", b.pool().action.Name.String(), "error", err)
	}
	if !struck {
		return
	}
	ctx, cancel := context.WithTimeout(b.stopped, b.w.grace)
	defer cancel()
	select {
	case <-t.done:
	case <-ctx.Done():
		b.giveUp(t, ended)
	}
}

// giveUp closes the sandbox and the handler, unless the tenure has ended meanwhile, or the activation has another
// handler.
func (b *pooledSandbox) giveUp(t *tenure, ended *spare) {
	b.reseting.Lock()
	defer b.reseting.Unlock()
	if t.isDone() || ended != nil && ended.replaced {
		return
	}
	_ = b.sandbox.Close()
	if handler := t.handler.Load(); handler != nil {
		handler.close() // a function can send its end of the socket through itself, and only this process holds the other end
	}
}

// killAll kills everything in the sandbox but the initializer and the newest spare, if the tenure still lasts. With the handler that has
// ended, only if it has that still.
func (b *pooledSandbox) killAll(ctx context.Context, t *tenure, ended *spare) (struck bool, err error) {
	b.reseting.Lock()
	defer b.reseting.Unlock()
	handler := t.handler.Load()
	if t.isDone() || ended != nil && (handler != ended || ended.replaced || ended.killed.Load()) { // with all that it left
		return false, nil
	}
	if ended != nil {
		t.unsent = b.sandbox.TakeHeld() // its result may not be read yet
	}
	var keep []int
	survivor := b.survivorOf(handler)
	if b.struck.Load() && survivor != b.survivor.Load() { // the kill before may have hit it as it was made
		survivor = nil
	}
	if survivor != nil {
		keep = append(keep, survivor.hostPID)
	}
	b.survivor.Store(survivor)
	b.struck.Store(true)
	if handler != nil {
		handler.killed.Store(true)
	}
	if survivor != nil && handler != nil && t.over.Load() {
		b.living.Go(handler.close) // its result is not needed: live ends the activation meanwhile
	}
	if err := b.sandbox.Strike(ctx, keep...); err != nil {
		_ = b.sandbox.Close() // before another activation can have it
		return true, err
	}
	b.readOOMKills()
	b.cleared = survivor
	// Else what it wrote may not be read yet, nor whether it has read the activation.
	if handler != nil && (t.over.Load() || !handler.hasExited() && !b.isDead()) {
		handler.close() // it may have to give back its memory before its end is closed
	}
	return true, nil
}

func (s *spare) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	if memory := s.memory.Swap(nil); memory != nil {
		_ = memory.Close()
	}
}

// discard closes a handler, and what it is connected with if no activation ever had it.
func (s *spare) discard() {
	s.close()
	if s.conns != nil {
		s.conns.end(nil)
		s.conns = nil
	}
}

// closeSpares closes the unused handlers and stops listening to them. No source of further handlers is left.
func (b *pooledSandbox) closeSpares() {
	for {
		select {
		case s := <-b.spares:
			s.close()
		default:
			return
		}
	}
}
