package command

import (
	"encoding/binary"
	"math"
	"math/bits"

	"forerun.dev/forerun/internal/state"
)

// A HyperLogLog is a string as Redis makes them (the dense form): a header, and 16,384 registers of 6 bits, the lowest
// bits first.
const (
	hllPrecision = 14
	hllRegisters = 1 << hllPrecision
	hllBits      = 6
	hllHeader    = 16 // magic, encoding, three bytes of nothing, and the number that was counted last
	hllStale     = 1 << 7
	hllSize      = hllHeader + hllRegisters*hllBits/8
	hllSeed      = 0xadc83b19
	hllRanks     = 64 - hllPrecision
)

// registers are those of a HyperLogLog, each the highest rank that an element had.
type registers [hllRegisters]byte

// hyperLogLog finds the registers of a record, all 0 if there is none.
func (t *txn) hyperLogLog(name []byte) (g *registers, r record, refusal *state.Reply) {
	t.work(hllRegisters)
	r, typed := t.typed(name, state.String)
	if !typed {
		w := wrongType()
		return nil, r, &w
	}
	g = new(registers)
	if !r.exists() {
		return g, r, nil
	}
	if len(r.payload) < hllHeader || string(r.payload[:4]) != "HYLL" || r.payload[4] > 1 {
		return nil, r, refuse("WRONGTYPE Key is not a valid HyperLogLog string value.")
	}
	if r.payload[4] == 0 && len(r.payload) != hllSize {
		return nil, r, refuse("WRONGTYPE Key is not a valid HyperLogLog string value.")
	}
	if r.payload[4] == 1 {
		if !g.readSparse(r.payload[hllHeader:]) {
			return nil, r, refuse("INVALIDOBJ Corrupted HLL object detected")
		}
		return g, r, nil
	}
	g.readDense(r.payload[hllHeader:])
	return g, r, nil
}

func (g *registers) readDense(b []byte) {
	for i := range g {
		at := i * hllBits
		low, shift := b[at/8], at%8
		n := uint(low) >> shift
		if shift > 8-hllBits {
			n |= uint(b[at/8+1]) << (8 - shift)
		}
		g[i] = byte(n & (1<<hllBits - 1))
	}
}

// readSparse reads the form in which Redis writes few elements: runs of zeros (00 and 01) and of one rank (1).
func (g *registers) readSparse(b []byte) bool {
	i := 0
	for len(b) > 0 {
		run, rank := int(b[0]&0x3f)+1, byte(0)
		switch {
		case b[0]&0x80 != 0:
			run, rank = int(b[0]&3)+1, b[0]>>2&0x1f+1
		case b[0]&0x40 != 0:
			if len(b) < 2 {
				return false
			}
			run = (int(b[0]&0x3f)<<8 | int(b[1])) + 1
			b = b[1:]
		}
		b = b[1:]
		if i+run > hllRegisters {
			return false
		}
		for range run {
			g[i] = rank
			i++
		}
	}
	return i == hllRegisters
}

// save writes the registers as a string whose number is to be counted anew.
func (g *registers) save(t *txn, name []byte, r record) {
	b := make([]byte, hllSize)
	copy(b, "HYLL")
	b[hllHeader-1] = hllStale
	for i, rank := range g {
		at := i * hllBits
		word := uint(rank) << (at % 8)
		b[hllHeader+at/8] |= byte(word)
		if word > 0xff {
			b[hllHeader+at/8+1] |= byte(word >> 8)
		}
	}
	t.setString(name, r, b, r.expires)
}

// add notes an element, and says whether that made a difference.
func (g *registers) add(element []byte) bool {
	h := murmur64(element, hllSeed)
	i := h & (hllRegisters - 1)
	rank := byte(bits.TrailingZeros64(h>>hllPrecision|1<<hllRanks) + 1)
	if rank <= g[i] {
		return false
	}
	g[i] = rank
	return true
}

func (g *registers) merge(other *registers) {
	for i, rank := range other {
		g[i] = max(g[i], rank)
	}
}

// count estimates the number of different elements (Ertl, "New cardinality estimation algorithms for HyperLogLog
// sketches", arXiv 1702.01284, algorithm 6).
func (g *registers) count() int64 {
	var histogram [hllRanks + 2]int
	for _, rank := range g {
		histogram[min(int(rank), hllRanks+1)]++
	}
	const m = float64(hllRegisters)
	z := m * hllTau((m-float64(histogram[hllRanks+1]))/m)
	for rank := hllRanks; rank >= 1; rank-- {
		z += float64(histogram[rank])
		z *= 0.5
	}
	z += m * hllSigma(float64(histogram[0])/m)
	const alpha = 0.721347520444481703680 // 1 / (2 ln 2)
	return int64(math.Round(alpha * m * m / z))
}

func hllSigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	z, y := x, 1.0
	for {
		x *= x
		before := z
		z += x * y
		y += y
		if z == before {
			return z
		}
	}
}

func hllTau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	z, y := 1-x, 1.0
	for {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
		if z == before {
			return z / 3
		}
	}
}

// murmur64 is MurmurHash2 in its 64-bit form A.
func murmur64(b []byte, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		h = (h ^ (k^k>>r)*m) * m
	}
	if len(b) > 0 {
		var rest [8]byte
		copy(rest[:], b)
		h = (h ^ binary.LittleEndian.Uint64(rest[:])) * m
	}
	h = (h ^ h>>r) * m
	return h ^ h>>r
}

func pfadd(t *txn, args [][]byte) state.Reply {
	g, r, refusal := t.hyperLogLog(args[1])
	if refusal != nil {
		return *refusal
	}
	changed := !r.exists()
	for _, element := range args[2:] {
		if t.work(len(element)); t.err != nil {
			return null()
		}
		changed = g.add(element) || changed
	}
	if changed {
		g.save(t, args[1], r)
	}
	return truth(changed)
}

func pfcount(t *txn, args [][]byte) state.Reply {
	g, refusal := t.merged(args[1:])
	if refusal != nil {
		return *refusal
	}
	return integer(g.count())
}

func pfmerge(t *txn, args [][]byte) state.Reply {
	g, refusal := t.merged(args[1:])
	if refusal != nil {
		return *refusal
	}
	g.save(t, args[1], t.load(args[1]))
	return ok()
}

// merged joins several HyperLogLogs.
func (t *txn) merged(names [][]byte) (*registers, *state.Reply) {
	all := new(registers)
	for _, name := range names {
		g, _, refusal := t.hyperLogLog(name)
		if refusal != nil {
			return nil, refusal
		}
		if t.err != nil {
			break
		}
		all.merge(g)
	}
	return all, nil
}
