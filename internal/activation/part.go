package activation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// How the records of a tenant are held to their part of what the tenant may store. A record is owed to an activation that has run, so the store
// refuses none. The keeper removes the oldest, but a burst can be faster than that. So records may take twice their part for a moment:
//
//  1. While they take more, the tenant begins nothing new (Admit).
//  2. A record by which they would take more is stored without its logs, or if that does not suffice, without its result, too.
//  3. As soon as they take more than their part, the keeper removes the oldest, and does not wait for its next look.

const (
	leastBurst = 64 << 10               // bytes that records may take for a moment beyond their part, however small that is
	hurryRest  = 250 * time.Millisecond // of the keeper, behind what it was hurried to
)

// hurried is what a Keeper knows of tenants whose records come fast.
type hurried struct {
	mu      sync.Mutex       // guards the rest
	writing map[string]int64 // bytes of large records that are being written, by namespace
	over    map[string]bool  // namespaces whose oldest records are to be removed at once
	wake    chan struct{}    // has room for one
}

// part is what the records of a namespace take, which part of the quota is theirs, and what they may take for a moment; in bytes.
func (k *Keeper) part(namespace string) (stored, part, most int64) {
	all, allowed := k.store.Stored(namespace)
	part = allowed / state.RecordsPart
	return all[state.Records], part, part + max(part, leastBurst)
}

// Admit refuses what would make a record in a namespace whose records take too much. The error is forerun.OverQuota.
func (k *Keeper) Admit(namespace string) error {
	stored, part, most := k.part(namespace)
	if stored <= part {
		return nil
	}
	k.hurry(namespace)
	if stored <= most {
		return nil
	}
	return forerun.Errorf(forerun.OverQuota, "storage", "The activation records of the tenant %s take %s, and may take %s. The oldest are being removed: try again.",
		namespace, state.Bytes(stored), state.Bytes(part))
}

// take takes room for a large record, which is given back when it is written. It returns false if there is none.
func (k *Keeper) take(namespace string, size int64) bool {
	stored, part, most := k.part(namespace)
	k.hurried.mu.Lock()
	after := stored + k.hurried.writing[namespace] + size
	fits := size <= part && after <= most
	if fits {
		k.hurried.writing[namespace] += size
	}
	k.hurried.mu.Unlock()
	if after > part {
		k.hurry(namespace)
	}
	return fits
}

func (k *Keeper) giveBack(namespace string, size int64) {
	k.hurried.mu.Lock()
	defer k.hurried.mu.Unlock()
	if k.hurried.writing[namespace] -= size; k.hurried.writing[namespace] == 0 {
		delete(k.hurried.writing, namespace)
	}
}

// hurry has the oldest records of a namespace removed soon.
func (k *Keeper) hurry(namespace string) {
	k.hurried.mu.Lock()
	k.hurried.over[namespace] = true
	k.hurried.mu.Unlock()
	select {
	case k.hurried.wake <- struct{}{}:
	default: // it knows
	}
}

// trimHurried removes what it was hurried to, and rests.
func (k *Keeper) trimHurried(ctx context.Context) {
	k.hurried.mu.Lock()
	over := slices.Collect(maps.Keys(k.hurried.over))
	clear(k.hurried.over)
	k.hurried.mu.Unlock()
	for _, namespace := range over {
		k.report(ctx, k.trimNamespace(ctx, namespace))
	}
	select {
	case <-ctx.Done():
	case <-time.After(hurryRest):
	}
}

// cutByPart is before when the records of a namespace take more than their part, if that is later than cut. It drops a tenth more, so as not
// to drop again soon.
func (k *Keeper) cutByPart(ctx context.Context, namespace string, cut time.Time) (time.Time, error) {
	stored, part, _ := k.part(namespace)
	if stored <= part {
		return cut, nil
	}
	excess := stored - part/10*9
	prefix := idKey(namespace, "")
	for entry, err := range k.store.Scan(ctx, state.Range{Space: space, From: prefix, To: after(prefix)}) {
		if err != nil {
			return cut, err
		}
		if excess -= int64(3*len(entry.Name) + len(entry.Data)); excess > 0 { // it has two index entries
			continue
		}
		if queued, ok := timeOf(forerun.ActivationID(entry.Name[len(prefix):])); ok && queued.After(cut) {
			cut = queued.Add(time.Millisecond)
		}
		return cut, nil
	}
	return k.now(), nil
}

// fit makes the form in which a record is to be stored. taken is the room that was taken for it, to be given back.
func (l *Log) fit(b *buffer, a *forerun.Activation) (data []byte, taken int64, err error) {
	for _, form := range []func(*forerun.Activation, *Keeper) *forerun.Activation{asItIs, withoutLogs, withoutResult} {
		if data, err = b.record(form(a, l.keeper)); err != nil {
			return nil, 0, err
		}
		if len(data) <= largeRecord || l.keeper == nil {
			return data, 0, nil
		}
		if size := int64(len(data)); l.keeper.take(a.Namespace, size) {
			return data, size, nil
		}
	}
	return data, 0, nil
}

func asItIs(a *forerun.Activation, _ *Keeper) *forerun.Activation { return a }

// withoutLogs is a record that says why its logs are not there. A program's are the ids of its activations, which stay.
func withoutLogs(a *forerun.Activation, k *Keeper) *forerun.Activation {
	if len(a.Logs) == 0 || string(forerun.Lookup(a.Annotations, "kind")) == `"sequence"` {
		return a
	}
	cut := *a
	cut.Logs = []string{fmt.Sprintf("%s stderr: The logs were not kept: %s", a.End.UTC().Format(time.RFC3339Nano), k.tooMuch(a.Namespace))}
	return &cut
}

// withoutResult is a record that says why its result and logs are not there. It does not tell of a success, for whoever reads it would take the
// error for what the function returned.
func withoutResult(a *forerun.Activation, k *Keeper) *forerun.Activation {
	logs := withoutLogs(a, k).Logs
	cut := summary(a)
	cut.Logs = logs
	if cut.Status == forerun.Success {
		cut.Status = forerun.DeveloperError
	}
	cut.Result, _ = json.Marshal(map[string]string{"error": "The result was not kept: " + k.tooMuch(a.Namespace)}) // strings always marshal
	return cut
}

func (k *Keeper) tooMuch(namespace string) string {
	_, part, _ := k.part(namespace)
	return fmt.Sprintf("with it the activation records of the tenant would take more than their part of what it may store (%s).", state.Bytes(part))
}
