package timer

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// Firing is one firing of a trigger. It may be asked for again, after the server was killed: ID and Moment are the same then.
type Firing struct {
	Trigger forerun.Name
	ID      string    // of the timer
	Moment  time.Time // that it is for
	First   time.Time // the first moment that had passed without a firing; mostly Moment itself
	Payload []byte    // a canonical object
	Rules   bool      // the rules of the trigger go with it, after the firing
	Delete  bool      // the trigger goes after the firing
}

// Loop fires the triggers of a server. Each tenant's are fired one after the other, and no tenant waits for another's.
type Loop struct {
	timers *registry.Registry
	fire   func(context.Context, Firing) error
	now    func() time.Time
	log    *slog.Logger

	unwatch func()
	cancel  context.CancelFunc
	running sync.WaitGroup // the loop
	serving sync.WaitGroup // what fires
	wake    chan struct{}  // holds one value when something has changed

	mu      sync.Mutex // guards the rest
	changed map[forerun.Name]bool
	planned map[forerun.Name]time.Time // when the record of a trigger is looked at
	queue   queue                      // of planned; an entry that differs from planned is void
	due     map[string][]forerun.Name  // triggers to be fired, by tenant; a tenant who is here is being served
}

// NewLoop returns a loop over the timers of a registry. fire fires a trigger, once for each Firing.ID and Moment however often it is called. If
// its error is forerun.NotFound or Unauthorized, there is nothing to fire any more; after another one it is called again, and so a suspended
// tenant's timers wait (Forbidden). To now the time goes at least at nine tenths of its speed, and at most at eleven tenths.
func NewLoop(timers *registry.Registry, fire func(context.Context, Firing) error, now func() time.Time, log *slog.Logger) *Loop {
	return &Loop{
		timers: timers, fire: fire, now: now, log: log, wake: make(chan struct{}, 1),
		changed: make(map[forerun.Name]bool), planned: make(map[forerun.Name]time.Time), due: make(map[string][]forerun.Name),
	}
}

// Start reads the timers, and fires until Close.
func (l *Loop) Start(ctx context.Context) error {
	if err := l.load(ctx); err != nil {
		return err
	}
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.running.Go(func() { l.run(ctx) })
	return nil
}

// Close ends the loop. A firing under way is given up where it waits, and the next server finishes it.
func (l *Loop) Close() error {
	l.unwatch()
	l.cancel()
	l.running.Wait()
	l.serving.Wait()
	return nil
}

// load plans all timers, and those that change from now on.
func (l *Loop) load(ctx context.Context) error {
	l.unwatch = l.timers.WatchTimers(l.note)
	for stored, err := range l.timers.Timers(ctx) {
		if err != nil {
			l.unwatch()
			return err
		}
		l.note(stored.Trigger)
	}
	return nil
}

// note says that a timer has changed.
func (l *Loop) note(trigger forerun.Name) {
	l.mu.Lock()
	l.changed[trigger] = true
	l.mu.Unlock()
	l.rouse()
}

// rouse has the loop take a step.
func (l *Loop) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *Loop) run(ctx context.Context) {
	for {
		wait := time.NewTimer(l.step(ctx))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-l.wake:
			wait.Stop()
		case <-wait.C:
		}
	}
}

// The least and the longest time between two steps.
const (
	shortest = time.Millisecond
	longest  = time.Hour
)

// step plans what has changed and has the due triggers fired. It returns how long to sleep: less than until the next one is due, as
// the time may go faster.
func (l *Loop) step(ctx context.Context) time.Duration {
	l.mu.Lock()
	changed := l.changed
	l.changed = make(map[forerun.Name]bool)
	l.mu.Unlock()
	for trigger := range changed {
		l.plan(trigger, l.nextOf(ctx, trigger))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		first, now := l.queue[0], l.now()
		if at, ok := l.planned[first.trigger]; !ok || !at.Equal(first.at) {
			heap.Pop(&l.queue)
			continue
		}
		if first.at.After(now) {
			d := first.at.Sub(now)
			return min(max(d-d/11, shortest), longest)
		}
		heap.Pop(&l.queue)
		delete(l.planned, first.trigger)
		l.hand(ctx, first.trigger)
	}
	return longest
}

// retryAfter is how long after a failure a timer is looked at again.
const retryAfter = 10 * time.Second

// nextOf reads when a trigger is due; the zero time if never.
func (l *Loop) nextOf(ctx context.Context, trigger forerun.Name) time.Time {
	_, t, err := l.read(ctx, trigger)
	switch {
	case forerun.KindOf(err) == forerun.NotFound:
		return time.Time{}
	case err != nil:
		l.complain(ctx, trigger, err)
		return l.now().Add(retryAfter)
	case t.Next == 0:
		return time.Time{}
	}
	return time.UnixMilli(t.Next)
}

func (l *Loop) read(ctx context.Context, trigger forerun.Name) (registry.Timer, *Timer, error) {
	stored, err := l.timers.Timer(ctx, trigger)
	if err != nil {
		return stored, nil, err
	}
	t, err := Decode(stored.Data)
	return stored, t, err
}

// plan says when a trigger is looked at; the zero time: never.
func (l *Loop) plan(trigger forerun.Name, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.planned, trigger)
	if !at.IsZero() {
		l.planned[trigger] = at
		heap.Push(&l.queue, entry{trigger, at})
	}
}

// hand has a trigger fired in its tenant's turn.
func (l *Loop) hand(ctx context.Context, trigger forerun.Name) {
	waiting, served := l.due[trigger.Namespace]
	l.due[trigger.Namespace] = append(waiting, trigger)
	if !served {
		l.serving.Go(func() { l.serve(ctx, trigger.Namespace) })
	}
}

// serve fires the triggers of a tenant that are due.
func (l *Loop) serve(ctx context.Context, namespace string) {
	for {
		l.mu.Lock()
		waiting := l.due[namespace]
		if len(waiting) == 0 || ctx.Err() != nil {
			delete(l.due, namespace)
			l.mu.Unlock()
			return
		}
		l.due[namespace] = waiting[1:]
		l.mu.Unlock()
		if err := l.fireOne(ctx, waiting[0]); err != nil {
			l.complain(ctx, waiting[0], err)
			l.plan(waiting[0], l.now().Add(retryAfter))
			l.rouse()
		}
	}
}

func (l *Loop) complain(ctx context.Context, trigger forerun.Name, err error) {
	if ctx.Err() == nil && forerun.KindOf(err) != forerun.Forbidden {
		l.log.Error("a timed trigger could not be fired; it is tried again", "trigger", trigger.String(), "error", err)
	}
}

// fireOne fires a trigger if it is due, and notes the next moment. A change of the timer meanwhile wins.
func (l *Loop) fireOne(ctx context.Context, trigger forerun.Name) error {
	stored, t, err := l.read(ctx, trigger)
	if err != nil {
		return unlessGone(err)
	}
	now := l.now()
	moment, first, ok := t.Due(now)
	if !ok {
		return nil
	}
	f := Firing{Trigger: trigger, ID: t.ID, Moment: moment, First: first, Payload: t.Payload()}
	f.Delete, f.Rules = t.Deletes()
	if err := l.fire(ctx, f); err != nil || f.Delete {
		return unlessGone(err)
	}
	t.Advance(moment, now)
	data, err := t.Encode()
	if err == nil {
		_, err = l.timers.AdvanceTimer(ctx, stored, data)
	}
	return err
}

// unlessGone drops the error that says that the trigger, or its tenant, is there no more.
func unlessGone(err error) error {
	if kind := forerun.KindOf(err); kind == forerun.NotFound || kind == forerun.Unauthorized {
		return nil
	}
	return err
}

type entry struct {
	trigger forerun.Name
	at      time.Time
}

// queue is a heap, the earliest entry first.
type queue []entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(entry)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
