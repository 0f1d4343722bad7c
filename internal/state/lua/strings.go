package lua

import "strings"

func stringLibrary() *Table {
	each := NewFunction("gmatch", gmatch)
	return Library(map[string]Value{"gfind": each},
		NewFunction("byte", stringByte),
		NewFunction("char", stringChar),
		NewFunction("dump", func(c *Call) []Value { c.Fail("unable to dump given function"); return nil }),
		NewFunction("find", func(c *Call) []Value { return find(c, true) }),
		NewFunction("format", format),
		each,
		NewFunction("gsub", gsub),
		NewFunction("len", func(c *Call) []Value { return one(float64(len(c.text(0)))) }),
		NewFunction("lower", mapped(func(b byte) byte {
			if b >= 'A' && b <= 'Z' {
				return b + 'a' - 'A'
			}
			return b
		})),
		NewFunction("match", func(c *Call) []Value { return find(c, false) }),
		NewFunction("rep", stringRep),
		NewFunction("reverse", stringReverse),
		NewFunction("sub", stringSub),
		NewFunction("upper", mapped(func(b byte) byte {
			if b >= 'a' && b <= 'z' {
				return b - 'a' + 'A'
			}
			return b
		})),
	)
}

// place is a position in a string of a length; a negative one counts from the end.
func place(at, length int) int {
	if at < 0 {
		return max(at+length+1, 0)
	}
	return at
}

// span is a part of a string: from one position to another, cut at its ends.
func (c *Call) span(at, otherwise, length int) (from, to int) {
	from = place(c.intOr(at, otherwise), length)
	to = place(c.intOr(at+1, from), length)
	return max(from, 1), min(to, length)
}

func stringSub(c *Call) []Value {
	s := c.text(0)
	from := max(place(c.int(1), len(s)), 1)
	to := min(place(c.intOr(2, -1), len(s)), len(s))
	if from > to {
		return one("")
	}
	return one(s[from-1 : to]) // which shares its bytes
}

func stringByte(c *Call) []Value {
	s := c.text(0)
	from, to := c.span(1, 1, len(s))
	if from > to {
		return nil
	}
	c.alloc(itemSize * (to - from + 1))
	values := make([]Value, 0, to-from+1)
	for i := from; i <= to; i++ {
		values = append(values, float64(s[i-1]))
	}
	return values
}

func stringChar(c *Call) []Value {
	b := make([]byte, len(c.args))
	c.alloc(len(b))
	for i := range c.args {
		n := c.int(i)
		if n < 0 || n > 255 {
			c.bad(i, "invalid value")
		}
		b[i] = byte(n)
	}
	return one(string(b))
}

func stringRep(c *Call) []Value {
	s, n := c.text(0), c.int(1)
	if n <= 0 || s == "" {
		return one("")
	}
	if n > MaxMemory/len(s) {
		n = MaxMemory/len(s) + 1 // which is refused
	}
	c.alloc(n * len(s))
	return one(strings.Repeat(s, n))
}

func stringReverse(c *Call) []Value {
	s := c.text(0)
	c.alloc(len(s))
	b := make([]byte, len(s))
	for i := range len(s) {
		b[len(s)-1-i] = s[i]
	}
	return one(string(b))
}

// mapped is a function that changes each byte of a string.
func mapped(f func(byte) byte) func(c *Call) []Value {
	return func(c *Call) []Value {
		s := c.text(0)
		c.alloc(len(s))
		b := []byte(s)
		for i := range b {
			b[i] = f(b[i])
		}
		return one(string(b))
	}
}

// find is string.find, and string.match.
func find(c *Call, positions bool) []Value {
	s, pattern := c.text(0), c.text(1)
	from := min(max(place(c.intOr(2, 1), len(s)), 1)-1, len(s))
	c.busy(textWork * len(pattern))
	if positions && (truth(c.arg(3)) || !strings.ContainsAny(pattern, "^$*+?.([%-")) {
		c.busy(len(s) - from)
		at := strings.Index(s[from:], pattern)
		if at < 0 {
			return one(nil)
		}
		return []Value{float64(from + at + 1), float64(from + at + len(pattern))}
	}
	m := &matcher{Call: c, source: s, pattern: pattern}
	anchored := strings.HasPrefix(pattern, "^")
	start := 0
	if anchored {
		start = 1
	}
	for at := from; at <= len(s); at++ {
		m.captures = m.captures[:0]
		if end := m.match(at, start); end >= 0 {
			if positions {
				return append([]Value{float64(at + 1), float64(end)}, m.values(at, end, false)...)
			}
			return m.values(at, end, true)
		}
		if anchored {
			break
		}
	}
	return one(nil)
}

func gmatch(c *Call) []Value {
	s, pattern := c.text(0), c.text(1)
	c.alloc(3 * closureSize)
	at := 0
	return one(NewFunction("gmatch", func(c *Call) []Value {
		for ; at <= len(s); at++ {
			m := &matcher{Call: c, source: s, pattern: pattern}
			if end := m.match(at, 0); end >= 0 {
				start := at
				if at = end; end == start {
					at++
				}
				return m.values(start, end, true)
			}
		}
		return one(nil)
	}))
}

func gsub(c *Call) []Value {
	s, pattern := c.text(0), c.text(1)
	by := c.arg(2)
	switch by.(type) {
	case string, float64, *Table, *Function:
	default:
		c.bad(2, "string/function/table expected")
	}
	most := c.intOr(3, len(s)+1)
	m := &matcher{Call: c, source: s, pattern: pattern}
	start := 0
	if strings.HasPrefix(pattern, "^") {
		start = 1
	}
	b := &builder{State: c.State}
	at, n := 0, 0
	for n < most {
		m.captures = m.captures[:0]
		end := m.match(at, start)
		if end >= 0 {
			n++
			b.add(m.replacement(by, at, end))
		}
		switch {
		case end > at:
			at = end
		case at < len(s):
			b.addByte(s[at])
			at++
		default:
			at++
		}
		if at > len(s) || start == 1 {
			break
		}
	}
	if at < len(s) {
		b.add(s[at:])
	}
	return []Value{b.String(), float64(n)}
}

// replacement is what comes in the place of a match.
func (m *matcher) replacement(by Value, from, to int) string {
	whole := m.source[from:to]
	var v Value
	switch by := by.(type) {
	case *Table:
		v = m.index(by, m.values(from, to, true)[0], m.line, "")
	case *Function:
		v = first(m.call(by, m.values(from, to, true), m.line))
	default:
		t, _ := text(by)
		return m.expand(t, from, to)
	}
	if !truth(v) {
		return whole
	}
	t, is := text(v)
	if !is {
		m.Fail("invalid replacement value (a %s)", typeName(v))
	}
	return t
}

// expand puts captures into a replacement.
func (m *matcher) expand(by string, from, to int) string {
	if !strings.Contains(by, "%") {
		return by
	}
	b := &builder{State: m.State}
	for i := 0; i < len(by); i++ {
		if by[i] != '%' {
			b.addByte(by[i])
			continue
		}
		i++
		switch {
		case i < len(by) && by[i] == '0':
			b.add(m.source[from:to])
		case i < len(by) && isDigit(by[i]):
			t, _ := text(m.value(int(by[i]-'1'), from, to))
			b.add(t)
		case i < len(by):
			b.addByte(by[i])
		default:
			b.addByte(0) // as C reads the end of a string
		}
	}
	return b.String()
}
