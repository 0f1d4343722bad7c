package lua

import "strings"

// matcher matches Lua's patterns. Each step of it is one of the script's.
type matcher struct {
	*Call
	source, pattern string
	captures        []span
	depth           int
}

// span is a capture: where it begins, and how long it is.
type span struct{ from, length int }

// What a capture's length is while it is open, and of one that is a position.
const (
	open       = -1
	atPosition = -2
)

const (
	maxCaptures = 32
	maxMatching = 1000 // levels of a match that are at work
)

// match matches the pattern from p on at a place of the source, and returns where that ends; negative: it does not match.
func (m *matcher) match(at, p int) int {
	if m.depth++; m.depth > maxMatching {
		m.Fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for p < len(m.pattern) {
		m.step()
		switch c := m.pattern[p]; {
		case c == '(' && p+1 < len(m.pattern) && m.pattern[p+1] == ')':
			return m.begin(at, p+2, atPosition)
		case c == '(':
			return m.begin(at, p+1, open)
		case c == ')':
			return m.finish(at, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if at == len(m.source) {
				return at
			}
			return -1
		case c == '%':
			if end, next, is := m.special(at, p); is && end < 0 {
				return -1
			} else if is {
				at, p = end, next
				continue
			}
		}
		next := m.classEnd(p)
		switch m.quantity(next) {
		case '?':
			if m.single(at, p, next) {
				if end := m.match(at+1, next+1); end >= 0 {
					return end
				}
			}
			p = next + 1
		case '+':
			if !m.single(at, p, next) {
				return -1
			}
			return m.longest(at+1, p, next)
		case '*':
			return m.longest(at, p, next)
		case '-':
			return m.shortest(at, p, next)
		default:
			if !m.single(at, p, next) {
				return -1
			}
			at, p = at+1, next
		}
	}
	return at
}

// quantity is the letter at a place of the pattern; 0 at its end.
func (m *matcher) quantity(p int) byte {
	if p < len(m.pattern) {
		return m.pattern[p]
	}
	return 0
}

// special matches what begins with % and is no class, and returns where that ends, and its pattern.
func (m *matcher) special(at, p int) (end, next int, is bool) {
	if p+1 == len(m.pattern) {
		return at, p, false
	}
	switch c := m.pattern[p+1]; {
	case c == 'b':
		return m.balanced(at, p+2), p + 4, true
	case c == 'f':
		next, matches := m.frontier(at, p+2)
		if !matches {
			at = -1
		}
		return at, next, true
	case isDigit(c):
		return m.back(at, int(c-'1')), p + 2, true
	}
	return at, p, false
}

func (m *matcher) begin(at, p, length int) int {
	if len(m.captures) >= maxCaptures {
		m.Fail("too many captures")
	}
	n := len(m.captures)
	m.captures = append(m.captures, span{at, length})
	end := m.match(at, p)
	if end < 0 {
		m.captures = m.captures[:n]
	}
	return end
}

func (m *matcher) finish(at, p int) int {
	for i := len(m.captures) - 1; i >= 0; i-- {
		if m.captures[i].length != open {
			continue
		}
		m.captures[i].length = at - m.captures[i].from
		end := m.match(at, p)
		if end < 0 {
			m.captures[i].length = open
		}
		return end
	}
	m.Fail("invalid pattern capture")
	return -1
}

func (m *matcher) longest(at, p, next int) int {
	n := 0
	for m.single(at+n, p, next) {
		m.step()
		n++
	}
	for ; n >= 0; n-- {
		if end := m.match(at+n, next+1); end >= 0 {
			return end
		}
	}
	return -1
}

func (m *matcher) shortest(at, p, next int) int {
	for {
		m.step()
		if end := m.match(at, next+1); end >= 0 {
			return end
		}
		if !m.single(at, p, next) {
			return -1
		}
		at++
	}
}

// balanced matches %bxy.
func (m *matcher) balanced(at, p int) int {
	if p+1 >= len(m.pattern) {
		m.Fail("unbalanced pattern")
	}
	opening, closing := m.pattern[p], m.pattern[p+1]
	if at >= len(m.source) || m.source[at] != opening {
		return -1
	}
	for i, level := at+1, 1; i < len(m.source); i++ {
		m.step()
		switch m.source[i] {
		case closing:
			if level--; level == 0 {
				return i + 1
			}
		case opening:
			level++
		}
	}
	return -1
}

// frontier matches %f[set].
func (m *matcher) frontier(at, p int) (next int, matches bool) {
	if p >= len(m.pattern) || m.pattern[p] != '[' {
		m.Fail("missing '[' after '%%f' in pattern")
	}
	next = m.classEnd(p)
	before, here := byte(0), byte(0)
	if at > 0 {
		before = m.source[at-1]
	}
	if at < len(m.source) {
		here = m.source[at]
	}
	return next, !m.inSet(before, p, next-1) && m.inSet(here, p, next-1)
}

// back matches what a capture was.
func (m *matcher) back(at, capture int) int {
	if capture < 0 || capture >= len(m.captures) || m.captures[capture].length == open {
		m.Fail("invalid capture index")
	}
	c := m.captures[capture]
	if c.length < 0 {
		return -1
	}
	m.busy(c.length)
	if !strings.HasPrefix(m.source[at:], m.source[c.from:c.from+c.length]) {
		return -1
	}
	return at + c.length
}

// classEnd is where the class that begins at p ends.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	if c == '%' {
		if p >= len(m.pattern) {
			m.Fail("malformed pattern (ends with '%%')")
		}
		return p + 1
	}
	if c != '[' {
		return p
	}
	if p < len(m.pattern) && m.pattern[p] == '^' {
		p++
	}
	for first := true; ; first = false {
		m.step()
		if p >= len(m.pattern) {
			m.Fail("malformed pattern (missing ']')")
		}
		c := m.pattern[p]
		if c == ']' && !first {
			return p + 1
		}
		p++
		if c == '%' {
			p++
		}
	}
}

// single says whether a class, of which next is the end, is of one byte.
func (m *matcher) single(at, p, next int) bool {
	if at >= len(m.source) {
		return false
	}
	c := m.source[at]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, next-1)
	}
	return m.pattern[p] == c
}

// inSet says whether a byte is in the set between two brackets.
func (m *matcher) inSet(c byte, p, last int) bool {
	m.busy(last - p)
	in := true
	if p++; m.pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if inClass(c, m.pattern[p]) {
				return in
			}
		case p+2 < last && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 2
		case m.pattern[p] == c:
			return in
		}
	}
	return !in
}

// inClass says whether a byte is in a class such as %a.
func inClass(c, class byte) bool {
	lower := class | 0x20
	letter := c|0x20 >= 'a' && c|0x20 <= 'z'
	printed := c > ' ' && c < 0x7f
	var in bool
	switch lower {
	case 'a':
		in = letter
	case 'c':
		in = c < ' ' || c == 0x7f
	case 'd':
		in = isDigit(c)
	case 'l':
		in = letter && c >= 'a'
	case 'p':
		in = printed && !letter && !isDigit(c)
	case 's':
		in = isSpace(c)
	case 'u':
		in = letter && c < 'a'
	case 'w':
		in = letter || isDigit(c)
	case 'x':
		in = isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if class < 'a' { // a capital letter
		return !in
	}
	return in
}

// values are the captures of a match; of one without any, the match itself if it is wanted.
func (m *matcher) values(from, to int, wanted bool) []Value {
	n := len(m.captures)
	if n == 0 && wanted {
		n = 1
	}
	values := make([]Value, n)
	for i := range values {
		values[i] = m.value(i, from, to)
	}
	return values
}

func (m *matcher) value(i, from, to int) Value {
	if i >= len(m.captures) {
		if i != 0 {
			m.Fail("invalid capture index")
		}
		return m.source[from:to]
	}
	switch c := m.captures[i]; c.length {
	case open:
		m.Fail("unfinished capture")
	case atPosition:
		return float64(c.from + 1)
	default:
		return m.source[c.from : c.from+c.length]
	}
	return nil
}
