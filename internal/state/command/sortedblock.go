package command

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// The order of a large sorted set is cut into blocks of members that lie together. The payload of its head says, behind
// the number of its members, where each block begins and how many members it has. So ranks, and members at ranks, are
// found with one walk through one block.

// block begins at a place in the order: the first bytes of a score and a name, as many as tell it from the block before
// it. The first begins with none.
type block struct {
	begin []byte
	count int64
}

// mostInBlock is how many members a block of a set of n has before it is cut, and a set before it is cut into blocks.
func mostInBlock(n int64) int64 { return max(256, n/256) }

// decodeBlocks is the inverse of encodeBlocks; the blocks are parts of b.
func decodeBlocks(b []byte) (blocks []block, ok bool) {
	for len(b) > 0 {
		length, size := binary.Uvarint(b)
		if size <= 0 || length > uint64(len(b)-size) {
			return nil, false
		}
		begin := b[size : size+int(length) : size+int(length)]
		b = b[size+int(length):]
		count, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, false
		}
		b = b[size:]
		blocks = append(blocks, block{begin, int64(count)})
	}
	return blocks, len(blocks) == 0 || len(blocks[0].begin) == 0
}

func encodeBlocks(b []byte, blocks []block) []byte {
	for _, k := range blocks {
		b = binary.AppendUvarint(b, uint64(len(k.begin)))
		b = append(b, k.begin...)
		b = binary.AppendUvarint(b, uint64(k.count))
	}
	return b
}

// blockAt is the number of the block of a place.
func (z *sortedSet) blockAt(place []byte) int {
	return sort.Search(len(z.blocks), func(i int) bool { return bytes.Compare(z.blocks[i].begin, place) > 0 }) - 1
}

// balance cuts blocks that have become large, and joins those that have become small.
func (z *sortedSet) balance() {
	most := mostInBlock(z.n)
	switch {
	case z.n <= most:
		z.blocks = nil
		return
	case len(z.blocks) == 0:
		z.blocks = []block{{count: z.n}}
	}
	balanced := make([]block, 0, len(z.blocks)+1)
	for _, k := range z.blocks {
		last := len(balanced) - 1
		switch {
		case last >= 0 && balanced[last].count+k.count < most/4:
			balanced[last].count += k.count
		case k.count > most:
			balanced = z.cut(balanced, k, most/2)
		default:
			balanced = append(balanced, k)
		}
	}
	z.blocks = balanced
}

// cut appends a large block in parts of a size; the last may be nearly twice as large.
func (z *sortedSet) cut(to []block, large block, size int64) []block {
	s := z.all()
	prefix := len(s.from)
	s.from = append(s.from, large.begin...)
	part := block{begin: large.begin}
	var before []byte // the place of the member before
	z.t.walk(s.from, s.to, false, prefix, func(place, _ []byte) bool {
		if part.count == size {
			to = append(to, part)
			part = block{begin: separator(before, place)}
			large.count -= size
		}
		part.count++
		before = append(before[:0], place...)
		return large.count >= 2*size
	})
	part.count = large.count
	return append(to, part)
}

// separator is the shortest beginning of b that is behind a, which is before b.
func separator(a, b []byte) []byte {
	for i := range b {
		if i == len(a) || a[i] != b[i] {
			return bytes.Clone(b[:i+1])
		}
	}
	return bytes.Clone(b)
}

// before is the number of members before a place.
func (z *sortedSet) before(place []byte) int64 {
	if z.n == 0 {
		return 0
	}
	s := z.all()
	s.to = slices.Concat(s.from, place)
	n := int64(0)
	if i := z.blockAt(place); i >= 0 {
		s.from = append(s.from, z.blocks[i].begin...)
		for _, k := range z.blocks[:i] {
			n += k.count
		}
	}
	z.walk(s, false, func(scored) bool {
		n++
		return true
	})
	return n
}

// from is the stretch that begins with the block of a rank, and how many of its members come before the rank.
func (z *sortedSet) from(rank int64) (s stretch, offset int64) {
	s = z.all()
	for _, k := range z.blocks {
		if rank < k.count {
			s.from = append(s.from, k.begin...)
			break
		}
		rank -= k.count
	}
	return s, rank
}
