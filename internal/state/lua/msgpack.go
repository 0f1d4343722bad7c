package lua

import (
	"encoding/binary"
	"math"
)

func packLibrary() *Table {
	return Library(map[string]Value{"_NAME": "cmsgpack", "_VERSION": "lua-cmsgpack 0.4.0"},
		NewFunction("pack", pack),
		NewFunction("unpack", func(c *Call) []Value { return c.unpackSome(c.text(0), 0, -1) }),
		NewFunction("unpack_limit", func(c *Call) []Value { return c.unpackSome(c.text(0), c.intOr(2, 0), c.int(1)) }),
		NewFunction("unpack_one", func(c *Call) []Value { return c.unpackSome(c.text(0), c.intOr(1, 0), 1) }),
	)
}

// maxPacked is how deep tables may be nested; what is deeper becomes nil, as in Redis.
const maxPacked = 16

func pack(c *Call) []Value {
	if len(c.args) == 0 {
		c.bad(-1, "MessagePack pack needs input.")
	}
	p := &packer{builder{State: c.State}}
	for _, v := range c.args {
		p.value(v, 0)
	}
	return one(p.String())
}

type packer struct{ builder }

// head writes a byte and a number of so many bytes behind it.
func (p *packer) head(mark byte, n uint64, bytes int) {
	b := binary.BigEndian.AppendUint64(nil, n)
	p.add(string(append([]byte{mark}, b[8-bytes:]...)))
}

func (p *packer) value(v Value, depth int) {
	p.step()
	switch v := v.(type) {
	case bool:
		if v {
			p.addByte(0xc3)
		} else {
			p.addByte(0xc2)
		}
	case float64:
		p.number(v)
	case string:
		p.text(v)
	case *Table:
		if depth == maxPacked {
			p.addByte(0xc0)
			return
		}
		p.table(v, depth+1)
	default:
		p.addByte(0xc0)
	}
}

func (p *packer) number(f float64) {
	n := int64(f)
	switch {
	case float64(n) != f || f >= 1<<63 || math.IsInf(f, 0):
		if float64(float32(f)) == f {
			p.head(0xca, uint64(math.Float32bits(float32(f))), 4)
		} else {
			p.head(0xcb, math.Float64bits(f), 8)
		}
	case n >= 0 && n <= 127:
		p.addByte(byte(n))
	case n >= 0 && n <= math.MaxUint8:
		p.head(0xcc, uint64(n), 1)
	case n >= 0 && n <= math.MaxUint16:
		p.head(0xcd, uint64(n), 2)
	case n >= 0 && n <= math.MaxUint32:
		p.head(0xce, uint64(n), 4)
	case n >= 0:
		p.head(0xcf, uint64(n), 8)
	case n >= -32:
		p.addByte(byte(int8(n)))
	case n >= math.MinInt8:
		p.head(0xd0, uint64(n), 1)
	case n >= math.MinInt16:
		p.head(0xd1, uint64(n), 2)
	case n >= math.MinInt32:
		p.head(0xd2, uint64(n), 4)
	default:
		p.head(0xd3, uint64(n), 8)
	}
}

func (p *packer) text(s string) {
	switch n := len(s); {
	case n < 32:
		p.addByte(0xa0 | byte(n))
	case n <= math.MaxUint8:
		p.head(0xd9, uint64(n), 1)
	case n <= math.MaxUint16:
		p.head(0xda, uint64(n), 2)
	default:
		p.head(0xdb, uint64(n), 4)
	}
	p.add(s)
}

func (p *packer) table(t *Table, depth int) {
	items, isArray := 0, true
	for key, _, _ := p.following(t, nil); key != nil; key, _, _ = p.following(t, key) {
		p.step()
		items++
		n, is := key.(float64)
		isArray = isArray && is && n >= 1 && n == math.Floor(n)
	}
	if isArray && t.Len() == items {
		p.size(0x90, 0xdc, items)
		for i := 1; i <= items; i++ {
			p.value(t.Get(float64(i)), depth)
		}
		return
	}
	p.size(0x80, 0xde, items)
	for key, value, _ := p.following(t, nil); key != nil; key, value, _ = p.following(t, key) {
		p.value(key, depth)
		p.value(value, depth)
	}
}

func (p *packer) size(short, long byte, n int) {
	switch {
	case n <= 15:
		p.addByte(short | byte(n))
	case n <= math.MaxUint16:
		p.head(long, uint64(n), 2)
	default:
		p.head(long+1, uint64(n), 4)
	}
}

// unpackSome reads values from a place on: so many (negative: all). If that is a limit, where it ends comes first, or -1 at the end.
func (c *Call) unpackSome(source string, from, most int) []Value {
	if from < 0 || from > len(source) {
		c.Fail("Start offset %d greater than input length %d.", from, len(source))
	}
	if most == 0 {
		most = -1
	}
	u := &unpacker{Call: c, source: source, at: from}
	var values []Value
	for n := 0; u.at < len(source) && n != most; n++ {
		c.alloc(2 * itemSize) // a number lies beside its item
		values = append(values, u.value(0))
	}
	if most < 0 {
		return values
	}
	next := float64(u.at)
	if u.at == len(source) {
		next = -1
	}
	return append([]Value{next}, values...)
}

type unpacker struct {
	*Call
	source string
	at     int
}

// take reads so many bytes.
func (u *unpacker) take(n int) string {
	if n < 0 || n > len(u.source)-u.at {
		u.Fail("Missing bytes in input.")
	}
	u.at += n
	return u.source[u.at-n : u.at]
}

// uint reads a number of so many bytes.
func (u *unpacker) uint(bytes int) (n uint64) {
	for _, b := range []byte(u.take(bytes)) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (u *unpacker) value(depth int) Value {
	u.step()
	if depth > maxJSONDepth {
		u.Fail("Bad data format in input.")
	}
	switch b := u.take(1)[0]; {
	case b < 0x80:
		return float64(b)
	case b < 0x90:
		return u.pairs(int(b&15), depth)
	case b < 0xa0:
		return u.array(int(b&15), depth)
	case b < 0xc0:
		return u.take(int(b & 31))
	case b >= 0xe0:
		return float64(int8(b))
	default:
		return u.long(b, depth)
	}
}

// long reads what a byte announces that has no room for it.
func (u *unpacker) long(b byte, depth int) Value {
	switch b {
	case 0xc0:
		return nil
	case 0xc2, 0xc3:
		return b == 0xc3
	case 0xc4, 0xc5, 0xc6:
		return u.take(int(u.uint(1 << (b - 0xc4))))
	case 0xca:
		return float64(math.Float32frombits(uint32(u.uint(4))))
	case 0xcb:
		return math.Float64frombits(u.uint(8))
	case 0xcc, 0xcd, 0xce, 0xcf:
		return float64(u.uint(1 << (b - 0xcc)))
	case 0xd0:
		return float64(int8(u.uint(1)))
	case 0xd1:
		return float64(int16(u.uint(2)))
	case 0xd2:
		return float64(int32(u.uint(4)))
	case 0xd3:
		return float64(int64(u.uint(8)))
	case 0xd9, 0xda, 0xdb:
		return u.take(int(u.uint(1 << (b - 0xd9))))
	case 0xdc, 0xdd:
		return u.array(int(u.uint(2<<(b-0xdc))), depth)
	case 0xde, 0xdf:
		return u.pairs(int(u.uint(2<<(b-0xde))), depth)
	}
	u.Fail("Bad data format in input.")
	return nil
}

func (u *unpacker) array(n, depth int) Value {
	u.alloc(tableSize)
	t := new(Table)
	for i := 1; i <= n; i++ {
		u.put(t, float64(i), u.value(depth+1))
	}
	return t
}

func (u *unpacker) pairs(n, depth int) Value {
	u.alloc(tableSize)
	t := new(Table)
	for range n {
		key := u.value(depth + 1)
		u.put(t, key, u.value(depth+1))
	}
	return t
}
