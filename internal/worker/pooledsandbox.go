package worker

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/launcher"
	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
)

// The limits on the steps of a sandbox's life, for a loaded machine. Loading the code has the action's own limit.
const (
	startLimit = time.Minute
	forkLimit  = 10 * time.Second
	maxForks   = 3 // spares that may die before they are of use, in a row
)

// sandboxState is the state of a sandbox in its pool.
type sandboxState int

const (
	sandboxStarting sandboxState = iota
	sandboxBlank                 // waits for code
	sandboxIdle                  // waits for a run, with a spare handler
	sandboxBusy                  // executes one, or is being cleaned after it
	sandboxGone                  // off the books
)

// pooledSandbox is one sandbox of a pool, from its start to its end. Its goroutine, live, goes through its life in order and owns
// all fields that name no other guard.
type pooledSandbox struct {
	w        *Worker
	language *language
	id       string
	owner    atomic.Pointer[pool] // nil until it has code; set before it gets that, with Worker.mu held
	stopped  context.Context      // done when it is to end, whatever it does
	stop     context.CancelFunc
	closed   chan struct{} // when nothing is left of it

	sandbox  sandbox.Sandbox
	control  *runtimewire.Conn
	output   *output
	doors    *doors
	spare    *spare // that the next activation gets
	initTime time.Duration
	oomSeen  int64
	cost     time.Duration // of its start, its code's loading included

	adopted    chan struct{} // closed by the pool that gives a blank sandbox its code
	assigned   chan *run     // from the pool to live, when the sandbox is idle
	leave      chan struct{} // closed by the pool: an idle sandbox makes room
	hello      chan runtimewire.Hello
	initDone   chan runtimewire.InitDone
	spares     chan *spare                   // from listen to live
	decided    chan struct{}                 // to live: it may be known now if the newest will be of use
	paused     chan runtimewire.Paused       // from listen to live
	forking    atomic.Bool                   // a spare was asked for that live has not taken yet
	asked      atomic.Pointer[sandbox.Asked] // of the outside, before the next spare was made; nil: that is not begun
	loadReach  forerun.Reach                 // of the code, as the initializer loaded it; of live
	upcoming   atomic.Pointer[spare]         // the newest
	sealed     bool                          // nothing can write where the code is; of live
	shares     *bool                         // its handlers can change something for each other; nil: that is not known yet; of live
	held       bool                          // what its processes send to the outside is held; of live
	forAhead   bool                          // it was started for speculative activations alone; set before it has code
	loadsAhead bool                          // its code was loaded for speculative activations alone, and no activation has begun in it; of live
	untouched  bool                          // the last run did not come to a handler; of live
	cutOff     bool                          // the last handler ended before its answer; of live
	struck     atomic.Bool                   // processes were killed in this tenure
	survivor   atomic.Pointer[spare]         // the handler that was left when they were last examined
	standing   atomic.Pointer[spare]         // takes over when the spare, or the handler, is killed; where a handler is kept
	second     standby
	resident   atomic.Pointer[spare] // the kept process while a fresh handler has its turn
	once       atomic.Bool           // the activation's handler serves no other, though the action keeps a process
	oomKills   atomic.Int64          // as far as was read
	unmeasured int                   // runs since it was measured; of live
	measuredAt time.Time             // when it was, or was tried; of live
	loaded     bool                  // it was measured since its code was loaded; of live
	blank      bool                  // it was held ready, and has no code yet; of live
	cpu        time.Duration         // that it had taken then; of live
	oomClean   int64                 // oomKills when the sandbox was clean last; of live
	replacing  time.Duration         // the least that it took to load a process in the place of a connected one; of live
	dead       chan struct{}         // closed by listen: the initializer is gone
	living     sync.WaitGroup        // its goroutines but live
	reseting   sync.Mutex            // held during a Reset, so that none reaches into the next activation
	cleared    *spare                // alone was left when everything else of an activation was killed and removed; guarded by reseting
	weighing   sync.Mutex            // held while its CPU weight is set, so that the last one stays
	behind     atomic.Bool           // its phase runs in the back
	refusing   sync.Mutex            // held while refusals are asked for and written down
	handlers   map[int]*spare        // by process id inside; of listen alone

	// Guarded by Worker.mu:
	state    sandboxState
	since    time.Time // when it became what it is
	charged  int64     // bytes of the worker's memory that it occupies
	measured int64     // bytes that it used when it was measured last; 0: never
	clock    float64   // Worker.clock when it became idle
	weight   int       // its share of the processors
	current  *run      // that it was given last; nil: none yet
}

// newSandbox makes a sandbox for a language. The caller holds Worker.mu.
func (w *Worker) newSandbox(l *language) *pooledSandbox {
	w.sandboxes++
	w.lastSandbox++
	stopped, stop := context.WithCancel(w.stopped)
	return &pooledSandbox{
		w: w, language: l, id: "s" + strconv.Itoa(w.lastSandbox), since: time.Now(), weight: sandbox.DefaultCPUWeight,
		stopped: stopped, stop: stop, closed: make(chan struct{}),
		adopted: make(chan struct{}), assigned: make(chan *run, 1), leave: make(chan struct{}),
		hello: make(chan runtimewire.Hello, 1), initDone: make(chan runtimewire.InitDone, 1),
		spares: make(chan *spare, maxForks), decided: make(chan struct{}, 1), paused: make(chan runtimewire.Paused, 1), dead: make(chan struct{}), handlers: make(map[int]*spare),
	}
}

// keeps reports whether a handler serves several activations, one after the other.
func (b *pooledSandbox) keeps() bool {
	p := b.pool()
	return b.language.launched || p != nil && p.key.keeps
}

// isDead reports whether its initializer is gone, and all its processes with it.
func (b *pooledSandbox) isDead() bool { return isClosed(b.dead) }

// pool is the sandbox's pool; nil while it has no code.
func (b *pooledSandbox) pool() *pool { return b.owner.Load() }

// take gives the sandbox a run. The caller holds Worker.mu.
func (b *pooledSandbox) take(r *run) {
	p := b.pool()
	p.runs++
	b.state, b.since = sandboxBusy, time.Now()
	b.w.charge(b, b.memory())
	b.current = r
	r.sandbox, r.tenure = b, newTenure(r.Activation)
	if r.Speculative {
		r.tenure.squashed, r.tenure.ahead = make(chan struct{}), r.isAhead
	}
	if r.Bridged {
		r.tenure.bridge = b.w.config.Bridge
	}
	if r.Noted {
		r.tenure.noter = b.w.config.Bridge
	}
}

// live is the sandbox's life.
func (b *pooledSandbox) live() {
	failure, ok := b.open()
	for ok {
		r := b.wait()
		if r == nil {
			break
		}
		before := b.spent(r)
		ok = b.execute(r) && !b.w.endsSandbox(r) && b.clean()
		b.account(r, before)
		if b.unmeasured++; ok && time.Since(b.measuredAt) >= measureEvery {
			b.measure()
		}
	}
	loadFailed := failure.Status != forerun.Success && !b.w.replace(b)
	logs := b.initLogs(loadFailed)
	for _, r := range b.w.gone(b, loadFailed) {
		r.end(b.w, failure, logs)
	}
	b.close()
}

// wait returns the next run, or nil when the sandbox must close.
func (b *pooledSandbox) wait() *run {
	r, idle := b.w.next(b)
	if !idle {
		return r
	}
	b.restOpen()
	b.spare.fresh = false
	keepUntil := time.Now().Add(b.w.config.KeepAlive)
	timer := time.NewTimer(min(settleAfter, b.w.config.KeepAlive))
	defer timer.Stop()
	b.buryStandby()
	second := time.NewTimer(b.standbyAfter())
	defer second.Stop()
	for {
		select {
		case r := <-b.assigned:
			return r
		case <-second.C:
			b.standBy()
			second.Reset(b.standbyAfter())
			continue
		case <-b.decided:
			b.receiveStandby()
			continue
		case <-timer.C:
			if left := time.Until(keepUntil); left > 0 {
				b.measure()
				timer.Reset(left)
				continue
			}
		case <-b.leave:
		case <-b.dead:
		case <-b.stopped.Done():
		}
		return b.w.retire(b)
	}
}

// retire removes an idle sandbox. If a run was assigned to it meanwhile, it returns that run.
func (w *Worker) retire(b *pooledSandbox) *run {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.state == sandboxBusy {
		return <-b.assigned // sent before the state was set free
	}
	w.unidle(b)
	w.forget(b)
	return nil
}

// open starts the sandbox, unless it is already started, and loads the code. If that fails it returns the result for the
// waiting runs. It returns no result if the code was loaded speculatively: these runs get another sandbox.
func (b *pooledSandbox) open() (failure forerun.Result, ok bool) {
	began := time.Now()
	failure, ok = b.ready()
	switch {
	case ok:
		if b.loadsAhead {
			b.w.loadedAhead(b.pool())
		}
		b.loadsAhead = b.held
		b.sayRefused()
		b.output.loaded()
		b.cost += time.Since(began)
	case b.loadsAhead && !b.blank && b.stopped.Err() == nil:
		if b.isDead() {
			b.w.diedAhead(b.pool())
		} else {
			b.w.loadInTurn(b.pool())
		}
		return forerun.Result{}, false
	}
	return failure, ok
}

// ready does what there is to do before an activation can have the sandbox.
func (b *pooledSandbox) ready() (failure forerun.Result, ok bool) {
	code, failure, ok := b.code()
	if !ok {
		return failure, false
	}
	if err := b.ensure(); err != nil {
		return b.startFailure(err), false
	}
	defer b.w.turns.ended(b.loading(), false)
	if err := b.admitLoading(); errors.Is(err, errWaitedLong) {
		return waitFailure(b.w.config.QueueTimeout), false
	} else if err != nil {
		return b.startFailure(err), false
	}
	if failure, ok := b.loadAside(code); !ok {
		return failure, false
	}
	b.noteLoaded()
	b.fork() // which takes a while
	if err := b.seal(); err != nil {
		return b.startFailure(err), false
	}
	if err := b.firstSpare(); err != nil {
		if b.isDead() && !b.language.launched && b.stopped.Err() == nil { // the code runs in the initializer, and ended it
			return b.loadCrash(), false
		}
		return b.startFailure(err), false
	}
	return forerun.Result{}, true
}

// ensure sees that there is a sandbox, as the pool wants it.
func (b *pooledSandbox) ensure() error {
	ctx, cancel := context.WithTimeout(b.stopped, startLimit)
	defer cancel()
	if b.sandbox != nil {
		return b.fit(ctx)
	}
	return b.start(ctx, b.pool().action.Limits.Memory, b.startWeight())
}

// seal makes the code read-only.
func (b *pooledSandbox) seal() (err error) {
	ctx, cancel := context.WithTimeout(b.stopped, startLimit)
	defer cancel()
	b.sealed, err = b.sandbox.Seal(ctx)
	return err
}

// start makes the sandbox. Its language's runtime has said Hello when it returns.
func (b *pooledSandbox) start(ctx context.Context, memoryMiB, weight int) (err error) {
	if b.sandbox, err = b.w.config.Maker.Start(ctx, b.spec(memoryMiB, weight)); err != nil {
		return err
	}
	return b.connect(ctx)
}

func (b *pooledSandbox) startFailure(err error) forerun.Result {
	if b.stopped.Err() != nil {
		return forerun.Failure(forerun.InternalError, shutDown)
	}
	if c, ok := errors.AsType[codeError](err); ok {
		return c.result
	}
	if !errors.Is(err, errEarly) {
		b.w.config.Log.Error("a sandbox could not be started", "action", b.pool().action.Name.String(), "error", err)
	}
	return forerun.Failure(forerun.InternalError, "A sandbox for the action could not be started; the server's log says why.")
}

// code is what the runtime is to load.
func (b *pooledSandbox) code() (code []byte, failure forerun.Result, ok bool) {
	exec := &b.pool().action.Exec
	if !exec.Binary {
		return []byte(exec.Code), failure, true
	}
	code, err := base64.StdEncoding.DecodeString(exec.Code)
	if err != nil {
		return nil, forerun.Failure(forerun.DeveloperError, "Initialization has failed: the action's code is not valid base64."), false
	}
	return code, failure, true
}

// connect begins to hear the sandbox: its control socket, output and doors. The runtime has said Hello when it returns.
func (b *pooledSandbox) connect(ctx context.Context) (err error) {
	b.control = runtimewire.NewConn(b.sandbox.Control(), runtimewire.Limits{Header: 64 << 10})
	b.living.Go(b.listen)
	stdout, stderr := b.sandbox.Output()
	if b.output, err = newOutput(stdout, stderr, startLogs); err != nil {
		return err
	}
	b.living.Go(func() { b.output.read(0) })
	b.living.Go(func() { b.output.read(1) })
	if b.doors, err = openDoors(b); err != nil {
		return err
	}
	b.living.Go(b.watch)
	select {
	case h := <-b.hello:
		if h.Protocol != runtimewire.Version {
			return fmt.Errorf("the %s runtime speaks version %d of the protocol, not %d", h.Language, h.Protocol, runtimewire.Version)
		}
		return nil
	case <-b.dead:
		return fmt.Errorf("the runtime ended before it said Hello: %q", b.initLogs(true))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// environment is what the action's code sees from its loading on.
func (p *pool) environment() map[string]string {
	env := map[string]string{
		"__OW_API_HOST":    "http://127.0.0.1:3233",
		"__OW_NAMESPACE":   p.key.namespace,
		"__OW_ACTION_NAME": p.action.Name.String(),
		"REDIS_URL":        "redis://127.0.0.1:6379/0",
	}
	maps.Copy(env, p.language.env)
	own, _ := forerun.Environment(p.action.Parameters) // the controller refuses runs whose secrets cannot be read
	maps.Copy(env, own)
	return env
}

// startLogs is how many bytes of what a runtime writes before it has code are kept, to say why it ended.
const startLogs = 64 << 10

func (b *pooledSandbox) spec(memoryMiB, weight int) sandbox.Spec {
	l, c := b.language, &b.w.config
	env := l.processEnv
	if l.launched {
		env = append(slices.Clone(env), launcher.MemoryVar+"="+strconv.Itoa(memoryMiB))
	}
	owner := ""
	if p := b.pool(); p != nil {
		owner = p.key.namespace
	}
	return sandbox.Spec{
		ID: b.id, Owner: owner, Argv: l.argv, Env: env, Files: l.files, Binds: l.binds,
		MemoryMiB: memoryMiB, CPUWeight: weight, Processes: c.Bounds.Processes, TmpMiB: c.Bounds.Tmp, CodeMiB: c.Bounds.Unpacked,
		Launcher: l.launched,
	}
}

func (b *pooledSandbox) logLimit() int { return b.pool().action.Limits.Logs << 20 }

// initLogs returns what was written while the code was loaded, if anybody wants it.
func (b *pooledSandbox) initLogs(wanted bool) []string {
	if b.output == nil || !wanted {
		return nil
	}
	return b.output.end()
}

// watch logs refused connections. It ends all processes when the initializer has ended, or when the sandbox must end.
func (b *pooledSandbox) watch() {
	done := b.sandbox.Done()
	for {
		select {
		case <-b.sandbox.Denied():
			b.sayRefused()
		case <-b.sandbox.Flooded():
			b.flooded()
		case <-b.stopped.Done():
			_ = b.sandbox.Close()
			return
		case <-done:
			done = nil
			_ = b.control.Close() // listen ends
		case <-b.dead:
			b.readOOMKills() // it cannot be asked later
			if t := b.doors.tenure(); t.handler.Load() != nil {
				b.kill(t, nil)
			}
			return
		}
	}
}

// outOfMemory reports whether processes of the sandbox were killed for its memory limit since it was asked last.
func (b *pooledSandbox) outOfMemory() bool {
	b.readOOMKills()
	kills := b.oomKills.Load()
	more := kills > b.oomSeen
	b.oomSeen = kills
	return more
}

func (b *pooledSandbox) readOOMKills() {
	if kills, err := b.sandbox.OOMKills(); err == nil {
		b.oomKills.Store(int64(kills))
	}
}

func (b *pooledSandbox) takeInitTime() time.Duration {
	d := b.initTime
	b.initTime = 0
	return d
}

// began makes output and doors an activation's.
func (b *pooledSandbox) began(r *run, t *tenure) {
	b.output.begin(b.logLimit(), r.Wrote)
	b.doors.begin(t)
}

// ended closes the doors to an activation and returns its log. A handler that stays keeps its connections.
func (b *pooledSandbox) ended(t *tenure, handlerStays bool) []string {
	b.doors.end(handlerStays)
	close(t.done)
	b.sayRefused()
	return b.output.end()
}

// sayRefused puts into the log which connections were refused.
func (b *pooledSandbox) sayRefused() {
	b.refusing.Lock()
	defer b.refusing.Unlock()
	for _, sentence := range b.sandbox.Refused() {
		b.output.say("stderr", "forerun: "+sentence)
	}
}

// endSandbox ends it, after a kill that is under way.
func (b *pooledSandbox) endSandbox() error {
	b.reseting.Lock()
	defer b.reseting.Unlock()
	return b.sandbox.Close()
}

// close ends the sandbox and waits for everything that heard it.
func (b *pooledSandbox) close() {
	defer close(b.closed)
	defer b.stop()
	if b.sandbox == nil {
		return
	}
	if err := b.endSandbox(); err != nil && !errors.Is(err, context.Canceled) {
		b.w.config.Log.Error("a sandbox could not be removed", "sandbox", b.id, "error", err)
	}
	if b.control != nil {
		_ = b.control.Close()
		<-b.dead
	}
	b.closeSpares()
	if b.output != nil {
		b.output.close()
	}
	for _, s := range []*spare{b.spare, b.standing.Load(), b.resident.Load()} {
		if s != nil {
			s.discard()
		}
	}
	if b.doors != nil {
		b.doors.close()
	}
	b.living.Wait()
}
