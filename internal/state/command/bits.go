package command

import (
	"math"
	"math/bits"

	"forerun.dev/forerun/internal/state"
)

// bitOffset reads the place of a bit; with a # before it, where it may be, it counts integers of a width.
func bitOffset(arg []byte, width int64) (int64, *state.Reply) {
	refusal := refuse("ERR bit offset is not an integer or out of range")
	unit := int64(1)
	if width > 0 && len(arg) > 0 && arg[0] == '#' {
		arg, unit = arg[1:], width
	}
	n, isInt := parseInt(arg)
	if !isInt || n < 0 || n > math.MaxInt64/unit || n*unit/8 >= MaxString {
		return 0, refusal
	}
	return n * unit, nil
}

// bitAt is a bit of a string, which is followed by zeros without end; the highest bit of a byte is its first.
func bitAt(data []byte, at int64) byte {
	if at/8 >= int64(len(data)) {
		return 0
	}
	return data[at/8] >> (7 - at%8) & 1
}

func setBitAt(data []byte, at int64, bit byte) {
	mask := byte(1) << (7 - at%8)
	data[at/8] &^= mask
	if bit != 0 {
		data[at/8] |= mask
	}
}

// grown is a copy of a string that is at least so long; nil if there is an error.
func (t *txn) grown(data []byte, size int64) []byte {
	size = max(size, int64(len(data)))
	if t.copying(int(size)); t.err != nil {
		return nil
	}
	longer := make([]byte, size)
	copy(longer, data)
	return longer
}

func getbit(t *txn, args [][]byte) state.Reply {
	at, refusal := bitOffset(args[2], 0)
	if refusal != nil {
		return *refusal
	}
	r, typed := t.typed(args[1], state.String)
	if !typed {
		return wrongType()
	}
	return integer(int64(bitAt(r.payload, at)))
}

func setbit(t *txn, args [][]byte) state.Reply {
	at, refusal := bitOffset(args[2], 0)
	if refusal != nil {
		return *refusal
	}
	bit, refusal := parseWithin(args[3], 0, 1, "ERR bit is not an integer or out of range")
	if refusal != nil {
		return *refusal
	}
	r, typed := t.typed(args[1], state.String)
	if !typed {
		return wrongType()
	}
	old := bitAt(r.payload, at)
	data := t.grown(r.payload, at/8+1)
	if t.err != nil {
		return null()
	}
	if len(data) > len(r.payload) || byte(bit) != old {
		setBitAt(data, at, byte(bit))
		t.setString(args[1], r, data, r.expires)
	}
	return integer(int64(old))
}

// bitRange is a range of bits, both ends inclusive; open if its end was not given.
type bitRange struct {
	from, to int64
	open     bool
}

func (r bitRange) bytes() int { return int(r.to-r.from)/8 + 1 }

// parseBitRange reads a range of n bytes: nothing, its beginning, or both ends and perhaps whether they count bits or bytes.
func parseBitRange(args [][]byte, n int64) (bitRange, *state.Reply) {
	switch {
	case len(args) == 0:
		return bitRange{0, n*8 - 1, true}, nil
	case len(args) > 3:
		return bitRange{}, refuse("ERR syntax error")
	}
	from, refusal := parseWithin(args[0], math.MinInt64, math.MaxInt64, "")
	if refusal != nil {
		return bitRange{}, refusal
	}
	unit, to := int64(8), int64(-1)
	if len(args) > 2 {
		if unit, refusal = parseBitUnit(args[2]); refusal != nil {
			return bitRange{}, refusal
		}
	}
	if len(args) > 1 {
		if to, refusal = parseWithin(args[1], math.MinInt64, math.MaxInt64, ""); refusal != nil {
			return bitRange{}, refusal
		}
	}
	all := n * 8 / unit
	from, to = rangeOf(from, max(to, -all), all)
	if from > to {
		return bitRange{from: 1}, nil
	}
	return bitRange{from * unit, to*unit + unit - 1, len(args) == 1}, nil
}

// parseBitUnit reads what the ends of a range count, and returns its number of bits.
func parseBitUnit(arg []byte) (int64, *state.Reply) {
	switch {
	case is(arg, "BIT"):
		return 1, nil
	case is(arg, "BYTE"):
		return 8, nil
	}
	return 0, refuse("ERR syntax error")
}

// checkCount finds what BITCOUNT refuses in another order than BITPOS; empty if the range is not worth a look.
func checkCount(args [][]byte) (empty bool, refusal *state.Reply) {
	switch len(args) {
	case 0:
		return false, nil
	case 2, 3:
		from, to, refusal := parseRanks(args[0], args[1])
		return from < 0 && to < 0 && from > to, refusal
	}
	return false, refuse("ERR syntax error")
}

func bitcount(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.String)
	switch {
	case !typed:
		return wrongType()
	case !r.exists():
		return integer(0)
	}
	empty, refusal := checkCount(args[2:])
	if refusal != nil {
		return *refusal
	}
	if empty {
		return integer(0)
	}
	where, refusal := parseBitRange(args[2:], int64(len(r.payload)))
	if refusal != nil {
		return *refusal
	}
	if t.work(where.bytes()); t.err != nil {
		return null()
	}
	n := 0
	t.inParts(where.from, where.to+1, 8, func(from, to int64) { n += countBits(r.payload, from, to) })
	return integer(int64(n))
}

// countBits counts the ones from a bit (inclusive) to another (exclusive).
func countBits(data []byte, from, to int64) (n int) {
	for at := from; at < to; {
		if at%8 == 0 && at+8 <= to {
			n += bits.OnesCount8(data[at/8])
			at += 8
			continue
		}
		n += int(bitAt(data, at))
		at++
	}
	return n
}

func bitpos(t *txn, args [][]byte) state.Reply {
	bit, refusal := parseWithin(args[2], math.MinInt64, math.MaxInt64, "")
	if refusal != nil {
		return *refusal
	}
	if bit != 0 && bit != 1 {
		return failure("ERR The bit argument must be 1 or 0.")
	}
	r, typed := t.typed(args[1], state.String)
	switch {
	case !typed:
		return wrongType()
	case !r.exists():
		return integer(-bit)
	}
	where, refusal := parseBitRange(args[3:], int64(len(r.payload)))
	if refusal != nil {
		return *refusal
	}
	if t.work(where.bytes()); t.err != nil {
		return null()
	}
	first := int64(-1)
	t.inParts(where.from, where.to+1, 8, func(from, to int64) {
		if first < 0 {
			first = firstBit(r.payload, byte(bit), from, to)
		}
	})
	if first < 0 && bit == 0 && where.open && where.from <= where.to { // behind a string there are zeros
		first = int64(len(r.payload)) * 8
	}
	return integer(first)
}

// firstBit is the place of the first bit of a kind from a place (inclusive) to another (exclusive); -1 if there is none.
func firstBit(data []byte, bit byte, from, to int64) int64 {
	none := byte(0xff) // a byte without such a bit
	if bit == 1 {
		none = 0
	}
	for at := from; at < to; {
		switch {
		case at%8 == 0 && at+8 <= to && data[at/8] == none:
			at += 8
		case bitAt(data, at) == bit:
			return at
		default:
			at++
		}
	}
	return -1
}

// bitOperations are those of BITOP on bytes.
var bitOperations = []struct {
	name string
	on   func(a, b byte) byte
}{
	{"AND", func(a, b byte) byte { return a & b }},
	{"OR", func(a, b byte) byte { return a | b }},
	{"XOR", func(a, b byte) byte { return a ^ b }},
	{"NOT", func(a, _ byte) byte { return ^a }},
}

func bitop(t *txn, args [][]byte) state.Reply {
	for _, operation := range bitOperations {
		if !is(args[1], operation.name) {
			continue
		}
		if operation.name == "NOT" && len(args) != 4 {
			return failure("ERR BITOP NOT must be called with a single source key.")
		}
		return combineBits(t, args[2], args[3:], operation.on)
	}
	return syntaxError()
}

func combineBits(t *txn, target []byte, names [][]byte, on func(a, b byte) byte) state.Reply {
	var inputs [][]byte
	longest := 0
	for _, name := range names {
		r, typed := t.typed(name, state.String)
		if !typed {
			return wrongType()
		}
		t.show(r.payload)
		t.work(len(r.payload))
		inputs = append(inputs, r.payload)
		longest = max(longest, len(r.payload))
	}
	if t.err != nil {
		return null()
	}
	result := make([]byte, longest)
	end := copy(result, inputs[0]) // of what is not 0
	for _, input := range inputs[1:] {
		t.inParts(0, int64(len(input)), 1, func(from, to int64) {
			for i, other := range input[from:to] {
				result[from+int64(i)] = on(result[from+int64(i)], other)
			}
		})
		if on(1, 0) == 0 && len(input) < end { // AND with the zeros behind a string
			clear(result[len(input):end])
			end = len(input)
		}
	}
	if on(1, 0) == ^byte(1) { // NOT, which has one string
		for i := range result {
			result[i] = on(result[i], 0)
		}
	}
	if t.err != nil {
		return null()
	}
	old := t.load(target)
	switch {
	case longest > 0:
		t.setString(target, old, result, 0)
	case old.exists():
		t.remove(target, old)
	}
	return integer(int64(longest))
}
