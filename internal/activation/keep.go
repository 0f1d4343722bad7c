package activation

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Retention says how long records are kept.
type Retention struct {
	Age   time.Duration // at least; 0: whatever their age
	Bytes int64         // the newest ones of a namespace that take so much on disk, about; 0: whatever they take
}

// keepInterval is the time between two looks of a Keeper.
const keepInterval = 15 * time.Second

// Keeper removes records that are not to be kept any more. It drops ranges of the log, whose names are in the order of time.
type Keeper struct {
	store   Droppable
	keep    Retention
	now     func() time.Time
	log     *slog.Logger
	hurried hurried
}

// Droppable is a store that can remove ranges of records (embedded.Store).
type Droppable interface {
	state.Store
	Drop(ctx context.Context, ranges ...state.Range) error
	Size(ctx context.Context, r state.Range) (uint64, error)
	Stored(namespace string) (stored state.Stored, most int64)
}

// NewKeeper returns a keeper of the log in a store, to whom now is the time.
func NewKeeper(store Droppable, keep Retention, now func() time.Time, log *slog.Logger) *Keeper {
	return &Keeper{
		store: store, keep: keep, now: now, log: log,
		hurried: hurried{writing: make(map[string]int64), over: make(map[string]bool), wake: make(chan struct{}, 1)},
	}
}

// Run removes records until ctx is done.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(keepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.report(ctx, k.trim(ctx))
		case <-k.hurried.wake:
			k.trimHurried(ctx)
		}
	}
}

func (k *Keeper) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		k.log.Error("old activations could not be removed; it is tried again", "error", err)
	}
}

// trim looks at each namespace once.
func (k *Keeper) trim(ctx context.Context) error {
	for from := "time/"; ; {
		name, err := k.first(ctx, from, "time0")
		if err != nil || name == "" {
			return err
		}
		_, rest, _ := strings.Cut(name, "/")
		namespace, _, _ := strings.Cut(rest, "/")
		if err := k.trimNamespace(ctx, namespace); err != nil {
			return err
		}
		from = "time/" + namespace + "0" // '0' follows '/'
	}
}

// first is the first name in a range of the log; empty if there is none.
func (k *Keeper) first(ctx context.Context, from, to string) (string, error) {
	for entry, err := range k.store.Scan(ctx, state.Range{Space: space, From: from, To: to}) {
		return entry.Name, err
	}
	return "", nil
}

func (k *Keeper) trimNamespace(ctx context.Context, namespace string) error {
	prefix := timePrefix(namespace)
	name, err := k.first(ctx, prefix, after(prefix))
	if err != nil {
		return err
	}
	oldest, ok := started(name, prefix)
	if !ok {
		return nil // it has just been removed
	}
	cut := k.cutByAge(oldest)
	if k.keep.Bytes > 0 {
		cut, err = k.cutByBytes(ctx, namespace, oldest, cut, k.keep.Bytes)
	}
	if err == nil {
		cut, err = k.cutByPart(ctx, namespace, cut)
	}
	if err != nil {
		return err
	}
	if cut.IsZero() {
		return nil
	}
	return k.drop(ctx, namespace, cut)
}

// cutByAge is before when records are too old. It lets a few wait, so that a range is dropped only now and then.
func (k *Keeper) cutByAge(oldest time.Time) time.Time {
	cut := k.now().Add(-k.keep.Age)
	if k.keep.Age == 0 || cut.Sub(oldest) < min(time.Hour, k.keep.Age/100) {
		return time.Time{}
	}
	return cut
}

// cutByBytes is before when records are too many, if that is later than cut. It drops a tenth more, so as not to drop again soon.
func (k *Keeper) cutByBytes(ctx context.Context, namespace string, oldest, cut time.Time, most int64) (time.Time, error) {
	low := oldest
	if cut.After(low) {
		low = cut
	}
	size, err := k.since(ctx, namespace, low)
	if err != nil || size <= most {
		return cut, err
	}
	high := k.now()
	for high.Sub(low) > time.Millisecond {
		middle := low.Add(high.Sub(low) / 2)
		if size, err = k.since(ctx, namespace, middle); err != nil {
			return cut, err
		}
		if size > most/10*9 {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}

// since is what the records since a time take.
func (k *Keeper) since(ctx context.Context, namespace string, t time.Time) (int64, error) {
	size, err := k.store.Size(ctx, state.Range{Space: space, From: idKey(namespace, firstID(t)), To: after("id/" + namespace + "/")})
	return int64(size), err
}

// drop removes the records before a time. Those that were queued before it and began behind it lose their index entries the
// next time; until then lists leave them out.
func (k *Keeper) drop(ctx context.Context, namespace string, cut time.Time) error {
	ranges := []state.Range{
		{Space: space, From: "id/" + namespace + "/", To: idKey(namespace, firstID(cut))},
		{Space: space, From: timePrefix(namespace), To: timePrefix(namespace) + stamp(cut)},
	}
	all := "name/" + namespace + "/"
	for from := all; ; {
		name, err := k.first(ctx, from, after(all))
		if err != nil {
			return err
		}
		if len(name) <= len(all)+tailLength {
			break
		}
		prefix := name[:len(name)-tailLength]
		if to := prefix + stamp(cut); name < to {
			ranges = append(ranges, state.Range{Space: space, From: prefix, To: to})
		}
		from = after(prefix)
	}
	return k.store.Drop(ctx, ranges...)
}

// after is behind all names that begin with a prefix, which ends with a slash.
func after(prefix string) string { return prefix[:len(prefix)-1] + "0" } // '0' follows '/'

// started is the time in the name of an index entry.
func started(name, prefix string) (time.Time, bool) {
	rest, ok := tail(name, prefix)
	if !ok {
		return time.Time{}, false
	}
	b, err := hex.DecodeString(rest[:16])
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(b))), true
}

// timeOf is when an activation was queued, to a millisecond.
func timeOf(id forerun.ActivationID) (time.Time, bool) {
	b, err := hex.DecodeString(string(id))
	if err != nil || len(b) != 16 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b) >> 16)), true
}

// firstID is before all ids that were made at a time or later.
func firstID(t time.Time) forerun.ActivationID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(max(0, t.UnixMilli()))<<16)
	return forerun.ActivationID(hex.EncodeToString(b[:]))
}
