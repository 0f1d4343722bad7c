// Package controller drives invocations. It feeds events to the pure machine of package speculate and carries out its
// actions: it asks a worker to run functions, and writes the records of activations.
//
// It promises that every activation it began ends with a record, and that this record is in the log before its client is
// answered. A token lives exactly as long as its activation. The controller never blocks in a worker's callback.
package controller

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/clock"
	"forerun.dev/forerun/internal/feed"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/linger"
	"forerun.dev/forerun/internal/memo"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
)

// Actions finds deployed actions.
type Actions interface {
	// Resolve finds an action as a caller of some namespace names it, with the parameters that it inherits. It is immutable, and
	// the same as long as nothing of it changes. The error is forerun.NotFound, or forerun.Forbidden if the caller may not run it.
	Resolve(ctx context.Context, name forerun.Name, caller string) (*forerun.Action, error)
	// Changes grows when something changes that Resolve finds, before who changes it is told so.
	Changes() uint64
}

// Records keeps the records of activations. A record is in the log when the method that received it returns.
type Records interface {
	// Put adds the records of activations that have ended, in place of their notes: all or none.
	Put(ctx context.Context, records ...*forerun.Activation) error
	// Accept keeps what is known of an activation that has not ended; if the server dies, the next one ends it.
	Accept(ctx context.Context, a *forerun.Activation) error
	// Note keeps what is known of activations before they have an effect, as Accept does. If there is no room, it fails.
	Note(ctx context.Context, list ...*forerun.Activation) error
	// Notes are the commands by which Note keeps something, for a transaction of State.
	Notes(list ...*forerun.Activation) []state.Command
	// Forget drops what Accept kept.
	Forget(ctx context.Context, a *forerun.Activation) error
}

// Waiters knows the clients that wait for records (BLPOP).
type Waiters interface {
	// IsAwaited reports whether anybody waits for one of some records of a space.
	IsAwaited(keys []forerun.Key) bool
	// Settle returns when all clients that waited for these written records of a space have looked at them, or after a
	// while.
	Settle(ctx context.Context, keys []forerun.Key)
}

// Config is what a controller works with.
type Config struct {
	Worker  forerun.Worker
	Actions Actions
	Records Records
	State   state.Store // of functions; may be nil without Speculation
	Waiters Waiters     // for records of State; may be nil
	Bridge  *Bridge     // that the worker was given; may be nil without Speculation
	// Speculation holds the default settings of invocations whose request and action set none. Its Mode and AnyLoad are
	// also the upper bound for all.
	Speculation speculate.Settings
	Cache       bool                                                // rows of annotated functions stand for executions; needs State and Bridge
	Rows        memo.Options                                        // how many rows are kept
	Load        func(namespace string) forerun.Load                 // of the worker, which bounds how far; may be nil
	Spent       func() (s forerun.Spent, known bool)                // of the processors; may be nil
	Observe     func(*forerun.Activation)                           // called with each record once it is written; may be nil
	Suspended   func(namespace, action string, why *forerun.Reason) // called when results of an action are not used any more; may be nil
	Feed        *feed.Feed                                          // hears of what runs, and of each record once it is written; nil: nothing does
	// Admit counts an invocation that a program begins against the quotas of its namespace, until ended is called; may be nil.
	Admit func(ctx context.Context, namespace string) (ended func(), err error)
	Clock *clock.Clock // of records; nil: the machine's
}

// Controller drives the invocations of one server. Its methods may be called concurrently.
type Controller struct {
	Config
	tokens   *tokens
	programs programs
	digests  forerun.Digests
	tables   *allTables
	executor executor
	toll     toll
	claims   *claims
	begun    atomic.Uint64 // executions
	verified verifications
	sweeps   atomic.Int64 // that actions ask for by their changes; 0: none is under way
	ahead    shares       // speculative functions
	buffered shares       // bytes in columns
	inTurn   atomic.Bool  // the operator has turned speculation off
	uncached atomic.Bool  // the operator has turned the cache off
	closing  atomic.Bool  // no rehearsal begins any more
	closed   atomic.Bool  // no invocation begins any more
	busy     busy
	aside    *linger.Goroutines // for what an invocation does not wait for, or not under its lock
	open     context.Context
	shut     context.CancelFunc

	mu      sync.Mutex                          // guards the rest; taken after an execution's own lock
	running map[forerun.ActivationID]*execution // by the activations whose functions run
	going   map[*execution]bool                 // those that have slots
}

// New returns a controller.
func New(c Config) *Controller {
	if c.Clock == nil {
		c.Clock = clock.New(nil)
	}
	if c.Feed == nil {
		c.Feed = feed.New()
	}
	open, shut := context.WithCancel(context.Background())
	controller := &Controller{
		Config: c, tokens: newTokens(), tables: newTables(c.Rows), claims: newClaims(), toll: toll{spent: c.Spent, processors: runtime.GOMAXPROCS(0)},
		executor: executor{clock: c.Clock}, aside: linger.New(open.Done()), open: open, shut: shut, running: make(map[forerun.ActivationID]*execution), going: make(map[*execution]bool),
	}
	if c.Bridge != nil {
		c.Bridge.c = controller
	}
	if store, ok := c.State.(state.Announcer); ok && c.Cache {
		store.Announce(controller.tables.memo.Written)
	}
	return controller
}

// Speaker finds the activation for which a token speaks in a request. running is the activation out of whose sandbox the request came;
// "" if it came otherwise. At the door of a sandbox a token stands for the activation that runs there, with the rights of that one: a
// process that serves several activations may have made its client for the first of them, since in OpenWhisk all have one key. Any
// token of the same namespace will do. From elsewhere a token is accepted only if its action asks for that; the error says so.
func (c *Controller) Speaker(token string, running forerun.ActivationID) (s Speaker, ok bool, err error) {
	at := running
	if at == "" {
		uuid, _, _ := strings.Cut(token, ":")
		at = forerun.ActivationID(uuid)
	}
	s, ok = c.tokens.holder(at)
	if !ok || !c.tokens.issued(token, s.Namespace) {
		return Speaker{}, false, nil
	}
	if running == "" && !s.outside {
		return Speaker{}, false, forerun.Errorf(forerun.Unauthorized, "", "The key of a function is accepted from its own sandbox only. "+
			"To use it from elsewhere, set the annotation api-key-outside of its action to true.")
	}
	return s, true, nil
}

// VoidTokens makes the tokens of the activations of a namespace void that run now.
func (c *Controller) VoidTokens(namespace string) { c.tokens.revokeAll(namespace) }

// Toll is the processor time of an activation with speculation, as a multiple of the time without it, in the last trials
// under load; 0: too few trials. barred reports whether the processors are too busy for speculation. vain is the number
// of actions that do not speculate because it does not make their answers faster.
func (c *Controller) Toll() (cost float64, barred bool, vain int) { return c.toll.read() }

// LetAhead is the kill switch: it says whether invocations may speculate, within Speculation. Turned off, it also stops
// new speculative launches of running invocations.
func (c *Controller) LetAhead(may bool) { c.inTurn.Store(!may) }

// MayAhead is what LetAhead has said; before, they may.
func (c *Controller) MayAhead() bool { return !c.inTurn.Load() }

// Memo tells how the memo table fares.
func (c *Controller) Memo() memo.Stats { return c.tables.memo.Stats() }

// Close waits until the invocations under way have ended; when ctx is done first it gives them up, each with a record
// that says so. No other begins then: its records would find no store. It does not wait for rehearsals, which have no client.
func (c *Controller) Close(ctx context.Context) {
	defer c.shut()
	c.closing.Store(true)
	c.giveUp(func(e *execution) bool { return e.rehearsal != nil }, rehearsedUntilClosed)
	for range 2 { // the second time, those that have begun as the last one ended
		select {
		case <-c.busy.over(everywhere):
		case <-ctx.Done():
			c.end(context.Background(), everywhere, "The server was shut down before the activation ended.")
		}
		c.closed.Store(true)
	}
}

// Enter keeps EndNamespace of a namespace, and Close, from returning until leave is called: for who looks whether the tenant is there, and
// begins an invocation then.
func (c *Controller) Enter(namespace string) (leave func()) {
	c.busy.begin(namespace)
	return func() { c.busy.end(namespace) }
}

// EndNamespace forgets all lessons of a namespace and gives up all its invocations, each with a record that says why. It
// returns when no write of theirs is on its way to the store, or when ctx is done.
func (c *Controller) EndNamespace(ctx context.Context, namespace, reason string) {
	defer c.tables.forget(namespace)
	defer c.toll.gains.forget(namespace)
	c.EndInvocations(ctx, namespace, reason)
}

// EndInvocations is EndNamespace that forgets nothing.
func (c *Controller) EndInvocations(ctx context.Context, namespace, reason string) {
	c.end(ctx, namespace, reason)
}

// end gives up all that runs for a namespace, and returns when nothing of that is on its way any more, or ctx is done.
func (c *Controller) end(ctx context.Context, namespace, reason string) {
	for {
		c.giveUp(func(e *execution) bool { return namespace == everywhere || e.namespace == namespace }, reason)
		select {
		case <-c.busy.over(namespace):
			return
		case <-ctx.Done():
			return
		case <-time.After(endEvery): // an invocation that was admitted just before may have begun since
		}
	}
}

// endEvery is how often end looks for what has begun.
const endEvery = 100 * time.Millisecond

// giveUp gives up the executions that which holds for, and those that they began before they heard of it.
func (c *Controller) giveUp(which func(*execution) bool, reason string) {
	for {
		found := c.executions(which)
		if len(found) == 0 {
			return
		}
		for e := range found {
			e.tell(speculate.Cancelled{Error: reason})
		}
	}
}

// executions lists those that are not over, and that which holds for.
func (c *Controller) executions(which func(*execution) bool) map[*execution]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	set := make(map[*execution]bool)
	for e := range c.going {
		if which(e) {
			set[e] = true
		}
	}
	return set
}

func (c *Controller) executionOf(id forerun.ActivationID) *execution {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[id]
}

func (c *Controller) setRunning(id forerun.ActivationID, e *execution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[id] = e
}

func (c *Controller) clearRunning(id forerun.ActivationID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
}

func (c *Controller) setGoing(e *execution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.going[e] = true
}

func (c *Controller) clearGoing(e *execution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.going, e)
}
