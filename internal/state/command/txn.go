package command

import (
	"bytes"
	"encoding/binary"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/places"
)

// txn is one command at work: the overlay it reads and writes, in one space, at one time. The first error of the
// overlay is kept in err, and from then on nothing is found.
type txn struct {
	overlay *Overlay
	spec    *Spec
	space   string
	now     int64 // Unix milliseconds
	err     error
	shown   int // bytes of what it has found and holds
}

// show notes what a command holds, as it is to answer it or to write it elsewhere. A few bytes of a command may lead to more than there
// is memory for: no more is read than may be answered.
func (t *txn) show(found []byte) {
	if t.shown += itemSize + len(found); t.shown > maxStep && t.err == nil {
		t.err = tooMuchShown()
	}
}

// keep copies and notes what a walk finds.
func (t *txn) keep(found []byte) []byte {
	t.show(found)
	return bytes.Clone(found)
}

// set writes a pair. While a command is at work it may write twice as much as when it is done: what it moves is there twice.
func (t *txn) set(key, value []byte) {
	if t.work(writeCost + len(key)); t.err != nil {
		return
	}
	t.overlay.Set(key, value)
	t.bound()
}

// setNew writes a pair that is not there.
func (t *txn) setNew(key, value []byte) {
	t.overlay.suppose(key, 0)
	t.set(key, value)
}

// deleteKnown removes a pair that is there, with a value of a known size.
func (t *txn) deleteKnown(key []byte, valueSize int) {
	t.overlay.suppose(key, len(key)+valueSize)
	t.delete(key)
}

func (t *txn) delete(key []byte) {
	if t.work(writeCost + len(key)); t.err != nil {
		return
	}
	t.overlay.Delete(key)
	t.bound()
}

func (t *txn) bound() {
	if t.overlay.size > 2*maxStep {
		t.err = tooMuchWritten()
	}
}

// work counts what a command does beside reading and writing pairs, in bytes.
func (t *txn) work(bytes int) {
	if t.err == nil {
		t.err = t.overlay.goesOn(bytes)
	}
}

// inParts has f work on a range part by part, and lets others work between them. The work was counted before. A byte of it is so many units of
// the range. Once the context has ended, t.err says so and f is not called.
func (t *txn) inParts(from, to, units int64, f func(from, to int64)) {
	for from < to && t.err == nil {
		end := min(from+units*places.Step, to)
		if t.err = t.overlay.proceed(int((end - from) / units)); t.err == nil {
			f(from, end)
		}
		from = end
	}
}

// copying counts bytes that are copied.
func (t *txn) copying(bytes int) { t.work(workOfCopying(bytes)) }

// workOfCopying is the work of copying bytes, which takes a fifth of the time of a look at each.
func workOfCopying(bytes int) int { return bytes / 5 }

func (t *txn) get(key []byte) ([]byte, bool) {
	if t.err != nil {
		return nil, false
	}
	value, found, err := t.overlay.Get(key)
	t.err = err
	return value, found && err == nil
}

func (t *txn) metaKey(name []byte) []byte {
	return append(spaceKey(metaPrefix, t.space, len(name)), name...)
}

func (t *txn) expiryKey(name []byte, ms int64) []byte {
	return append(escapeSpace(expiryTime(ms), t.space), name...)
}

// elementKey is where an element of a record lies; with no element it is what all its elements' keys begin with.
func (t *txn) elementKey(name, element []byte) []byte {
	return append(t.collectionKey(elementPrefix, name, len(element)), element...)
}

// elementRange bounds the keys of all elements of a record.
func (t *txn) elementRange(name []byte) (from, to []byte) {
	return t.collectionRange(elementPrefix, name)
}

// collectionKey is what the keys of one kind that belong to a record begin with, with room for more.
func (t *txn) collectionKey(prefix byte, name []byte, more int) []byte {
	b := spaceKey(prefix, t.space, 4+len(name)+more)
	b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
	return append(b, name...)
}

// collectionRange bounds those keys.
func (t *txn) collectionRange(prefix byte, name []byte) (from, to []byte) {
	return t.collectionKey(prefix, name, 0), after(t.collectionKey(prefix, name, 0))
}

// after is the first key that does not begin with prefix, which is made of its bytes and holds one below 0xff.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; ; i-- {
		if prefix[i] != 0xff {
			prefix[i]++
			return prefix[:i+1]
		}
	}
}

// load finds a record; there is none if it has expired, and a command that writes sweeps it away.
func (t *txn) load(name []byte) record {
	if t.err != nil { // else the key, which may be long, is not even made
		return record{}
	}
	stored, found := t.get(t.metaKey(name))
	if !found {
		return record{}
	}
	r, ok := decodeRecord(stored)
	if !ok {
		t.err = ErrDamaged
		return record{}
	}
	if !r.gone(t.now) {
		return r
	}
	if t.spec.Flags&Write != 0 {
		t.remove(name, r)
	}
	return record{}
}

// typed finds a record that may be there only with a certain type; ok is false if it has another.
func (t *txn) typed(name []byte, kind state.Type) (r record, ok bool) {
	r = t.load(name)
	return r, !r.exists() || r.kind == kind
}

// save writes a record's head, and keeps the index of expiries.
func (t *txn) save(name []byte, r record) {
	if r.indexed != r.expires {
		t.unindex(name, r)
		if r.expires != 0 {
			t.set(t.expiryKey(name, r.expires), nil)
		}
	}
	if t.copying(len(r.payload)); t.err != nil {
		return
	}
	t.set(t.metaKey(name), r.encode())
}

// remove deletes a record with its elements.
func (t *txn) remove(name []byte, r record) {
	t.removeElements(name, r)
	t.unindex(name, r)
	t.delete(t.metaKey(name))
}

// What is removed one by one, for a cleared range weighs on every later read beside it: so many elements, if their keys are short.
const (
	maxSingly     = 64
	maxSinglySize = 64 << 10
)

func (t *txn) removeElements(name []byte, r record) {
	n := r.elementCount()
	if n == 0 {
		return
	}
	t.clear(elementPrefix, name, n)
	if r.kind == state.SortedSet {
		t.clear(orderPrefix, name, n)
	}
}

// clear removes the n keys of one kind that belong to a record.
func (t *txn) clear(prefix byte, name []byte, n int64) {
	from, to := t.collectionRange(prefix, name)
	singly := n <= maxSingly
	var all [][]byte
	var values []int // their sizes
	if size := 0; singly {
		t.walk(from, to, false, 0, func(key, value []byte) bool {
			if size += len(key); size > maxSinglySize {
				singly = false
				return false
			}
			all = append(all, bytes.Clone(key))
			values = append(values, len(value))
			return true
		})
	}
	if !singly {
		t.overlay.Clear(from, to)
		return
	}
	for i, key := range all {
		t.deleteKnown(key, values[i])
	}
}

func (r *record) elementCount() int64 {
	switch r.kind {
	case state.Hash, state.Set, state.SortedSet:
		return r.count()
	case state.List:
		return r.bounds().len()
	}
	return 0
}

func (t *txn) unindex(name []byte, r record) {
	if r.indexed != 0 {
		t.delete(t.expiryKey(name, r.indexed))
	}
}

// setString makes the record a string, whatever it was, that expires at a time (0: never).
func (t *txn) setString(name []byte, old record, data []byte, expires int64) {
	if old.exists() {
		t.removeElements(name, old)
	}
	t.save(name, record{kind: state.String, expires: expires, indexed: old.indexed, payload: data})
}

func (t *txn) element(name, element []byte) ([]byte, bool) {
	if t.err != nil {
		return nil, false
	}
	return t.get(t.elementKey(name, element))
}

func (t *txn) setElement(name, element, value []byte) {
	if t.err == nil {
		t.set(t.elementKey(name, element), value)
	}
}

// setNewElement writes an element that is not there.
func (t *txn) setNewElement(name, element, value []byte) {
	if t.err == nil {
		t.setNew(t.elementKey(name, element), value)
	}
}

func (t *txn) deleteElement(name, element []byte) {
	if t.err == nil {
		t.delete(t.elementKey(name, element))
	}
}

// elements calls f with each element of a record, in order; the slices are valid only during the call.
func (t *txn) elements(name []byte, f func(element, value []byte)) {
	from, to := t.elementRange(name)
	t.scan(from, to, false, len(from), f)
}

func (t *txn) scan(from, to []byte, reverse bool, prefix int, f func(element, value []byte)) {
	t.walk(from, to, reverse, prefix, func(element, value []byte) bool {
		f(element, value)
		return true
	})
}

// walk is a scan that ends when f returns false, or with the first error.
func (t *txn) walk(from, to []byte, reverse bool, prefix int, f func(element, value []byte) bool) {
	if t.err != nil {
		return
	}
	err := t.overlay.Scan(from, to, reverse, func(key, value []byte) bool { return f(key[prefix:], value) && t.err == nil })
	if t.err == nil {
		t.err = err
	}
}

// count is the number of elements of a hash, a set or a sorted set.
func (r *record) count() int64 {
	n, _ := binary.Uvarint(r.payload)
	return int64(n)
}

// settle writes the head of a hash, a set or a sorted set that has n elements now; an empty one is removed.
func (t *txn) settle(name []byte, kind state.Type, r record, n int64) {
	if n == 0 {
		t.remove(name, r)
		return
	}
	r.kind = kind
	r.payload = binary.AppendUvarint(nil, uint64(n))
	t.save(name, r)
}
