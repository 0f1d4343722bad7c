package registry

import (
	"context"
	"iter"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Timer is the schedule of a trigger, as package timer encodes it. It goes with its trigger.
type Timer struct {
	Trigger forerun.Name
	Data    []byte
	version forerun.Version
}

// Timer finds the timer of a trigger, past any cache. The error is forerun.NotFound if it has none.
func (r *Registry) Timer(ctx context.Context, trigger forerun.Name) (Timer, error) {
	records, err := r.get(ctx, timerRecord(trigger))
	if err != nil {
		return Timer{}, err
	}
	if records[0].Version == 0 {
		return Timer{}, forerun.Errorf(forerun.NotFound, trigger.String(), "could not find trigger %s in the database", trigger)
	}
	return Timer{trigger, records[0].Data, records[0].Version}, nil
}

// Timers walks the timers of all tenants.
func (r *Registry) Timers(ctx context.Context) iter.Seq2[Timer, error] {
	return func(yield func(Timer, error) bool) {
		for entry, err := range r.store.Scan(ctx, under("timer/")) {
			t := Timer{Data: entry.Data, version: entry.Version}
			if err == nil {
				t.Trigger, _ = timerOfRecord(entry.Name) // the range holds no other records
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// PutTimer gives a trigger a timer, or changes it. change makes the new one from the old, which is nil if there is none; it may
// be called more than once. The error is forerun.NotFound if there is no such trigger, TooMany if the tenant may have no more timers,
// or change's.
func (r *Registry) PutTimer(ctx context.Context, trigger forerun.Name, change func(old []byte) ([]byte, error)) error {
	_, err := again(trigger, func() (struct{}, error) { return struct{}{}, r.tryPutTimer(ctx, trigger, change) })
	return err
}

func (r *Registry) tryPutTimer(ctx context.Context, trigger forerun.Name, change func(old []byte) ([]byte, error)) error {
	f, err := r.findIn(ctx, Triggers, trigger)
	if err != nil {
		return err
	}
	records, err := r.get(ctx, timerRecord(trigger), timersRecord(trigger.Namespace))
	if err != nil {
		return err
	}
	old, all := records[0], records[1]
	var t state.Txn
	t.Expect = append(f.expect(trigger), unchanged(timerRecord(trigger), old.Version))
	if old.Version == 0 {
		if err := r.mayTime(ctx, trigger.Namespace); err != nil {
			return err
		}
		t.Expect = append(t.Expect, unchanged(timersRecord(trigger.Namespace), all.Version)) // what was counted is so still
		t.Ops = append(t.Ops, set(timersRecord(trigger.Namespace), nil))
	}
	data, err := change(old.Data)
	if err != nil {
		return err
	}
	t.Ops = append(t.Ops, set(timerRecord(trigger), data))
	_, err = r.store.Apply(ctx, t)
	return err
}

// mayTime holds a tenant to the quota of timers. A namespace without a tenant, which only tests have, has none.
func (r *Registry) mayTime(ctx context.Context, namespace string) error {
	t, err := r.Tenant(ctx, namespace)
	if forerun.KindOf(err) == forerun.NotFound || err == nil && t.Limits.TimedTriggers == NoLimit {
		return nil
	}
	if err != nil {
		return err
	}
	count := 1
	for _, err := range r.store.Scan(ctx, under("timer/"+namespace+"/")) {
		if err != nil {
			return err
		}
		count++
	}
	if count > t.Limits.TimedTriggers {
		return forerun.Errorf(forerun.TooMany, namespace, "Too many triggers have a timer (count: %d, allowed: %d): delete some first.", count, t.Limits.TimedTriggers)
	}
	return nil
}

// AdvanceTimer replaces what is stored of a timer that was found, and reports whether it could: not if it was changed or deleted meanwhile.
func (r *Registry) AdvanceTimer(ctx context.Context, t Timer, data []byte) (bool, error) {
	_, err := r.store.Apply(ctx, state.Txn{
		Expect: []state.Expect{unchanged(timerRecord(t.Trigger), t.version)},
		Ops:    []state.Command{set(timerRecord(t.Trigger), data)},
	})
	if isConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// DeleteTimer removes the timer of a trigger, if it has one.
func (r *Registry) DeleteTimer(ctx context.Context, trigger forerun.Name) error {
	_, err := r.store.Apply(ctx, state.Txn{Ops: []state.Command{del(timerRecord(trigger))}})
	return err
}

// WatchTimers has f called with the trigger of each timer that changes, until stop is called. f must not block, nor call the registry.
func (r *Registry) WatchTimers(f func(trigger forerun.Name)) (stop func()) {
	return r.store.Watch(func(key forerun.Key, _ forerun.Version) {
		if key.Space != space {
			return
		}
		if trigger, ok := timerOfRecord(key.Name); ok {
			f(trigger)
		}
	})
}

func timerRecord(trigger forerun.Name) string {
	return "timer/" + trigger.Namespace + "/" + trigger.Entity
}

func timersRecord(namespace string) string { return "timers/" + namespace + "/" }

// timerOfRecord is the inverse of timerRecord.
func timerOfRecord(record string) (forerun.Name, bool) {
	rest, ok := strings.CutPrefix(record, "timer/")
	if !ok {
		return forerun.Name{}, false
	}
	namespace, entity, ok := strings.Cut(rest, "/")
	return forerun.Name{Namespace: namespace, Entity: entity}, ok
}
