package command

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sort"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/places"
)

// Reader is an ordered key-value store as of one moment.
type Reader interface {
	// Get returns the value of a key, which the caller must not change, and whether there is one.
	Get(key []byte) (value []byte, found bool, err error)
	// Scan calls f with the pairs from a key (inclusive) to another (exclusive; nil is the end) in order, or in reverse,
	// until f returns false. The slices that f gets are valid only during the call.
	Scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error
}

// Overlay holds writes over a Reader that is not changed, and is itself one, as long as its context lasts. It is not for concurrent
// use. It keeps the values that it is given, not copies of them.
type Overlay struct {
	patience
	base    Reader
	cleared runs[span]
	writes  map[string]write
	sorted  runs[string] // keys of writes
	fresh   []string     // the others
	made    []string     // keys of records, in the order in which they were made or changed first
	size    int          // bytes that writes take
	before  beforehand
	shown   int  // bytes of the replies of the commands that wrote it
	whole   bool // its commands may reach for any record of the space
}

// span is a range of keys, from (inclusive) to (exclusive).
type span struct{ from, to []byte }

type write struct {
	value   []byte
	deleted bool
}

// writeCost is about what a write takes in memory beside its key and its value.
const writeCost = 128

func (w write) bytes(key string) int { return writeCost + len(key) + len(w.value) }

// maxStep is how many bytes the commands over one overlay may write together, and how many they may answer: a short command
// can ask for as much of either as fills the memory.
const maxStep = 4 * MaxString

// charge adds a reply to those of the overlay's commands. The error is forerun.TooLarge.
func (o *Overlay) charge(r state.Reply) error {
	o.shown += replySize(r)
	switch {
	case o.shown > maxStep:
		return tooMuchShown()
	case o.size > maxStep:
		return tooMuchWritten()
	}
	return nil
}

func tooMuchShown() error {
	return forerun.Errorf(forerun.TooLarge, "state", "The command or transaction answers or collects more than %d MiB. Ask for less at a time.", maxStep>>20)
}

func tooMuchWritten() error {
	return forerun.Errorf(forerun.TooLarge, "state", "The command or transaction changes more than %d MiB. Split it.", maxStep>>20)
}

// itemSize is about what an item of a reply is sent as beside its text.
const itemSize = 16

// replySize is about how many bytes a reply is sent as.
func replySize(r state.Reply) int {
	size := itemSize + len(r.Text)
	for _, item := range r.Items {
		size += replySize(item)
	}
	return size
}

// NewOverlay makes an empty overlay over base. Who reads through it gets an error soon after ctx has ended: that of ctx.
func NewOverlay(ctx context.Context, base Reader) *Overlay {
	return &Overlay{patience: patience{ctx: ctx}, base: base}
}

const (
	workOfRead = 512 // of a read beside what is read
	workOfArg  = 64  // of a look at an argument of a command
)

// errLong is that commands do more over an overlay than they may.
var errLong = errors.New("state: it takes too long")

// patience is for how long something goes on that may take long.
type patience struct {
	ctx    context.Context // of the asker
	places *places.Places  // where it needs one if it takes long; nil: it needs none
	tenant string          // whose work it is
	turn   *places.Turn    // nil: it has not taken long yet
	own    bool            // the turn is not that of the context

	work int // since it was looked at, in bytes
	all  int // that was told
	done int // bytes of work in all, but for the values that Overlay.Get finds,
	most int // and how many they may be; 0: any number
}

// goesOn counts work, and fails if it is too much, or nobody waits for it any more.
func (p *patience) goesOn(bytes int) error {
	if p.done += bytes; p.most > 0 && p.done > p.most {
		return errLong
	}
	return p.proceed(bytes)
}

// proceed says that work goes on that was counted before. It waits while others are to work.
func (p *patience) proceed(bytes int) error {
	p.all += bytes
	if p.work += bytes; p.work < places.Step {
		return nil
	}
	work := p.work
	p.work = 0
	return p.look(work)
}

func (p *patience) look(work int) error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	if p.places == nil {
		return nil
	}
	if p.turn == nil {
		if p.turn = places.From(p.ctx); p.turn == nil {
			p.turn, p.own = p.places.Turn(), true
		}
	}
	return p.turn.Work(p.ctx, p.tenant, work)
}

// Share makes the work on an overlay that of a tenant, which needs a place if it takes long. Its caller calls Leave when it is done.
func (o *Overlay) Share(p *places.Places, tenant string) { o.places, o.tenant = p, tenant }

// Leave gives up the place that the work on the overlay has, unless that is its context's.
func (o *Overlay) Leave() {
	if o.own {
		o.turn.Leave()
	}
}

// remember notes what has been written. The function that it returns takes back what is written from then on.
func (o *Overlay) remember() (takeBack func()) {
	if o.Empty() {
		return func() { o.writes, o.cleared, o.sorted, o.fresh, o.made, o.size = nil, nil, nil, nil, nil, 0 }
	}
	o.sortFresh()
	writes, made, size := maps.Clone(o.writes), slices.Clone(o.made), o.size
	cleared, sorted := o.cleared.clone(), o.sorted.clone()
	return func() {
		o.writes, o.cleared, o.sorted, o.fresh, o.made, o.size = writes, cleared, sorted, nil, made, size
	}
}

// Proceed is called before work on so many bytes that the overlay does not see, such as the copying of what it reads.
func (o *Overlay) Proceed(bytes int) error { return o.proceed(bytes) }

// Empty says whether nothing has been written.
func (o *Overlay) Empty() bool { return len(o.writes) == 0 && len(o.cleared) == 0 }

// Grows says whether anything was written that is not a removal.
func (o *Overlay) Grows() bool {
	for _, w := range o.writes {
		if !w.deleted {
			return true
		}
	}
	return false
}

// Get reads through the overlay.
func (o *Overlay) Get(key []byte) ([]byte, bool, error) {
	value, found, err := o.find(key)
	if err == nil {
		o.work += len(value) // from a store: on images a look at it takes nothing
		o.all += len(value)
		err = o.goesOn(workOfRead + len(key))
	}
	return value, found && err == nil, err
}

func (o *Overlay) find(key []byte) ([]byte, bool, error) {
	if w, ok := o.writes[string(key)]; ok {
		return w.value, !w.deleted, nil
	}
	if o.isCleared(key) {
		return nil, false, nil
	}
	value, found, err := o.base.Get(key)
	if o.before.counts && err == nil {
		o.before.add(key, pairSize(key, value, found))
	}
	return value, found, err
}

func (o *Overlay) isCleared(key []byte) bool {
	for _, run := range o.cleared {
		behind := sort.Search(len(run), func(i int) bool { return bytes.Compare(run[i].from, key) > 0 })
		if behind > 0 && bytes.Compare(key, run[behind-1].to) < 0 {
			return true
		}
	}
	return false
}

// Set writes a pair.
func (o *Overlay) Set(key, value []byte) { o.put(key, write{value: value}) }

// Delete removes a key.
func (o *Overlay) Delete(key []byte) { o.put(key, write{deleted: true}) }

func (o *Overlay) put(key []byte, w write) {
	if o.writes == nil {
		o.writes = make(map[string]write)
	}
	name := string(key)
	old, known := o.writes[name]
	if (!known || old.deleted) && !w.deleted && IsRecordKey(key) {
		o.made = append(o.made, name)
	}
	if !known {
		o.fresh = append(o.fresh, name)
	} else {
		o.size -= old.bytes(name)
	}
	o.size += w.bytes(name)
	o.writes[name] = w
}

// Clear removes all keys from one (inclusive) to another (exclusive), at a cost that does not depend on their number.
func (o *Overlay) Clear(from, to []byte) {
	o.sortFresh()
	for i, run := range o.sorted {
		first, end := within(run, from, to)
		for _, key := range run[first:end] {
			o.size -= o.writes[key].bytes(key)
			delete(o.writes, key)
		}
		o.sorted[i] = slices.Delete(run, first, end)
	}
	o.cleared = o.cleared.add([]span{{bytes.Clone(from), bytes.Clone(to)}}, joinSpans)
}

// Scan reads a range through the overlay.
func (o *Overlay) Scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error {
	own := o.written(from, to)
	if reverse {
		slices.Reverse(own)
	}
	stopped := false
	var over error // nobody waits
	visit := func(key string) bool {
		if w := o.writes[key]; !w.deleted {
			stopped = !f([]byte(key), w.value)
		}
		over = o.goesOn(workOfRead + len(key))
		stopped = stopped || over != nil
		return !stopped
	}
	err := o.base.Scan(from, to, reverse, func(key, value []byte) bool {
		if over = o.goesOn(workOfRead + len(key) + len(value)); over != nil {
			stopped = true
			return false
		}
		for len(own) > 0 && own[0] != string(key) && (own[0] < string(key)) != reverse {
			if !visit(own[0]) {
				return false
			}
			own = own[1:]
		}
		if len(own) > 0 && own[0] == string(key) || o.isCleared(key) {
			return true // its own turn comes, or it is gone
		}
		stopped = !f(key, value)
		return !stopped
	})
	for err == nil && !stopped && len(own) > 0 {
		visit(own[0])
		own = own[1:]
	}
	if err == nil {
		err = over
	}
	return err
}

// EachCleared calls f with the ranges that the overlay clears, none of which overlap, until f fails.
func (o *Overlay) EachCleared(f func(from, to []byte) error) error {
	var all []span
	for _, run := range o.cleared {
		if all == nil {
			all = run
		} else {
			all = joinSpans(all, run)
		}
	}
	for _, s := range all {
		if err := f(s.from, s.to); err != nil {
			return err
		}
	}
	return nil
}

// written lists the keys of a range that were set or deleted, in order.
func (o *Overlay) written(from, to []byte) (keys []string) {
	o.sortFresh()
	for _, run := range slices.Backward(o.sorted) {
		if first, end := within(run, from, to); first < end {
			keys = joinKeys(run[first:end], keys)
		}
	}
	return keys
}

// sortFresh puts the fresh keys among the sorted ones.
func (o *Overlay) sortFresh() {
	if len(o.fresh) > 0 {
		slices.Sort(o.fresh)
		o.sorted = o.sorted.add(o.fresh, joinKeys)
		o.fresh = nil
	}
}

// InOrder puts keys of records that were written in the order in which commands made them; those behind were only removed.
func (o *Overlay) InOrder(keys []forerun.Key) []forerun.Key {
	if len(keys) < 2 {
		return keys
	}
	var ordered KeySet
	for _, name := range o.made {
		if k, ok := ParseRecordKey([]byte(name)); ok {
			ordered.Add(k)
		}
	}
	for _, k := range keys {
		ordered.Add(k)
	}
	return ordered.List
}

// Changes is what gets the content of an overlay; a batch of the store is one.
type Changes interface {
	Clear(from, to []byte) error
	Set(key, value []byte) error
	Delete(key []byte) error
}

// Flush tells c all changes in an order in which they can be applied: clears first, then keys in order.
func (o *Overlay) Flush(c Changes) error {
	for _, run := range o.cleared {
		for _, s := range run {
			if err := c.Clear(s.from, s.to); err != nil {
				return err
			}
		}
	}
	for _, key := range o.written(nil, nil) {
		w := o.writes[key]
		var err error
		if w.deleted {
			err = c.Delete([]byte(key))
		} else {
			err = c.Set([]byte(key), w.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
