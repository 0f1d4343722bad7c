package command

import (
	"bytes"
	"math"

	"forerun.dev/forerun/internal/state"
)

// bitInteger is an integer in a string: some bits from a place on.
type bitInteger struct {
	signed bool
	width  int64
	at     int64
}

// overflow is what becomes of an integer that does not fit.
type overflow byte

const (
	wrap overflow = iota
	saturate
	fail
)

// workOfStep is the work of a subcommand of BITFIELD, which goes over 64 bits at most.
const workOfStep = 64

// bitStep is one subcommand of BITFIELD.
type bitStep struct {
	verb     byte // 'g'et, 's'et or 'i'ncrease
	integer  bitInteger
	value    int64
	overflow overflow
}

// parseBitSteps reads the subcommands of BITFIELD. OVERFLOW holds for those behind it.
func parseBitSteps(args [][]byte) (steps []bitStep, refusal *state.Reply) {
	how := wrap
	for len(args) > 0 {
		step := bitStep{overflow: how}
		length := 4
		switch {
		case is(args[0], "GET") && len(args) > 2:
			step.verb, length = 'g', 3
		case is(args[0], "SET") && len(args) > 3:
			step.verb = 's'
		case is(args[0], "INCRBY") && len(args) > 3:
			step.verb = 'i'
		case is(args[0], "OVERFLOW") && len(args) > 1:
			if how, refusal = parseOverflow(args[1]); refusal != nil {
				return nil, refusal
			}
			args = args[2:]
			continue
		default:
			return nil, refuse("ERR syntax error")
		}
		if step.integer, refusal = parseBitInteger(args[1], args[2]); refusal != nil {
			return nil, refusal
		}
		if step.verb != 'g' {
			if step.value, refusal = parseWithin(args[3], math.MinInt64, math.MaxInt64, ""); refusal != nil {
				return nil, refusal
			}
		}
		steps = append(steps, step)
		args = args[length:]
	}
	return steps, nil
}

// onlyGets says whether no subcommand of BITFIELD writes.
func onlyGets(args [][]byte) bool {
	for len(args) > 0 {
		switch {
		case is(args[0], "GET") && len(args) > 2:
			args = args[3:]
		case is(args[0], "OVERFLOW") && len(args) > 1:
			args = args[2:]
		default:
			return false
		}
	}
	return true
}

func parseOverflow(arg []byte) (overflow, *state.Reply) {
	for how, name := range []string{wrap: "WRAP", saturate: "SAT", fail: "FAIL"} {
		if is(arg, name) {
			return overflow(how), nil
		}
	}
	return wrap, refuse("ERR Invalid OVERFLOW type specified")
}

func parseBitInteger(kind, at []byte) (i bitInteger, refusal *state.Reply) {
	refusal = refuse("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
	if len(kind) < 2 || kind[0] != 'i' && kind[0] != 'u' {
		return i, refusal
	}
	i.signed = kind[0] == 'i'
	most := int64(63)
	if i.signed {
		most = 64
	}
	var isInt bool
	if i.width, isInt = parseInt(kind[1:]); !isInt || i.width < 1 || i.width > most {
		return i, refusal
	}
	i.at, refusal = bitOffset(at, i.width)
	return i, refusal
}

func bitfield(t *txn, args [][]byte) state.Reply {
	steps, refusal := parseBitSteps(args[2:])
	if refusal != nil {
		return *refusal
	}
	r, typed := t.typed(args[1], state.String)
	if !typed {
		return wrongType()
	}
	last := int64(-1) // bit that is written
	for _, step := range steps {
		if step.verb != 'g' {
			last = max(last, step.integer.at+step.integer.width-1)
		}
	}
	data := r.payload
	if last >= 0 {
		if data = t.grown(data, last/8+1); t.err != nil {
			return null()
		}
	}
	if t.work(workOfStep * len(steps)); t.err != nil {
		return null()
	}
	items := make([]state.Reply, 0, len(steps))
	for _, step := range steps {
		items = append(items, step.run(data))
	}
	if !bytes.Equal(data, r.payload) {
		t.setString(args[1], r, data, r.expires)
	}
	return array(items)
}

func bitfieldRO(t *txn, args [][]byte) state.Reply {
	steps, refusal := parseBitSteps(args[2:])
	if refusal != nil {
		return *refusal
	}
	for _, step := range steps {
		if step.verb != 'g' {
			return failure("ERR BITFIELD_RO only supports the GET subcommand")
		}
	}
	return bitfield(t, args)
}

// run carries out a step on a string that is long enough for what it writes.
func (s bitStep) run(data []byte) state.Reply {
	old := s.integer.get(data)
	answer, base, by := old, s.value, int64(0)
	switch s.verb {
	case 'g':
		return integer(old)
	case 'i':
		base, by = old, s.value
	}
	next, fits := s.integer.add(base, by, s.overflow)
	if !fits && s.overflow == fail {
		return null()
	}
	if s.verb == 'i' {
		answer = next
	}
	s.integer.set(data, next)
	return integer(answer)
}

func (i bitInteger) get(data []byte) int64 {
	var n uint64
	for bit := range i.width {
		n = n<<1 | uint64(bitAt(data, i.at+bit))
	}
	return i.cut(n)
}

// cut makes an integer of the lowest bits.
func (i bitInteger) cut(n uint64) int64 {
	shift := 64 - i.width
	if i.signed {
		return int64(n<<shift) >> shift
	}
	return int64(n << shift >> shift)
}

func (i bitInteger) set(data []byte, n int64) {
	for bit := range i.width {
		setBitAt(data, i.at+bit, byte(uint64(n)>>(i.width-1-bit)&1))
	}
}

// add is the sum as it fits the integer; fits is false if overflow had to say how.
func (i bitInteger) add(a, b int64, how overflow) (sum int64, fits bool) {
	low, high := i.limits()
	sum = a + b
	above := a > high || b > 0 && a > high-b || !i.signed && a < 0 // to Redis that is a large unsigned number
	below := a < low || b < 0 && (i.signed && a < low-b || !i.signed && b < -a)
	switch {
	case !above && !below:
		return sum, true
	case how == saturate && above:
		return high, false
	case how == saturate:
		return low, false
	}
	return i.cut(uint64(sum)), false
}

func (i bitInteger) limits() (low, high int64) {
	if i.signed {
		return -1 << (i.width - 1), 1<<(i.width-1) - 1
	}
	return 0, 1<<i.width - 1
}
