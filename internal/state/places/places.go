// Package places shares the server's processors between the tenants whose
// commands on state compute for long.
//
// All but one of the processors are places. Work that goes on for more than about
// a tenth of a millisecond needs one. So a processor is left for all else, and
// short work needs nothing. While turns of several tenants wait, the tenants get
// places in order. A turn hands its place on after a slice.
//
// A place is not a lock: it can be given up at any time. Its holder may wait for
// a lock whose holder waits for a place. So if no place has changed hands for a
// while, the next waiting turn goes on without one.
package places

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Step is how many bytes of work are done between two calls of Turn.Work: about a tenth of a millisecond.
const Step = 64 << 10

const (
	slice   = 2 * time.Millisecond   // how long a turn keeps its place while others wait
	stalled = 100 * time.Millisecond // time without a change of places after which the next waiting turn goes on
	light   = time.Millisecond       // a small step that comes later than this after the one before needs no place
)

// Places are the places of a server.
type Places struct {
	begun  time.Time    // the zero of now
	waits  atomic.Int64 // turns that wait
	waited atomic.Int64 // since the start

	mu      sync.Mutex // guards the rest, and Turn.tenant
	free    int        // negative: more went on than there are places
	tenants []*tenant  // that wait, the next one first
	changes int        // of places
	watched bool       // a watch runs
}

// tenant is the turns of one tenant that wait, in their order.
type tenant struct {
	name  string
	turns []*waiting
}

type waiting struct {
	turn  *Turn
	ready chan struct{} // closed when it has a place
}

// New returns n places; 0: for all processors but one.
func New(n int) *Places {
	if n == 0 {
		n = max(1, runtime.GOMAXPROCS(0)-1)
	}
	return &Places{begun: time.Now(), free: n}
}

// Waited is how often a turn has begun to wait for a place.
func (p *Places) Waited() int { return int(p.waited.Load()) }

// Turn is the work of a connection, or of a command. Its methods may be called concurrently.
type Turn struct {
	places *Places
	has    atomic.Bool
	since  atomic.Int64 // of the last step, or of the slice, in nanoseconds
}

func (p *Places) now() int64 { return time.Since(p.begun).Nanoseconds() }

// Turn begins a turn, without a place.
func (p *Places) Turn() *Turn { return &Turn{places: p} }

type turnKey struct{}

// With returns a context whose commands belong to a turn.
func With(ctx context.Context, t *Turn) context.Context { return context.WithValue(ctx, turnKey{}, t) }

// From returns the turn of a context; nil if it has none.
func From(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}

// Work is called once for each Step, before or after its work, with the number of bytes. It waits while the work needs a place and there is none. The
// error is that of the context.
func (t *Turn) Work(ctx context.Context, tenant string, bytes int) error {
	now := t.places.now()
	before := t.since.Load()
	if t.has.Load() {
		if now-before < slice.Nanoseconds() {
			return nil
		}
		t.since.Store(now)
		if t.places.waits.Load() == 0 {
			runtime.Gosched() // for what else is ready
			return nil
		}
		t.Leave()
	} else if t.since.Store(now); now-before > light.Nanoseconds() && bytes < 2*Step {
		return nil
	}
	return t.enter(ctx, tenant)
}

// enter waits for a place.
func (t *Turn) enter(ctx context.Context, tenant string) error {
	p := t.places
	p.mu.Lock()
	if p.free > 0 && len(p.tenants) == 0 {
		p.free--
		t.has.Store(true)
		p.mu.Unlock()
		return nil
	}
	w := p.queue(t, tenant)
	p.mu.Unlock()
	select {
	case <-w.ready:
		t.since.Store(p.now())
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(w, tenant)
	return context.Cause(ctx)
}

// Leave gives up the place of a turn, if it has one.
func (t *Turn) Leave() {
	if !t.has.Load() {
		return
	}
	p := t.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if !t.has.Swap(false) {
		return
	}
	p.free++
	p.changes++
	for p.free > 0 && len(p.tenants) > 0 {
		p.grant()
	}
}

// queue adds a turn to those of its tenant that wait.
func (p *Places) queue(t *Turn, name string) *waiting {
	w := &waiting{t, make(chan struct{})}
	i := slices.IndexFunc(p.tenants, func(other *tenant) bool { return other.name == name })
	if i < 0 {
		i = len(p.tenants)
		p.tenants = append(p.tenants, &tenant{name: name})
	}
	p.tenants[i].turns = append(p.tenants[i].turns, w)
	p.waits.Add(1)
	p.waited.Add(1)
	if !p.watched {
		p.watched = true
		p.watch()
	}
	return w
}

// remove takes a waiting turn out of the queue. A turn that has its place already gives it up with Leave.
func (p *Places) remove(w *waiting, name string) {
	i := slices.IndexFunc(p.tenants, func(other *tenant) bool { return other.name == name })
	if i < 0 {
		return
	}
	its := p.tenants[i]
	j := slices.Index(its.turns, w)
	if j < 0 {
		return
	}
	p.waits.Add(-1)
	if its.turns = slices.Delete(its.turns, j, j+1); len(its.turns) == 0 {
		p.tenants = slices.Delete(p.tenants, i, i+1)
	}
}

// grant gives a place to the next waiting turn. Its tenant goes to the end of the queue.
func (p *Places) grant() {
	its := p.tenants[0]
	w := its.turns[0]
	p.tenants = append(p.tenants[:0], p.tenants[1:]...)
	if its.turns = its.turns[1:]; len(its.turns) > 0 {
		p.tenants = append(p.tenants, its)
	}
	p.free--
	p.changes++
	p.waits.Add(-1)
	w.turn.has.Store(true)
	close(w.ready)
}

// watch lets the next waiting turn go on if no place has changed hands for a while. It ends with the last waiting turn.
func (p *Places) watch() {
	changes := p.changes
	time.AfterFunc(stalled, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.tenants) > 0 && p.changes == changes {
			p.grant()
		}
		if p.watched = len(p.tenants) > 0; p.watched {
			p.watch()
		}
	})
}
