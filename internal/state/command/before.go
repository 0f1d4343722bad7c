package command

import (
	"bytes"
	"slices"
)

// beforehand knows how large pairs were that an overlay has read, so that the store need not read them again to tell how much more, or
// less, it holds with the overlay's writes.
type beforehand struct {
	counts bool // it is wanted
	sorted bool
	pairs  []pairBefore
	room   [2]pairBefore // for those of most commands
}

// pairBefore is how large a pair is below an overlay; 0 if it is not there.
type pairBefore struct {
	key  []byte
	size int
}

func pairSize(key, value []byte, found bool) int {
	if !found {
		return 0
	}
	return len(key) + len(value)
}

func (b *beforehand) add(key []byte, size int) {
	if b.pairs == nil {
		b.pairs = b.room[:0]
	}
	b.pairs = append(b.pairs, pairBefore{key, size})
	b.sorted = false
}

// few is how many pairs are looked through one by one.
const few = 8

// find finds what was added first of a key.
func (b *beforehand) find(key []byte) (size int, known bool) {
	if len(b.pairs) <= few {
		for _, p := range b.pairs {
			if bytes.Equal(p.key, key) {
				return p.size, true
			}
		}
		return 0, false
	}
	if !b.sorted {
		slices.SortStableFunc(b.pairs, func(p, q pairBefore) int { return bytes.Compare(p.key, q.key) })
		b.sorted = true
	}
	at, known := slices.BinarySearchFunc(b.pairs, key, func(p pairBefore, key []byte) int { return bytes.Compare(p.key, key) })
	if !known {
		return 0, false
	}
	return b.pairs[at].size, true
}

// Counting has the overlay remember how large the pairs were that its commands read.
func (o *Overlay) Counting() *Overlay {
	o.before.counts = true
	return o
}

// Before is how many bytes the pair of a key takes below a counting overlay, without what the overlay clears; 0 if it is not there. known
// is false if nothing has asked for it.
func (o *Overlay) Before(key []byte) (size int, known bool) {
	if o.isCleared(key) {
		return 0, true
	}
	return o.before.find(key)
}

// suppose tells a counting overlay how large a pair is that is not read, just before its first write.
func (o *Overlay) suppose(key []byte, size int) {
	if !o.before.counts {
		return
	}
	if _, written := o.writes[string(key)]; !written {
		o.before.add(key, size)
	}
}
