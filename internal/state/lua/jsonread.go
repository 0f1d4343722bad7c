package lua

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func jsonDecode(c *Call) []Value {
	if len(c.args) != 1 {
		c.bad(0, "expected 1 argument")
	}
	d := &jsonDecoder{Call: c, source: c.text(0)}
	if len(d.source) >= 2 && (d.source[0] == 0 || d.source[1] == 0) {
		c.Fail("JSON parser does not support UTF-16 or UTF-32")
	}
	d.advance()
	v := d.value(0)
	d.advance()
	if d.kind != "T_END" {
		d.unexpected("the end")
	}
	return one(v)
}

// jsonDecoder reads JSON as cjson does. Its tokens have the names that cjson's errors give them.
type jsonDecoder struct {
	*Call
	source string
	at     int
	start  int // of the token
	kind   string
	v      Value // of a token that is a value
}

func (d *jsonDecoder) unexpected(what string) {
	got := d.kind
	if why, is := d.v.(string); is && d.kind == "T_ERROR" {
		got = why
	}
	d.Fail("Expected %s but found %s at character %d", what, got, d.start+1)
}

var jsonMarks = map[byte]string{'{': "T_OBJ_BEGIN", '}': "T_OBJ_END", '[': "T_ARR_BEGIN", ']': "T_ARR_END", ',': "T_COMMA", ':': "T_COLON"}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// advance reads a token.
func (d *jsonDecoder) advance() {
	d.step()
	before := d.at
	for d.at < len(d.source) && isBlank(d.source[d.at]) {
		d.at++
	}
	d.busy(textWork * (d.at - before))
	d.start, d.v = d.at, nil
	if d.at >= len(d.source) {
		d.kind = "T_END"
		return
	}
	c := d.source[d.at]
	switch {
	case jsonMarks[c] != "":
		d.kind = jsonMarks[c]
		d.at++
	case c == '"':
		d.quoted()
	case c == '-' || isDigit(c):
		d.number()
	default:
		d.word()
	}
}

func (d *jsonDecoder) wrong(why string) { d.kind, d.v = "T_ERROR", why }

func (d *jsonDecoder) word() {
	rest := d.source[d.at:]
	for word, v := range map[string]Value{"true": true, "false": false, "null": Null{}} {
		if strings.HasPrefix(rest, word) {
			d.at += len(word)
			d.kind, d.v = map[string]string{"true": "T_BOOLEAN", "false": "T_BOOLEAN", "null": "T_NULL"}[word], v
			return
		}
	}
	lower := strings.ToLower(rest[:min(len(rest), 8)])
	if d.json.decodeInvalid && (strings.HasPrefix(lower, "nan") || strings.HasPrefix(lower, "inf")) {
		d.kind, d.v = "T_NUMBER", math.Inf(1)
		if lower[0] == 'n' {
			d.v = math.NaN()
		}
		d.at += 3
		if strings.HasPrefix(lower, "infinity") {
			d.at += 5
		}
		return
	}
	d.wrong("invalid token")
}

func (d *jsonDecoder) number() {
	end := d.at + 1
	for end < len(d.source) && (isDigit(d.source[end]) || isLetter(d.source[end]) || strings.IndexByte("+-.", d.source[end]) >= 0) {
		end++
	}
	d.busy(textWork * (end - d.at))
	const longest = 512
	for ; end > d.at && end-d.at < longest; end-- { // as strtod, which reads as far as it is a number
		text := d.source[d.at:end]
		d.busy(textWork * len(text))
		if n, is := parseNumber(text); is {
			digits := strings.TrimPrefix(text, "-")
			if !d.json.decodeInvalid && (len(digits) > 1 && digits[0] == '0' && digits[1] != '.' && digits[1]|0x20 != 'e' || math.IsInf(n, 0)) {
				break
			}
			d.at, d.kind, d.v = end, "T_NUMBER", n
			return
		}
	}
	d.wrong("invalid number")
}

func (d *jsonDecoder) quoted() {
	b := builder{State: d.State}
	for d.at++; ; {
		d.step()
		stop := strings.IndexAny(d.source[d.at:], "\"\\")
		if stop < 0 {
			d.busy(textWork * (len(d.source) - d.at))
			d.start = len(d.source)
			d.wrong("unexpected end of string")
			return
		}
		b.add(d.source[d.at : d.at+stop])
		d.at += stop
		if d.source[d.at] == '"' {
			d.at++
			d.kind, d.v = "T_STRING", b.String()
			return
		}
		if !d.escaped(&b) {
			d.start = d.at
			d.wrong("invalid escape code")
			return
		}
	}
}

func (d *jsonDecoder) escaped(b *builder) bool {
	if d.at+1 >= len(d.source) {
		return false
	}
	c := d.source[d.at+1]
	if c == 'u' {
		return d.unicode(b)
	}
	plain := map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[c]
	if plain == 0 {
		return false
	}
	d.at += 2
	b.addByte(plain)
	return true
}

func (d *jsonDecoder) unicode(b *builder) bool {
	r, ok := d.hex(d.at + 2)
	if !ok {
		return false
	}
	d.at += 6
	if utf16.IsSurrogate(r) {
		if !strings.HasPrefix(d.source[d.at:], "\\u") {
			return false
		}
		second, ok := d.hex(d.at + 2)
		if r = utf16.DecodeRune(r, second); !ok || r == utf8.RuneError {
			return false
		}
		d.at += 6
	}
	b.add(string(r))
	return true
}

func (d *jsonDecoder) hex(at int) (rune, bool) {
	if at+4 > len(d.source) {
		return 0, false
	}
	n, err := strconv.ParseUint(d.source[at:at+4], 16, 16)
	return rune(n), err == nil
}

// value is that of the token, which may begin more.
func (d *jsonDecoder) value(depth int) Value {
	switch d.kind {
	case "T_STRING", "T_NUMBER", "T_BOOLEAN", "T_NULL":
		return d.v
	case "T_OBJ_BEGIN", "T_ARR_BEGIN":
	default:
		d.unexpected("value")
	}
	if depth++; depth > d.json.decodeDepth {
		d.Fail("Found too many nested data structures (%d) at character %d", depth, d.start+1)
	}
	d.alloc(tableSize)
	if d.kind == "T_ARR_BEGIN" {
		return d.array(depth)
	}
	return d.object(depth)
}

func (d *jsonDecoder) array(depth int) Value {
	t := new(Table)
	if d.advance(); d.kind == "T_ARR_END" {
		return t
	}
	for i := 1; ; i++ {
		d.put(t, float64(i), d.value(depth))
		switch d.advance(); d.kind {
		case "T_ARR_END":
			return t
		case "T_COMMA":
			d.advance()
		default:
			d.unexpected("comma or array end")
		}
	}
}

func (d *jsonDecoder) object(depth int) Value {
	t := new(Table)
	if d.advance(); d.kind == "T_OBJ_END" {
		return t
	}
	for {
		if d.kind != "T_STRING" {
			d.unexpected("object key string")
		}
		key := d.v
		if d.advance(); d.kind != "T_COLON" {
			d.unexpected("colon")
		}
		d.advance()
		d.put(t, key, d.value(depth))
		switch d.advance(); d.kind {
		case "T_OBJ_END":
			return t
		case "T_COMMA":
			d.advance()
		default:
			d.unexpected("comma or object end")
		}
	}
}
