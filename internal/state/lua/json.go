package lua

import (
	"fmt"
	"math"
)

// jsonSettings are those of cjson, which last as long as the run.
type jsonSettings struct {
	convertSparse           bool // to objects
	sparseRatio, sparseSafe int  // an array is sparse that is longer than safe and so many times its elements
	encodeDepth             int
	decodeDepth             int
	precision               int
	encodeInvalid           string // what becomes of NaN and infinity: "off", "on" or "null"
	decodeInvalid           bool
}

var defaultJSON = jsonSettings{sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000, precision: 14, encodeInvalid: "off", decodeInvalid: true}

func jsonLibrary() *Table {
	return Library(map[string]Value{"null": Null{}, "_NAME": "cjson", "_VERSION": "2.1.0"},
		NewFunction("decode", jsonDecode),
		NewFunction("decode_invalid_numbers", func(c *Call) []Value {
			if c.arg(0) != nil {
				c.json.decodeInvalid = truth(c.arg(0))
			}
			return one(c.json.decodeInvalid)
		}),
		NewFunction("decode_max_depth", jsonNumber(func(s *jsonSettings) *int { return &s.decodeDepth }, 1, maxJSONDepth)),
		NewFunction("encode", jsonEncode),
		NewFunction("encode_invalid_numbers", encodeInvalid),
		NewFunction("encode_keep_buffer", func(c *Call) []Value { return one(c.arg(0) == nil || truth(c.arg(0))) }),
		NewFunction("encode_max_depth", jsonNumber(func(s *jsonSettings) *int { return &s.encodeDepth }, 1, maxJSONDepth)),
		NewFunction("encode_number_precision", jsonNumber(func(s *jsonSettings) *int { return &s.precision }, 1, 14)),
		NewFunction("encode_sparse_array", encodeSparse),
		NewFunction("new", func(c *Call) []Value {
			c.alloc(librarySize)
			return one(jsonLibrary())
		}),
	)
}

// librarySize is more than cjson's table with its functions takes.
const librarySize = 8 << 10

// maxJSONDepth is how deep scripts may have JSON nested: the interpreter goes down as deep.
const maxJSONDepth = 1000

// jsonNumber is a function that sets a number within bounds, and returns it.
func jsonNumber(of func(*jsonSettings) *int, least, most int) func(c *Call) []Value {
	return func(c *Call) []Value {
		n := of(&c.json)
		if c.arg(0) != nil {
			given := c.int(0)
			if given < least || given > most {
				c.bad(0, "expected integer between %d and %d", least, most)
			}
			*n = given
		}
		return one(float64(*n))
	}
}

func encodeInvalid(c *Call) []Value {
	switch given := c.arg(0); given {
	case nil:
	case true, "on":
		c.json.encodeInvalid = "on"
	case false, "off":
		c.json.encodeInvalid = "off"
	case "null":
		c.json.encodeInvalid = "null"
	default:
		c.bad(0, "invalid option '%s'", c.text(0))
	}
	if c.json.encodeInvalid == "null" {
		return one("null")
	}
	return one(c.json.encodeInvalid == "on")
}

func encodeSparse(c *Call) []Value {
	if c.arg(0) != nil {
		c.json.convertSparse = truth(c.arg(0))
	}
	c.json.sparseRatio = max(c.intOr(1, c.json.sparseRatio), 0)
	c.json.sparseSafe = max(c.intOr(2, c.json.sparseSafe), 0)
	return []Value{c.json.convertSparse, float64(c.json.sparseRatio), float64(c.json.sparseSafe)}
}

func jsonEncode(c *Call) []Value {
	if len(c.args) != 1 {
		c.bad(0, "expected 1 argument")
	}
	e := &jsonEncoder{builder{State: c.State}}
	e.value(c.args[0], 0)
	return one(e.String())
}

type jsonEncoder struct{ builder }

func (e *jsonEncoder) value(v Value, depth int) {
	e.step()
	switch v := v.(type) {
	case nil, Null:
		e.add("null")
	case bool:
		e.add(e.show(v))
	case float64:
		e.number(v)
	case string:
		e.quoted(v)
	case *Table:
		if depth++; depth > e.json.encodeDepth {
			e.Fail("Cannot serialise, excessive nesting (%d)", depth)
		}
		e.table(v, depth)
	default:
		e.Fail("Cannot serialise %s: type not supported", typeName(v))
	}
}

func (e *jsonEncoder) number(n float64) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		switch e.json.encodeInvalid {
		case "off":
			e.Fail("Cannot serialise number: must not be NaN or Inf")
		case "null":
			e.add("null")
			return
		}
	}
	e.add(formatDouble(n, 'g', e.json.precision))
}

func (e *jsonEncoder) quoted(s string) {
	e.addByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '/':
			e.addByte('\\')
			e.addByte(c)
		case '\b':
			e.add("\\b")
		case '\t':
			e.add("\\t")
		case '\n':
			e.add("\\n")
		case '\f':
			e.add("\\f")
		case '\r':
			e.add("\\r")
		default:
			if c < ' ' || c == 0x7f {
				e.add(fmt.Sprintf("\\u%04x", c))
			} else {
				e.addByte(c)
			}
		}
	}
	e.addByte('"')
}

// arrayLength is how long an array a table is; negative: it is an object.
func (e *jsonEncoder) arrayLength(t *Table) int {
	most, items := 0, 0
	for key, _, _ := e.following(t, nil); key != nil; key, _, _ = e.following(t, key) {
		e.step()
		n, is := key.(float64)
		if !is || n < 1 || n != math.Floor(n) || n > math.MaxInt32 {
			return -1
		}
		most = max(most, int(n))
		items++
	}
	if items == 0 {
		return -1
	}
	if e.json.sparseRatio > 0 && most > items*e.json.sparseRatio && most > e.json.sparseSafe {
		if !e.json.convertSparse {
			e.Fail("Cannot serialise table: excessively sparse array")
		}
		return -1
	}
	return most
}

func (e *jsonEncoder) table(t *Table, depth int) {
	if n := e.arrayLength(t); n >= 0 {
		e.addByte('[')
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.addByte(',')
			}
			e.value(t.Get(float64(i)), depth)
		}
		e.addByte(']')
		return
	}
	e.addByte('{')
	comma := false
	for key, value, _ := e.following(t, nil); key != nil; key, value, _ = e.following(t, key) {
		if comma {
			e.addByte(',')
		}
		comma = true
		switch key := key.(type) {
		case string:
			e.quoted(key)
		case float64:
			e.addByte('"')
			e.number(key)
			e.addByte('"')
		default:
			e.Fail("Cannot serialise %s: table key must be a number or string", typeName(key))
		}
		e.addByte(':')
		e.value(value, depth)
	}
	e.addByte('}')
}
