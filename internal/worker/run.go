package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/schedule"
)

// forkAhead is how long an activation runs before its successor's handler is forked. A fork at the start of a short
// function costs it 0.3 ms, because both processes take page faults on shared memory. Behind the function, or during a
// longer one, the fork delays no activation.
const forkAhead = time.Millisecond

// exitGrace is how long the initializer may take to say how a handler ended, and a handler to vanish when killed.
const exitGrace = 2 * time.Second

// run is one activation in the worker.
type run struct {
	*forerun.Run
	queued time.Time
	asked  time.Time // since when it waits not being speculative; guarded by Worker.mu
	tenure *tenure   // the owner of its door connections; set when it gets a sandbox

	atGuard time.Duration // for how long what it sent waited until it was promoted; set when its limit is stopped
	unheard bool          // it ended without waiting for its held requests; set then too
	reach   forerun.Reach // of a bridged one; set then too
	memory  bool          // its process may remember earlier ones; set then too

	promoted context.Context // of a speculative one: done when it is promoted
	promote  context.CancelFunc
	unpark   chan struct{} // closed when its parked handler is in the way

	// Guarded by Worker.mu:
	pool        *pool
	sandbox     *pooledSandbox // that executes it; nil while it waits
	caller      *run           // that waits for it, nil if none does, or it has its answer
	calls       int            // runs that it waits for
	returned    int            // how often its sandbox died and it was queued again
	squashed    bool
	endsSandbox bool          // its squash ends the sandbox, too
	wanted      bool          // it was asked to make way
	effects     func()        // effects that it sent before its end, held until it is promoted
	left        bool          // it has ended and has no sandbox any more, and is still registered because it is speculative
	took        time.Duration // its processor time, if it was speculative and has ended
	yielded     bool          // its parked handler makes way
	parkedAt    time.Time     // since when, it having ended, its handler waits for what becomes of it; zero: it does not
	parkedFor   time.Duration // when that was over
}

// execute takes an activation through its handler: it sends the input to the waiting spare, awaits the result, and tells
// the end. pooledSandbox.clean removes the leftovers afterwards. execute reports false if the sandbox is not usable any more.
func (b *pooledSandbox) execute(r *run) bool {
	t := r.tenure
	b.settleStandby()
	if err := b.chooseHandler(r); err != nil {
		return b.refuse(r, err)
	}
	if err := b.hold(r); err != nil {
		return b.refuse(r, err)
	}
	if err := b.w.turns.admit(b, r); err != nil {
		return b.refuse(r, err)
	}
	b.loadsAhead = false
	b.began(r, t)
	start := time.Now()
	stop := sync.OnceFunc(b.limit(r, start))
	defer stop()
	header := b.runHeader(r, start.Add(time.Duration(r.Action.Limits.Timeout)*time.Millisecond))
	o := outcome{err: b.send(r, t, header), unbegun: true}
	fork := b.prepareSoon()
	if o.err == nil {
		r.tellStarted(b.w, start, b.takeInitTime())
		o = b.awaitOr(r, t, header)
	}
	stop() // another sandbox may have it at once
	b.w.turns.ended(r.Activation, !o.arrived)
	fork()
	codes := isCodes(o.err)
	if o.unbegun && !codes && b.giveBack(r, t, o.err) {
		return false
	}
	r.withhold(b)
	r.unheard = b.held && b.sandbox.Reached()
	if r.Bridged {
		r.reach = b.reach(b.spare)
	}
	r.memory = b.remembers(r)
	b.spare.served, b.spare.fresh, b.spare.unreached = true, false, false
	b.spare.stays = b.keepsHandler() && o.arrived && !t.timedOut.Load()
	b.cutOff = !o.arrived && !r.isAhead() // actions with shared state are not speculative
	logs := b.ended(t, b.spare.stays)
	var result forerun.Result
	if !errors.Is(o.err, errSquashed) && (!b.struck.Load() || !r.isSquashed(b.w)) { // else the activation was squashed
		result = b.judge(r, b.spare, o)
	}
	switch {
	case r.end(b.w, result, logs):
		b.park(r)
		if r.isPromoted() { // late datagrams of its process are not the next activation's
			_ = b.letOut() // if it fails the sandbox has ended
		}
	case r.isSquashed(b.w): // perhaps when its process could not be killed any more
		b.spare.stays = false
	}
	if codes { // it would end the next process, too, perhaps before an activation comes
		return false
	}
	b.prepare()
	return true
}

// refuse ends a run that did not come to a handler, and reports whether the sandbox is of use still.
func (b *pooledSandbox) refuse(r *run, err error) bool {
	b.w.turns.ended(r.Activation, true)
	t, squashed, late := r.tenure, errors.Is(err, errSquashed), errors.Is(err, errWaitedLong)
	if !squashed && !late && b.giveBack(r, t, err) {
		return false
	}
	b.over(t)
	if !squashed && !late {
		r.end(b.w, b.startFailure(err), nil)
		return false
	}
	b.untouched = !b.struck.Load()
	b.spare.stays = false
	if late {
		b.w.expired(r)
	}
	return true
}

// over marks the end of a tenure. No kill that was meant for it reaches into what comes next.
func (b *pooledSandbox) over(t *tenure) {
	b.reseting.Lock()
	defer b.reseting.Unlock()
	close(t.done)
}

// prepare asks for the next handler before it is needed, where no other serves it.
func (b *pooledSandbox) prepare() {
	if b.forksNext() {
		b.fork()
	}
}

// prepareSoon does so after a while, unless the returned function is called before.
func (b *pooledSandbox) prepareSoon() (cancel func()) {
	if !b.forksNext() {
		return func() {}
	}
	asked := make(chan struct{})
	timer := time.AfterFunc(forkAhead, func() { defer close(asked); b.fork() })
	return func() {
		if !timer.Stop() {
			<-asked // one asked for late could be killed with the activation's processes, and be the next one's
		}
	}
}

// maxReturns is how many sandboxes may die under a run before it began.
const maxReturns = 3

// giveBack puts a run that could not be handed to a handler, which is why, back into its queue, unless something else ended it.
func (b *pooledSandbox) giveBack(r *run, t *tenure, why error) bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	early := errors.Is(why, errEarly) // no sandbox has died, and there will be no more such ones
	if r.squashed || t.timedOut.Load() || b.w.closing || r.returned == maxReturns && !early {
		return false
	}
	if !early {
		r.returned++
	}
	r.sandbox, r.tenure = nil, nil
	b.w.putBack(r)
	close(t.done)
	return true
}

// send hands the activation to the spare that waits. A spare that died while it waited is replaced, once; one that was made for this
// activation is not, unless it was killed.
func (b *pooledSandbox) send(r *run, t *tenure, header runtimewire.Run) error {
	err := b.hand(r, t, header)
	if err == nil || t.over.Load() || t.timedOut.Load() {
		return err
	}
	if b.endedByItself() {
		return b.codesEnd(b.spare)
	}
	return b.sendAnother(r, t, header)
}

// sendAnother sends the activation to another handler. The leftovers of the first handler are removed together with
// everything else; otherwise that removal would hit the new handler.
func (b *pooledSandbox) sendAnother(r *run, t *tenure, header runtimewire.Run) error {
	b.reseting.Lock()
	b.spare.replaced, b.cleared, t.unsent = true, nil, nil // leftovers and effects belong to the new handler from now on
	b.reseting.Unlock()
	b.spare.close()
	if err := b.nextSpare(); err != nil {
		return err
	}
	b.handOver()
	return b.hand(r, t, header)
}

// hand sends the activation to the spare, unless the activation is squashed or out of time: the code that ended it may
// not have seen this handler.
func (b *pooledSandbox) hand(r *run, t *tenure, header runtimewire.Run) error {
	t.handler.Store(b.spare)
	switch {
	case t.over.Load():
		return errSquashed
	case t.timedOut.Load():
		return errTimedOut
	case b.spare.hasExited():
		return errExited
	}
	if b.isForked() && !b.once.Load() && !b.spare.served {
		b.spare.measure()
	}
	return b.spare.conn.Run(header, r.Input)
}

// awaitOr awaits the handler's result. One that ends before it has read the activation to its end has not begun it: this goes to another
// handler, of which a sandbox that ends may have some that are ending, too.
func (b *pooledSandbox) awaitOr(r *run, t *tenure, header runtimewire.Run) outcome {
	for range maxForks {
		o := b.await(b.spare)
		if !b.hasNotRead(t, o.err) {
			return o
		}
		if b.endedByItself() {
			return outcome{err: b.codesEnd(b.spare)}
		}
		if b.mayHaveActed() {
			return o
		}
		if err := b.sendAnother(r, t, header); err != nil {
			return outcome{err: err, unbegun: true}
		}
	}
	return b.await(b.spare)
}

// hasNotRead reports whether the spare ended before it had read the activation, which is neither squashed nor over its time.
func (b *pooledSandbox) hasNotRead(t *tenure, err error) bool {
	return err != nil && b.spare.conn.Unread(err) && !t.over.Load() && !t.timedOut.Load()
}

// mayHaveActed reports whether the spare is a program that may act before it reads: it has answered no line yet.
func (b *pooledSandbox) mayHaveActed() bool { return b.spare.lines && !b.spare.served }

// endedByItself reports whether the spare, which was made for the activation, has ended by itself before that began.
func (b *pooledSandbox) endedByItself() bool {
	return b.spare.fresh && b.awaitExit(b.spare) && !b.mayBeKilledByOthers(b.spare)
}

// mayBeKilledByOthers reports whether others may have killed a handler that has ended. Then another takes its place, unless it may have acted.
func (b *pooledSandbox) mayBeKilledByOthers(s *spare) bool {
	return s.exit.Signal == int(syscall.SIGKILL) && (!s.lines || s.served)
}

// codeError is the failure of an activation that its code brought about before the activation began.
type codeError struct {
	result forerun.Result
	killed bool // its process was, perhaps by others
}

func (e codeError) Error() string { return string(e.result.Value) }

func isCodes(err error) bool {
	_, is := errors.AsType[codeError](err)
	return is
}

// codesEnd is the error for a process that has ended before it read its activation.
func (b *pooledSandbox) codesEnd(s *spare) error {
	if b.outOfMemory() {
		return codeError{result: forerun.Failure(forerun.DeveloperError, outOfMemory)}
	}
	return codeError{result: earlyExitFailure(s), killed: b.mayBeKilledByOthers(s)}
}

var (
	errExited   = errors.New("the handler has exited")
	errTimedOut = errors.New("the activation's time was over before it began")
)

// outcome is how a handler's connection ended.
type outcome struct {
	header  runtimewire.Result
	payload []byte
	arrived bool  // a Result did
	broken  error // else: an invalid message
	err     error // else: the connection ended, or the activation could not be handed over
	unbegun bool  // as it could not
}

// await reads what the handler sends until its Result, or its end.
func (b *pooledSandbox) await(s *spare) outcome {
	for {
		f, err := s.conn.Read()
		switch {
		case errors.Is(err, runtimewire.ErrMalformed):
			return outcome{broken: err}
		case err != nil:
			return outcome{err: err}
		}
		switch f.Type {
		case runtimewire.TypeResult:
			o := outcome{payload: f.Payload}
			o.header, o.broken = f.Result()
			o.arrived = o.broken == nil
			return o
		case runtimewire.TypeLog:
			var l runtimewire.Log
			if err := f.Decode(&l); err != nil {
				return outcome{broken: err}
			}
			b.output.say(l.Stream, string(f.Payload))
		default:
			return outcome{broken: fmt.Errorf("a frame of type %d is not a handler's to send", f.Type)}
		}
	}
}

// judge makes the activation's result of what the handler sent, or of how it ended.
func (b *pooledSandbox) judge(r *run, s *spare, o outcome) forerun.Result {
	switch size, tooLarge := errors.AsType[*runtimewire.SizeError](o.broken); {
	case b.stopped.Err() != nil && !o.arrived:
		return forerun.Failure(forerun.InternalError, shutDown)
	case r.tenure.timedOut.Load():
		return timeoutFailure(r.Action.Limits.Timeout)
	case o.arrived:
		return resultOf(o.header, o.payload, b.w.config.Bounds.Payload)
	case tooLarge:
		return sizeFailure(size.Payload, b.w.config.Bounds.Payload)
	case isCodes(o.err):
		return b.startFailure(o.err)
	case o.broken != nil:
		return forerun.Failure(forerun.DeveloperError, fmt.Sprintf("The action wrote to the descriptor that its result goes through: %v.", o.broken))
	}
	return b.crash(s)
}

// crash says how a handler ended that sent no result.
func (b *pooledSandbox) crash(s *spare) forerun.Result {
	exited := b.awaitExit(s)
	switch {
	case b.outOfMemory():
		return forerun.Failure(forerun.DeveloperError, outOfMemory)
	case exited:
		return exitFailure(s)
	case b.isDead():
		return forerun.Failure(forerun.DeveloperError, "The action exited unexpectedly: its sandbox ended.")
	default:
		return forerun.Failure(forerun.DeveloperError, "The action closed the descriptor that its result goes through.")
	}
}

// awaitExit waits until the initializer has said how a handler ended, and reports whether it has.
func (b *pooledSandbox) awaitExit(s *spare) bool {
	grace, cancel := context.WithTimeout(context.Background(), b.w.grace)
	defer cancel()
	select {
	case <-s.exited:
	case <-b.dead:
	case <-grace.Done():
	}
	return s.hasExited()
}

// timeOut ends an activation that exceeded its time.
func (b *pooledSandbox) timeOut(t *tenure) {
	t.timedOut.Store(true)
	b.kill(t, nil)
}

// runHeader is the environment and the limits of an activation.
func (b *pooledSandbox) runHeader(r *run, deadline time.Time) runtimewire.Run {
	env := map[string]string{
		"__OW_ACTION_VERSION": r.Action.Version,
		"__OW_ACTIVATION_ID":  string(r.Activation),
		"__OW_DEADLINE":       strconv.FormatInt(deadline.UnixMilli(), 10),
		"__OW_TRANSACTION_ID": r.Transaction,
	}
	if r.Token != "" {
		env["__OW_API_KEY"] = r.Token
	}
	return runtimewire.Run{Speculative: r.Speculative, Limit: b.w.config.Bounds.Payload, Env: env}
}

// end removes the run and tells its end, unless it was squashed. A speculative run whose handler will serve again stays
// registered, and the handler is parked.
func (r *run) end(w *Worker, result forerun.Result, logs []string) (parked bool) {
	w.mu.Lock()
	r.answerCaller()
	squashed := r.squashed
	parked = !squashed && r.isAhead() && r.sandbox != nil && r.sandbox.spare.stays
	if parked {
		r.parkedAt = time.Now()
	}
	switch {
	case !parked:
		w.leave(r)
	case r.wanted: // the controller may not have heard Wanted, and the run has ended
		r.yield()
	default:
		w.unparkSoon(r.pool)
	}
	if !squashed {
		w.counters.ended(result.Status)
	}
	cpu, unheard := r.pool.cpu, r.unheard && r.isAhead()
	w.mu.Unlock()
	if !squashed {
		timedOut := r.tenure != nil && r.tenure.timedOut.Load()
		r.tellEnded(forerun.RunEnd{Status: result.Status, Result: result.Value, Logs: logs, CPU: cpu, Held: r.atGuard, Unheard: unheard, TimedOut: timedOut, Reach: r.reach, Remembers: r.memory})
	}
	return parked
}

// callFor notes that another run waits for this one.
func (r *run) callFor(caller *run) {
	if caller != nil {
		r.caller = caller
		if caller.calls++; caller.calls == 1 {
			caller.tellScheduler(schedule.Waits{Activation: caller.Activation})
		}
	}
}

// answerCaller notes that no caller waits for the run any more.
func (r *run) answerCaller() {
	if r.caller != nil {
		if r.caller.calls--; r.caller.calls == 0 {
			r.caller.tellScheduler(schedule.Answered{Activation: r.caller.Activation})
		}
		r.caller = nil
	}
}

// tellStarted tells that a handler has begun, unless the run was squashed before.
func (r *run) tellStarted(w *Worker, at time.Time, initTime time.Duration) {
	if !r.isSquashed(w) {
		r.Events.Started(r.Activation, at, initTime)
	}
}

func (r *run) isSquashed(w *Worker) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.squashed
}

// endsSandbox reports whether the squash of a run, while that had a handler, is to end the sandbox.
func (w *Worker) endsSandbox(r *run) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.endsSandbox
}

func (r *run) tellEnded(end forerun.RunEnd) {
	end.At = time.Now()
	r.Events.Ended(r.Activation, end)
}
