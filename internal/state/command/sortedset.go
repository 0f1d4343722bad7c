package command

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"forerun.dev/forerun/internal/state"
)

// A sorted set has each member twice: under its name with its score, and under its score, so that ranges of scores and
// of ranks near the ends are found without reading the rest.

// scoreSize is the length of a score, which comes before the member in the keys of the order.
const scoreSize = 8

// orderedScore is a score in bytes whose order is that of the scores; 0 and -0 are the same.
func orderedScore(f float64) [scoreSize]byte {
	var b [scoreSize]byte
	binary.BigEndian.PutUint64(b[:], scoreBits(f))
	return b
}

func scoreBits(f float64) uint64 {
	switch {
	case f == 0: // -0 too
		return 1 << 63
	case f < 0:
		return ^math.Float64bits(f)
	}
	return math.Float64bits(f) | 1<<63
}

// scoreOf is the inverse of orderedScore.
func scoreOf(b []byte) float64 {
	bits := binary.BigEndian.Uint64(b)
	if bits>>63 == 0 {
		return math.Float64frombits(^bits)
	}
	return math.Float64frombits(bits &^ (1 << 63))
}

// scored is a member of a sorted set.
type scored struct {
	member []byte
	score  float64
}

// compare is the order of sorted sets.
func (a scored) compare(b scored) int {
	switch {
	case a.score < b.score:
		return -1
	case a.score > b.score:
		return 1
	}
	return bytes.Compare(a.member, b.member)
}

// sortedSet is one at work; settle writes its head when its members are as they are to be.
type sortedSet struct {
	t    *txn
	name []byte
	r    record
	n    int64 // members now

	blocks []block // none: it is small
}

// sortedSet finds a sorted set, which may be empty; ok is false if the record has another type.
func (t *txn) sortedSet(name []byte) (z *sortedSet, ok bool) {
	r, ok := t.typed(name, state.SortedSet)
	z = &sortedSet{t: t, name: name, r: r, n: r.count()}
	if ok && r.exists() {
		_, size := binary.Uvarint(r.payload)
		if blocks, sound := decodeBlocks(r.payload[max(size, 0):]); sound {
			z.blocks = blocks
		} else {
			t.err = ErrDamaged
		}
	}
	return z, ok
}

// replaceSorted begins a new sorted set in the place of whatever record there is.
func (t *txn) replaceSorted(name []byte) *sortedSet {
	if old := t.load(name); old.exists() {
		t.remove(name, old)
	}
	return &sortedSet{t: t, name: name}
}

// settle writes the head of the set; an empty one is removed.
func (z *sortedSet) settle() {
	if z.n == 0 {
		z.t.remove(z.name, z.r)
		return
	}
	z.balance()
	z.r.kind = state.SortedSet
	z.r.payload = encodeBlocks(binary.AppendUvarint(nil, uint64(z.n)), z.blocks)
	z.t.save(z.name, z.r)
}

// score finds the score of a member.
func (z *sortedSet) score(member []byte) (float64, bool) {
	if z.n == 0 {
		return 0, false
	}
	value, found := z.t.element(z.name, member)
	if !found {
		return 0, false
	}
	if len(value) != scoreSize {
		z.t.err = ErrDamaged
		return 0, false
	}
	return scoreOf(value), true
}

// insert adds a member that is not there.
func (z *sortedSet) insert(member []byte, score float64) {
	ordered := orderedScore(score)
	z.t.setNewElement(z.name, member, ordered[:])
	z.t.setNew(z.orderKey(score, member), nil)
	z.note(score, member, 1)
}

// move changes the score of a member.
func (z *sortedSet) move(member []byte, from, to float64) {
	z.delete(member, from)
	z.insert(member, to)
}

// delete removes a member that is there.
func (z *sortedSet) delete(member []byte, score float64) {
	z.t.deleteKnown(z.t.elementKey(z.name, member), scoreSize)
	z.t.deleteKnown(z.orderKey(score, member), 0)
	z.note(score, member, -1)
}

// note counts a member that has come or gone.
func (z *sortedSet) note(score float64, member []byte, by int64) {
	z.n += by
	if len(z.blocks) > 0 {
		ordered := orderedScore(score)
		z.blocks[z.blockAt(slices.Concat(ordered[:], member))].count += by
	}
}

func (z *sortedSet) orderKey(score float64, member []byte) []byte {
	ordered := orderedScore(score)
	return append(append(z.t.collectionKey(orderPrefix, z.name, scoreSize+len(member)), ordered[:]...), member...)
}

// stretch is a part of a sorted set that lies together: keys of the order from one (inclusive) to another (exclusive).
type stretch struct{ from, to []byte }

func (z *sortedSet) all() stretch {
	from, to := z.t.collectionRange(orderPrefix, z.name)
	return stretch{from, to}
}

// walk calls f with the members of a stretch in order, or in reverse, until f returns false. The member is valid only
// during the call.
func (z *sortedSet) walk(s stretch, reverse bool, f func(m scored) bool) {
	if z.n == 0 || bytes.Compare(s.from, s.to) >= 0 {
		return
	}
	prefix := len(z.t.collectionKey(orderPrefix, z.name, 0))
	z.t.walk(s.from, s.to, reverse, prefix, func(key, _ []byte) bool {
		return f(scored{key[scoreSize:], scoreOf(key)})
	})
}

// collect copies up to limit members of a stretch.
func (z *sortedSet) collect(s stretch, reverse bool, limit int64) []scored {
	return z.skip(s, reverse, 0, limit)
}

// end is the first member or, in reverse, the last; ok is false if there is none.
func (z *sortedSet) end(reverse bool) (m scored, ok bool) {
	members := z.collect(z.all(), reverse, 1)
	if len(members) == 0 {
		return scored{}, false
	}
	return members[0], true
}

// ranked collects the members of ranks from..to, counted from the end if reverse. It reads from the beginning, from the
// end, or from a block between.
func (z *sortedSet) ranked(from, to int64, reverse bool) []scored {
	from, to = rangeOf(from, to, z.n)
	if from > to {
		return nil
	}
	limit := to - from + 1
	if from <= mostInBlock(z.n) {
		return z.skip(z.all(), reverse, from, limit)
	}
	low := from // in the order of the set
	if reverse {
		low = z.n - 1 - to
	}
	s, offset := z.from(low)
	members := z.skip(s, false, offset, limit)
	if reverse {
		slices.Reverse(members)
	}
	return members
}

// skip copies up to limit members of a stretch behind the first offset ones.
func (z *sortedSet) skip(s stretch, reverse bool, offset, limit int64) []scored {
	return z.t.collectSome(offset, limit, func(f func(scored) bool) { z.walk(s, reverse, f) })
}

// collectSome copies up to limit members of a walk behind the first offset ones. A negative limit is none; a negative
// offset skips all.
func (t *txn) collectSome(offset, limit int64, walk func(f func(m scored) bool)) []scored {
	var members []scored
	if limit == 0 || offset < 0 {
		return nil
	}
	walk(func(m scored) bool {
		if offset > 0 {
			offset--
			return true
		}
		members = append(members, scored{t.keep(m.member), m.score})
		return int64(len(members)) != limit
	})
	return members
}

// scoredReply shows members, with their scores if they are wanted.
func scoredReply(members []scored, withScores bool) state.Reply {
	if !withScores {
		items := make([]state.Reply, 0, len(members))
		for _, m := range members {
			items = append(items, bulk(m.member))
		}
		return array(items)
	}
	items := make([]state.Reply, 0, 2*len(members))
	for _, m := range members {
		items = append(items, bulk(m.member), double(m.score))
	}
	return state.Reply{Kind: state.Pairs, Items: items}
}
