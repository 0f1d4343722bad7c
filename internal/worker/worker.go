// Package worker is a node's pool of sandboxes. It executes activations and reports their progress as events.
//
// It promises that its methods return at once. One sandbox serves one action of one tenant, and one activation at a
// time. All leftovers of an activation (processes, files and connections) are gone before its sandbox takes the next
// one. A function that crashes, hangs, floods its log or returns nonsense harms only its own activation. run.go shows
// the course of an activation.
//
// It does not decide about workflows, and it knows neither HTTP nor Redis: the doors pass connections on, with the
// activation that they belong to.
package worker

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/schedule"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/resp"
)

// Config is what a worker is made of.
type Config struct {
	Maker        sandbox.Maker
	Languages    *Languages
	Store        state.Store                        // of the state that functions see through their doors
	Hub          *resp.Hub                          // of that store
	Bridge       state.Bridge                       // executes the commands of bridged activations; may be nil if there are none
	MaxSandboxes int                                // at most this many at a time; 0: as memory and Descriptors allow
	Descriptors  int                                // files and sockets that the process may have open; 0: its limit
	MemoryMiB    int                                // memory of all sandboxes: the limits of busy ones, the measured use of idle ones; 0: half of the machine's memory
	KeepAlive    time.Duration                      // how long a sandbox stays without work; 0: 10 minutes
	QueueTimeout time.Duration                      // how long an activation may wait for a sandbox; 0: 10 minutes
	Egress       func(namespace string) egress.List // what a tenant's functions may reach; who changes it ends their sandboxes; nil: all
	Schedule     schedule.Policy                    // which activations may run at a time; empty: all that have a sandbox
	KeptRuns     int                                // activations after which a kept Python process makes place for another; 0: 50,000
	Prewarm      int                                // sandboxes without code to hold ready for each language in use
	Bounds       forerun.Bounds                     // none: the usual ones
	Log          *slog.Logger
}

// Defaults of a Config.
const (
	defaultKeepAlive    = 10 * time.Minute
	defaultQueueTimeout = 10 * time.Minute
)

// Worker implements forerun.Worker over the sandboxes of this machine.
//
// Each sandbox has one goroutine (pooledSandbox.live) that goes through its life in order. An idle sandbox gets a run from Run
// through the channel pooledSandbox.assigned. A sandbox that looks for work gets it from pooledSandbox.next. No lock but scheduler.mu is
// taken with Worker.mu held; output.mu and tenure.mu are taken with no other lock held.
type Worker struct {
	config Config
	resp   *resp.Server
	api    *apiServer
	load   *load
	turns  *scheduler
	late   atomic.Pointer[late]
	limit  int64         // bytes of memory for all sandboxes
	grace  time.Duration // exitGrace, unless a test changes it

	connections *sandbox.Shares // to the doors of all sandboxes

	digests forerun.Digests
	stop    context.CancelFunc // ends every sandbox
	stopped context.Context
	alive   sync.WaitGroup // goroutines of sandboxes and of failures to tell
	ahead   atomic.Int64   // runs that began speculatively; changed with mu held

	mu          sync.Mutex // guards the rest, and the fields of run, pool and pooledSandbox that say so
	closing     bool
	runs        map[forerun.ActivationID]*run
	pools       map[poolKey]*pool
	tenants     map[string]*tenant // that have pools
	shelves     map[*language]*shelf
	idle        []*pooledSandbox
	hungry      []*pool // with a queue that no sandbox will come to by itself, or which waits for its share of them
	sandboxes   int     // of all pools and shelves, starting ones included
	starting    int     // of pools
	charged     int64   // bytes of memory that all sandboxes occupy
	stuck       stuck   // as of the last look, or the last one that ended
	clock       float64 // of Greedy-Dual (see pooledSandbox.priority)
	epoch       int     // of tenants' service
	pinched     time.Time
	lastSandbox int
	ticking     bool // a tick is due
	counters    counters
}

var _ forerun.Worker = (*Worker)(nil)

// New makes a worker. Close ends it.
func New(c Config) *Worker {
	c = c.complete()
	ctx, stop := context.WithCancel(context.Background())
	w := &Worker{
		config: c, api: newAPIServer(), load: newLoad(readProcStat), grace: exitGrace,
		resp:  resp.NewServer(c.Hub, resp.Options{MaxBulk: maxArgument, MaxConns: math.MaxInt}), // each sandbox's doors bound them
		limit: int64(c.MemoryMiB) << 20, stopped: ctx, stop: stop,
		connections: sandbox.NewShares(c.Descriptors * 3 / 16),
		runs:        make(map[forerun.ActivationID]*run),
		pools:       make(map[poolKey]*pool),
		tenants:     make(map[string]*tenant),
		shelves:     make(map[*language]*shelf),
	}
	w.late.Store(new(late))
	w.turns = newScheduler(w, c.Schedule)
	return w
}

// smallestMiB is what the smallest idle sandbox uses.
const smallestMiB = 8

// sandboxDescriptors is more than what the server has open for a sandbox without connections. Of all descriptors sandboxes take five sixteenths
// at most, their connections three, and two what carries their datagrams and questions for names: the rest is for the server's own files
// and its doors to the outside.
const sandboxDescriptors = 24

// complete fills in the defaults.
func (c Config) complete() Config {
	c.MemoryMiB = MemoryMiB(c.MemoryMiB)
	c.Descriptors = cmp.Or(c.Descriptors, sandbox.Descriptors())
	if c.MaxSandboxes == 0 {
		c.MaxSandboxes = max(1, min(c.MemoryMiB/smallestMiB, c.Descriptors*5/16/sandboxDescriptors))
	}
	c.KeptRuns = cmp.Or(c.KeptRuns, defaultKeptRuns)
	c.KeepAlive = cmp.Or(c.KeepAlive, defaultKeepAlive)
	c.QueueTimeout = cmp.Or(c.QueueTimeout, defaultQueueTimeout)
	c.Bounds = cmp.Or(c.Bounds, forerun.DefaultBounds())
	return c
}

// MemoryMiB is what all sandboxes may use if so much is set: half of the machine's memory if none is.
func MemoryMiB(set int) int {
	if set == 0 {
		return machineMemoryMiB() / 2
	}
	return set
}

func machineMemoryMiB() int {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 2 << 10
	}
	return int(info.Totalram * uint64(info.Unit) >> 20)
}

// Run implements forerun.Worker.
func (w *Worker) Run(request *forerun.Run) {
	now := time.Now()
	r := &run{Run: request, queued: now, asked: now}
	if r.Speculative {
		r.promoted, r.promote = context.WithCancel(context.Background())
		r.unpark = make(chan struct{})
	}
	language, err := w.config.Languages.language(request.Action.Exec.Kind)
	if err != nil {
		w.fail(r, forerun.Failure(forerun.DeveloperError, err.Error()))
		return
	}
	if limit := request.Action.Limits.Memory; limit > w.config.MemoryMiB {
		w.fail(r, memoryFailure(limit, w.config.MemoryMiB))
		return
	}
	if !w.enqueue(r, language) {
		w.fail(r, forerun.Failure(forerun.InternalError, shutDown))
	}
}

// Await implements forerun.Worker.
func (w *Worker) Await(id, caller forerun.ActivationID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.runs[id]; r != nil && !r.left && !r.isParked() { // else it has ended
		r.callFor(w.runs[caller])
	}
}

// Promote implements forerun.Worker. It releases, in the background, what the activation sent to the outside.
func (w *Worker) Promote(id forerun.ActivationID) {
	w.mu.Lock()
	r := w.runs[id]
	if r == nil || !r.Speculative {
		w.mu.Unlock()
		return
	}
	r.promote()
	w.turns.tell(schedule.Promoted{Activation: id})
	effects := r.effects
	r.effects = nil
	switch {
	case r.left:
		w.unbook(r)
	case r.sandbox == nil:
		w.hasten(r)
	}
	w.mu.Unlock()
	if effects != nil {
		effects()
	}
}

// Squash implements forerun.Worker. The handler is killed and its doors are shut in the background; no operation that
// it begins at its state door after Squash returned is executed.
func (w *Worker) Squash(id forerun.ActivationID) {
	w.mu.Lock()
	r := w.runs[id]
	if r == nil {
		w.mu.Unlock()
		return
	}
	w.unbook(r)
	r.answerCaller()
	r.squashed, r.effects = true, nil
	if r.left {
		w.counters.Wasted += r.took
		w.mu.Unlock()
		return
	}
	w.counters.Squashed++
	b := r.sandbox
	r.endsSandbox = r.EndSandbox && b != nil && !r.isParked()
	if b == nil {
		w.withdraw(r)
	} else if r.Speculative {
		r.pool.squashes = true
	}
	w.mu.Unlock()
	if b != nil {
		r.tenure.over.Store(true)
		if r.Speculative {
			close(r.tenure.squashed)
		}
		w.turns.wake(id)
		w.spawn(func() { b.kill(r.tenure, nil) })
	}
}

// spawn runs f in a goroutine that Close waits for, unless it waits already.
func (w *Worker) spawn(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		go f()
		return
	}
	w.alive.Go(f)
}

// Close ends every sandbox. Activations that wait or run end as internal errors. It returns when no goroutine of the
// worker is left. It may be called again.
func (w *Worker) Close() error {
	w.mu.Lock()
	w.closing = true
	var waiting []*run
	for _, p := range w.pools {
		waiting = append(waiting, w.empty(p)...)
	}
	w.mu.Unlock()
	for _, r := range waiting {
		r.end(w, forerun.Failure(forerun.InternalError, shutDown), nil)
	}
	w.stop()
	w.alive.Wait()
	return w.api.close()
}

// fail ends a run that never got to a sandbox, from a goroutine of its own.
func (w *Worker) fail(r *run, result forerun.Result) {
	w.spawn(func() { r.tellEnded(forerun.RunEnd{Status: result.Status, Result: result.Value}) })
}
