package lua

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

func structLibrary() *Table {
	return Library(nil,
		NewFunction("pack", structPack),
		NewFunction("size", structSize),
		NewFunction("unpack", structUnpack),
	)
}

// layout reads the format of struct's functions.
type layout struct {
	*Call
	format string
	big    bool
	align  int
}

// item is one of a format: its letter, its size and the bytes before it that align it.
type item struct {
	verb      byte
	size, pad int
}

// number reads the digits of a format.
func (l *layout) number(otherwise int) int {
	if l.format == "" || !isDigit(l.format[0]) {
		return otherwise
	}
	n := 0
	for l.format != "" && isDigit(l.format[0]) {
		if n = n*10 + int(l.format[0]-'0'); n > math.MaxInt32 {
			l.Fail("integral size overflow")
		}
		l.format = l.format[1:]
	}
	return n
}

// next is the next item, at so many bytes behind the beginning; ok is false at the end.
func (l *layout) next(at int) (it item, ok bool) {
	for l.format != "" {
		l.step()
		it = item{verb: l.format[0]}
		l.format = l.format[1:]
		switch it.verb {
		case ' ':
			continue
		case '<', '>':
			l.big = it.verb == '>'
			continue
		case '!':
			l.align = l.number(8)
			if l.align <= 0 || l.align&(l.align-1) != 0 {
				l.Fail("alignment is not a power of 2")
			}
			continue
		case 'b', 'B', 'x':
			it.size = 1
		case 'h', 'H':
			it.size = 2
		case 'l', 'L', 'T', 'd':
			it.size = 8
		case 'f':
			it.size = 4
		case 'i', 'I':
			if it.size = l.number(4); it.size > 8 {
				l.Fail("integral size %d is larger than limit of %d", it.size, 32)
			}
		case 'c':
			it.size = l.number(1)
		case 's':
		default:
			l.bad(0, "invalid format option '%s'", string([]byte{it.verb}))
		}
		if align := min(it.size, l.align); align > 1 && it.verb != 'c' {
			it.pad = (align - at&(align-1)) & (align - 1)
		}
		return it, true
	}
	return it, false
}

func structPack(c *Call) []Value {
	l := &layout{Call: c, format: c.text(0), align: 1}
	b := &builder{State: c.State}
	arg := 1
	for it, ok := l.next(b.Len()); ok; it, ok = l.next(b.Len()) {
		c.alloc(it.pad)
		b.WriteString(strings.Repeat("\x00", it.pad))
		switch {
		case it.verb == 'x':
			b.addByte(0)
			continue
		case it.verb == 's':
			b.add(c.text(arg))
			b.addByte(0)
		case it.verb == 'c':
			s := c.text(arg)
			if it.size == 0 {
				it.size = len(s)
			}
			if len(s) < it.size {
				c.bad(arg+1, "string too short")
			}
			b.add(s[:it.size])
		case it.verb == 'f':
			b.add(l.bytes(uint64(math.Float32bits(float32(c.number(arg)))), 4))
		case it.verb == 'd':
			b.add(l.bytes(math.Float64bits(c.number(arg)), 8))
		default:
			b.add(l.bytes(packedInteger(c.number(arg)), it.size))
		}
		arg++
	}
	return one(b.String())
}

// packedInteger is a number in two's complement.
func packedInteger(f float64) uint64 {
	if f < 0 {
		return uint64(int64(f))
	}
	return uint64(f)
}

func (l *layout) bytes(n uint64, size int) string {
	b := binary.LittleEndian.AppendUint64(nil, n)[:size]
	if l.big {
		slices.Reverse(b)
	}
	return string(b)
}

func structSize(c *Call) []Value {
	l := &layout{Call: c, format: c.text(0), align: 1}
	total := 0
	for it, ok := l.next(total); ok; it, ok = l.next(total) {
		switch {
		case it.verb == 's':
			c.bad(0, "option 's' has no fixed size")
		case it.verb == 'c' && it.size == 0:
			c.bad(0, "option 'c0' has no fixed size")
		}
		total += it.pad + it.size
	}
	return one(float64(total))
}

func structUnpack(c *Call) []Value {
	l := &layout{Call: c, format: c.text(0), align: 1}
	source := c.text(1)
	at := c.intOr(2, 1) - 1
	if at < 0 {
		c.bad(2, "offset must be 1 or greater")
	}
	var values []Value
	for it, ok := l.next(at); ok; it, ok = l.next(at) {
		at += it.pad
		if at > len(source) || it.size > len(source)-at {
			c.bad(1, "data string too short")
		}
		c.alloc(2 * itemSize) // a number lies beside its item
		part := source[at : at+it.size]
		switch {
		case it.verb == 'x':
			at++
			continue
		case it.verb == 's':
			end := strings.IndexByte(source[at:], 0)
			if end < 0 {
				c.busy(len(source) - at)
				c.Fail("unfinished string in data")
			}
			c.busy(end)
			values = append(values, source[at:at+end])
			it.size = end + 1
		case it.verb == 'c' && it.size == 0:
			it.size = c.lengthBefore(&values)
			if it.size > len(source)-at {
				c.bad(1, "data string too short")
			}
			values = append(values, source[at:at+it.size])
		case it.verb == 'c':
			values = append(values, part)
		case it.verb == 'f':
			values = append(values, float64(math.Float32frombits(uint32(l.integer(part)))))
		case it.verb == 'd':
			values = append(values, math.Float64frombits(l.integer(part)))
		default:
			values = append(values, l.signed(part, it.verb))
		}
		at += it.size
	}
	return append(values, float64(at+1))
}

// lengthBefore takes the length of a string from the values before it.
func (c *Call) lengthBefore(values *[]Value) int {
	last := len(*values) - 1
	if last < 0 {
		c.Fail("format 'c0' needs a previous size")
	}
	n, is := (*values)[last].(float64)
	if !is || n < 0 {
		c.Fail("format 'c0' needs a previous size")
	}
	*values = (*values)[:last]
	return whole(n)
}

func (l *layout) integer(part string) (n uint64) {
	for i := range len(part) {
		c := part[len(part)-1-i]
		if l.big {
			c = part[i]
		}
		n = n<<8 | uint64(c)
	}
	return n
}

func (l *layout) signed(part string, verb byte) float64 {
	n := l.integer(part)
	if strings.IndexByte("BHLTI", verb) >= 0 {
		return float64(n)
	}
	free := 64 - 8*len(part)
	return float64(int64(n<<free) >> free)
}
