package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// format is string.format.
func format(c *Call) []Value {
	pattern := c.text(0)
	b := &builder{State: c.State}
	arg := 0
	for i := 0; i < len(pattern); i++ {
		c.step()
		if pattern[i] != '%' {
			b.addByte(pattern[i])
			continue
		}
		i++
		if i < len(pattern) && pattern[i] == '%' {
			b.addByte('%')
			continue
		}
		d, length := c.directive(pattern[i:])
		i += length
		verb := byte(0)
		if i < len(pattern) {
			verb = pattern[i]
		}
		if arg++; arg >= len(c.args) {
			c.bad(arg, "no value")
		}
		b.add(c.formatted(d, verb, arg))
	}
	return one(b.String())
}

// directive is what stands between % and the letter.
type directive struct {
	flags            string
	width, precision int // negative: none
}

func (c *Call) directive(s string) (d directive, length int) {
	at := 0
	for at < len(s) && strings.IndexByte("-+ #0", s[at]) >= 0 {
		if at++; at > 5 {
			c.Fail("invalid format (repeated flags)")
		}
	}
	d.flags = s[:at]
	d.width, at = twoDigits(s, at)
	d.precision = -1
	if at < len(s) && s[at] == '.' {
		if d.precision, at = twoDigits(s, at+1); d.precision < 0 {
			d.precision = 0
		}
	}
	if at < len(s) && isDigit(s[at]) {
		c.Fail("invalid format (width or precision too long)")
	}
	return d, at
}

func twoDigits(s string, at int) (n, next int) {
	n = -1
	for range 2 {
		if at < len(s) && isDigit(s[at]) {
			n = max(n, 0)*10 + int(s[at]-'0')
			at++
		}
	}
	return n, at
}

func (c *Call) formatted(d directive, verb byte, arg int) string {
	switch verb {
	case 'c':
		return d.padded(string([]byte{byte(c.int(arg))}), false)
	case 'd', 'i':
		n := c.number(arg)
		return d.integer(strconv.FormatInt(int64(math.Abs(n)), 10), n < 0 && int64(n) != 0)
	case 'u', 'o', 'x', 'X':
		return d.unsigned(uint64(int64(c.number(arg))), verb)
	case 'e', 'E', 'f', 'g', 'G':
		return d.double(c.number(arg), verb)
	case 'q':
		return quote(c.text(arg))
	case 's':
		s := c.text(arg)
		if d.precision >= 0 {
			s = s[:min(len(s), d.precision)]
		}
		return d.padded(s, false)
	}
	shown := "%" + d.flags
	if verb != 0 {
		shown += string([]byte{verb})
	}
	c.Fail("invalid option '%s' to 'format'", shown)
	return ""
}

func (d directive) has(flag string) bool { return strings.Contains(d.flags, flag) }

// padded fills up to the width; zeros come behind a sign.
func (d directive) padded(s string, zeros bool) string {
	missing := d.width - len(s)
	if missing <= 0 {
		return s
	}
	switch {
	case d.has("-"):
		return s + strings.Repeat(" ", missing)
	case zeros && d.has("0"):
		sign := 0
		if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
			sign = 1
		}
		if len(s) > sign+1 && (s[sign:sign+2] == "0x" || s[sign:sign+2] == "0X") {
			sign += 2
		}
		return s[:sign] + strings.Repeat("0", missing) + s[sign:]
	}
	return strings.Repeat(" ", missing) + s
}

func (d directive) signed(s string, negative bool) string {
	switch {
	case negative:
		return "-" + s
	case d.has("+"):
		return "+" + s
	case d.has(" "):
		return " " + s
	}
	return s
}

func (d directive) digits(s string) string {
	if d.precision == 0 && s == "0" {
		return ""
	}
	return strings.Repeat("0", max(0, d.precision-len(s))) + s
}

func (d directive) integer(digits string, negative bool) string {
	return d.padded(d.signed(d.digits(digits), negative), d.precision < 0)
}

func (d directive) unsigned(n uint64, verb byte) string {
	base := map[byte]int{'u': 10, 'o': 8, 'x': 16, 'X': 16}[verb]
	s := d.digits(strconv.FormatUint(n, base))
	switch {
	case verb == 'o' && d.has("#") && !strings.HasPrefix(s, "0"):
		s = "0" + s
	case base == 16 && d.has("#") && n != 0:
		s = "0x" + s
	}
	if verb == 'X' {
		s = strings.ToUpper(s)
	}
	return d.padded(s, d.precision < 0)
}

func (d directive) double(n float64, verb byte) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		s := d.signed(strings.TrimPrefix(formatDouble(n, 'g', 6), "-"), math.Signbit(n))
		if verb < 'a' {
			s = strings.ToUpper(s)
		}
		return d.padded(s, false)
	}
	precision := d.precision
	if precision < 0 {
		precision = 6
	}
	var s string
	if d.has("#") {
		s = fmt.Sprintf("%#."+strconv.Itoa(precision)+string(verb), math.Abs(n))
	} else {
		if (verb == 'g' || verb == 'G') && precision == 0 {
			precision = 1
		}
		s = strconv.FormatFloat(math.Abs(n), verb, precision, 64)
	}
	return d.padded(d.signed(s, math.Signbit(n)), true)
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch s[i] {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(s[i])
		case '\r':
			b.WriteString("\\r")
		case 0:
			b.WriteString("\\000")
		default:
			b.WriteByte(s[i])
		}
	}
	b.WriteByte('"')
	return b.String()
}
