package gateway

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
)

// Quotas hold tenants to their limits. Its methods may be called concurrently.
type Quotas struct {
	tenants *registry.Registry
	room    func(namespace string) error
	waiting func(namespace string) int
	now     func() time.Time
	meters  sync.Map // of *meter by namespace
}

// NewQuotas returns meters for the tenants of a registry that all stand at zero. room, if it is not nil, is asked before anything
// begins: its error says that there is no room for a record of the tenant. waiting, if it is not nil, tells how many of a tenant's activations
// wait for a sandbox.
func NewQuotas(tenants *registry.Registry, room func(namespace string) error, waiting func(namespace string) int) *Quotas {
	return &Quotas{tenants: tenants, room: room, waiting: waiting, now: time.Now}
}

// meter counts what one tenant does.
type meter struct {
	invocations, fires window
	flying             atomic.Int64        // invocations that have not ended
	ahead              atomic.Int64        // that are not counted yet
	bodies             atomic.Int64        // bytes of large bodies whose requests have not been answered
	apart              *semaphore.Weighted // bytes of large bodies that are taken apart
	unread             atomic.Int64        // bytes of large answers that clients have not read
}

// window counts within a minute of the clock, as OpenWhisk does: the minute in the upper half, the count in the lower.
type window struct{ state atomic.Uint64 }

// take takes one back that was counted in a minute.
func (w *window) take(minute uint32) {
	for {
		old := w.state.Load()
		if uint32(old>>32) != minute || uint32(old) == 0 || w.state.CompareAndSwap(old, old-1) {
			return
		}
	}
}

// count is how many were counted in a minute.
func (w *window) count(minute uint32) int {
	if state := w.state.Load(); uint32(state>>32) == minute {
		return int(uint32(state))
	}
	return 0
}

// add counts one more in a minute and returns how many that makes.
func (w *window) add(minute uint32) int {
	for {
		old := w.state.Load()
		next := old + 1
		if uint32(old>>32) != minute {
			next = uint64(minute)<<32 | 1
		}
		if w.state.CompareAndSwap(old, next) {
			return int(uint32(next))
		}
	}
}

// Flight is an invocation that was admitted.
type Flight struct {
	quotas  *Quotas
	meter   *meter
	allowed int    // in a minute
	minute  uint32 // in which it was counted
	ahead   bool   // it is not counted yet
}

// Begin says that the activation that called does not run ahead any more: the invocation counts as any other from now on. It may be
// said more than once.
func (f *Flight) Begin() {
	if !f.ahead {
		return
	}
	f.ahead = false
	f.meter.ahead.Add(-1)
	f.meter.flying.Add(1)
	f.minute, _ = f.quotas.charge(&f.meter.invocations, f.allowed) // there was room when it was admitted
}

// Land says that the invocation has ended.
func (f *Flight) Land() {
	f.Begin()
	f.meter.flying.Add(-1)
}

// Undo says, in place of Land, that there never was one.
func (f *Flight) Undo() {
	if f.ahead {
		f.meter.ahead.Add(-1)
		return
	}
	f.Land()
	f.meter.invocations.take(f.minute)
}

// Ahead admits an invocation that an activation asks for which runs ahead, if there is room beside all that is ahead. It takes none from
// those whose turn it is: it counts once it Begins.
func (q *Quotas) Ahead(ctx context.Context, namespace string) (*Flight, error) {
	limits, m, err := q.find(ctx, namespace)
	if err != nil {
		return nil, err
	}
	ahead := int(m.ahead.Add(1)) - 1
	minute := uint32(q.now().Unix() / 60)
	if int(m.flying.Load())+ahead >= limits.ConcurrentInvocations ||
		limits.InvocationsPerMinute != registry.NoLimit && m.invocations.count(minute)+ahead >= limits.InvocationsPerMinute {
		m.ahead.Add(-1)
		return nil, tooMany(1, "Too many speculative requests are under way.")
	}
	return &Flight{quotas: q, meter: m, allowed: limits.InvocationsPerMinute, ahead: true}, nil
}

// Invocation admits an invocation of a tenant, which is counted until its Flight lands. The error is forerun.TooMany, in
// OpenWhisk's words, Unauthorized if the tenant was deleted meanwhile, Forbidden if it is suspended, or an error of room.
func (q *Quotas) Invocation(ctx context.Context, namespace string) (*Flight, error) {
	limits, m, err := q.find(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if err := q.Unread(namespace); err != nil {
		return nil, err
	}
	minute, err := q.charge(&m.invocations, limits.InvocationsPerMinute)
	if err != nil {
		return nil, err
	}
	if q.waiting != nil && limits.QueuedInvocations != registry.NoLimit {
		if count := q.waiting(namespace); count >= limits.QueuedInvocations {
			return nil, tooMany(1, "Too many requests wait for a sandbox (count: %d, allowed: %d).", count, limits.QueuedInvocations)
		}
	}
	if before := int(m.flying.Add(1)) - 1; before >= limits.ConcurrentInvocations {
		m.flying.Add(-1)
		return nil, tooMany(1, "Too many concurrent requests in flight (count: %d, allowed: %d).", before, limits.ConcurrentInvocations)
	}
	return &Flight{quotas: q, meter: m, allowed: limits.InvocationsPerMinute, minute: minute}, nil
}

// Fire admits the firing of a trigger. The errors are those of Invocation.
func (q *Quotas) Fire(ctx context.Context, namespace string) error {
	limits, m, err := q.find(ctx, namespace)
	if err != nil {
		return err
	}
	_, err = q.charge(&m.fires, limits.FiresPerMinute)
	return err
}

// Forget drops the meters of a tenant that was deleted.
func (q *Quotas) Forget(namespace string) { q.meters.Delete(namespace) }

func (q *Quotas) find(ctx context.Context, namespace string) (registry.Limits, *meter, error) {
	if q.room != nil {
		if err := q.room(namespace); err != nil {
			return registry.Limits{}, nil, err
		}
	}
	tenant, err := q.tenants.Tenant(ctx, namespace)
	if err != nil {
		if forerun.KindOf(err) == forerun.NotFound {
			err = invalidKey()
		}
		return registry.Limits{}, nil, err
	}
	return tenant.Limits, q.meter(namespace), tenant.Active()
}

func (q *Quotas) meter(namespace string) *meter {
	m, ok := q.meters.Load(namespace)
	if !ok {
		m, _ = q.meters.LoadOrStore(namespace, &meter{apart: semaphore.NewWeighted(maxApart)})
	}
	return m.(*meter)
}

// charge counts one more in the minute that is, if there is a limit; else the minute is 0.
func (q *Quotas) charge(w *window, allowed int) (minute uint32, err error) {
	if allowed == registry.NoLimit {
		return 0, nil
	}
	now := q.now().Unix()
	minute = uint32(now / 60)
	if count := w.add(minute); count > allowed {
		return minute, tooMany(60-now%60, "Too many requests in the last minute (count: %d, allowed: %d).", count, allowed)
	}
	return minute, nil
}

// throttled is a refusal that says when to come back.
type throttled struct {
	error
	after string // seconds
}

func (t *throttled) Unwrap() error { return t.error }

func tooMany(after int64, format string, args ...any) error {
	return &throttled{forerun.Errorf(forerun.TooMany, "", format, args...), strconv.FormatInt(after, 10)}
}
