package lua

import (
	"math"
	"sync"
)

// standard is what every script sees. Nothing in it can be changed.
var standard struct {
	once    sync.Once // makes the rest
	library *Table
	strings *Table    // the metatable of strings
	strict  *Table    // that of the globals: one that is not there is an error, as in Redis
	next    *Function // which loops know
	iterate *Function // what ipairs returns
}

func library() *Table {
	standard.once.Do(makeStandard)
	return standard.library
}

func stringMeta() *Table {
	standard.once.Do(makeStandard)
	return standard.strings
}

func makeStandard() {
	ofStrings := stringLibrary()
	standard.strings = Library(map[string]Value{"__index": ofStrings})
	standard.strict = Library(nil, NewFunction("__index", nonexistent))
	standard.next = NewFunction("next", nextPair)
	standard.iterate = NewFunction("ipairs", nextItem)
	standard.library = Library(map[string]Value{
		"_VERSION": "Lua 5.1", "string": ofStrings, "table": tableLibrary(), "math": mathLibrary(),
		"bit": bitLibrary(), "cjson": jsonLibrary(), "cmsgpack": packLibrary(), "struct": structLibrary(),
	},
		NewFunction("assert", assert),
		NewFunction("collectgarbage", collectGarbage),
		NewFunction("error", throwError),
		NewFunction("gcinfo", func(c *Call) []Value { return one(math.Floor(float64(c.bytes) / 1024)) }),
		NewFunction("getmetatable", getMetatable),
		NewFunction("ipairs", func(c *Call) []Value { return []Value{standard.iterate, c.table(0), 0.0} }),
		NewFunction("load", load),
		NewFunction("loadstring", loadString),
		standard.next,
		NewFunction("pairs", func(c *Call) []Value { return []Value{standard.next, c.table(0), nil} }),
		NewFunction("pcall", pcall),
		NewFunction("rawequal", func(c *Call) []Value { return one(c.same(c.any(0), c.any(1))) }),
		NewFunction("rawget", func(c *Call) []Value { return one(c.get(c.table(0), c.any(1))) }),
		NewFunction("rawset", rawSet),
		NewFunction("select", selectArgs),
		NewFunction("setmetatable", setMetatable),
		NewFunction("tonumber", toNumberBase),
		NewFunction("tostring", func(c *Call) []Value { return one(c.tostring(c.any(0))) }),
		NewFunction("type", func(c *Call) []Value { return one(typeName(c.any(0))) }),
		NewFunction("unpack", unpack),
		NewFunction("xpcall", xpcall),
	)
}

func nonexistent(c *Call) []Value {
	c.Fail("Script attempted to access nonexistent global variable '%s'", c.show(c.arg(1)))
	return nil
}

func nextPair(c *Call) []Value {
	key, value, ok := c.following(c.table(0), c.arg(1))
	if !ok {
		c.fail(c.line, "invalid key to 'next'")
	}
	if key == nil {
		return one(nil)
	}
	return []Value{key, value}
}

func nextItem(c *Call) []Value {
	i := c.number(1) + 1
	v := c.table(0).Get(i)
	if v == nil {
		return one(nil)
	}
	return []Value{i, v}
}

func (s *State) tostring(v Value) string {
	if t, is := v.(*Table); is && t.meta != nil {
		if handler := t.meta.Get("__tostring"); handler != nil {
			result := first(s.call(handler, []Value{v}, s.line))
			shown, is := text(result)
			if !is {
				s.Fail("'tostring' must return a string to 'print'")
			}
			return shown
		}
	}
	shown := s.show(v)
	s.alloc(len(shown))
	return shown
}

func assert(c *Call) []Value {
	if truth(c.any(0)) {
		return c.args
	}
	message := "assertion failed!"
	if c.arg(1) != nil {
		message = c.text(1)
	}
	c.Fail("%s", message)
	return nil
}

// throwError throws a value; a message gets the place of the caller, or of its caller.
func throwError(c *Call) []Value {
	v := c.arg(0)
	level := c.intOr(1, 1)
	if message, is := text(v); is && level > 0 && (level > 1 || !c.below) {
		line := c.line
		if level > 1 {
			at := len(c.callers) - level + 1
			if at <= 0 { // the script itself has no caller
				c.Throw(message)
			}
			line = c.callers[at]
		}
		c.alloc(len(message))
		c.Throw(c.where(line) + message)
	}
	c.Throw(v)
	return nil
}

func collectGarbage(c *Call) []Value {
	switch c.arg(0) {
	case "count":
		return one(float64(c.bytes) / 1024)
	case nil, "collect", "stop", "restart", "step", "setpause", "setstepmul":
		return one(0.0)
	}
	c.bad(0, "invalid option '%s'", c.text(0))
	return nil
}

func getMetatable(c *Call) []Value {
	switch v := c.any(0).(type) {
	case *Table:
		if v.meta == nil {
			return one(nil)
		}
		if hidden := v.meta.Get("__metatable"); hidden != nil {
			return one(hidden)
		}
		return one(v.meta)
	case string:
		return one(stringMeta())
	}
	return one(nil)
}

func setMetatable(c *Call) []Value {
	t := c.table(0)
	meta, is := c.arg(1).(*Table)
	if !is && (c.arg(1) != nil || len(c.args) < 2) {
		c.bad(1, "nil or table expected")
	}
	switch {
	case t.fixed:
		c.fail(c.line, "Attempt to modify a readonly table")
	case t.meta != nil && t.meta.Get("__metatable") != nil:
		c.Fail("cannot change a protected metatable")
	}
	t.meta = meta
	return one(t)
}

func rawSet(c *Call) []Value {
	t := c.table(0)
	c.put(t, c.any(1), c.any(2))
	return one(t)
}

// load compiles what a function gives piece by piece.
func load(c *Call) []Value {
	f := c.function(0)
	b := builder{State: c.State}
	for {
		piece := first(c.call(f, nil, c.line))
		if piece == nil || piece == "" {
			return c.compile(b.String(), c.arg(1))
		}
		part, is := piece.(string)
		if !is {
			return []Value{nil, "reader function must return a string"}
		}
		b.add(part)
	}
}

func loadString(c *Call) []Value { return c.compile(c.text(0), c.arg(1)) }

// compiledSize is about what a byte of a script takes when it is compiled.
const compiledSize = 64

func (c *Call) compile(source string, named Value) []Value {
	chunk := "[string \"" + source[:min(len(source), 40)] + "\"]"
	if given, is := named.(string); is {
		chunk = given[:min(len(given), 60)]
		if len(chunk) > 0 && (chunk[0] == '@' || chunk[0] == '=') {
			chunk = chunk[1:]
		}
	}
	c.alloc(compiledSize * len(source))
	made, err := Compile(chunk, source)
	if err != nil {
		return []Value{nil, err.Error()}
	}
	return one(&Function{name: made.main.name, proto: made.main})
}

// pcall calls a function. A thrown table with an error of Redis comes as its text, as in Redis.
func pcall(c *Call) []Value {
	f := c.any(0)
	var results []Value
	if thrown := c.protect(func() { results = c.call(f, c.args[1:], c.line) }); thrown != nil {
		v := thrown.Value
		if t, is := v.(*Table); is {
			if message, is := text(t.Get("err")); is {
				v = message
			}
		}
		return []Value{false, v}
	}
	c.alloc(itemSize * len(results))
	return append([]Value{true}, results...)
}

func xpcall(c *Call) []Value {
	f, handler := c.any(0), c.any(1)
	var results []Value
	thrown := c.protect(func() { results = c.call(f, nil, c.line) })
	if thrown == nil {
		c.alloc(itemSize * len(results))
		return append([]Value{true}, results...)
	}
	handled := c.protect(func() { results = c.call(handler, []Value{thrown.Value}, thrown.Line) })
	if handled != nil {
		return []Value{false, handled.Value}
	}
	return append([]Value{false}, results...)
}

func selectArgs(c *Call) []Value {
	if c.arg(0) == "#" {
		return one(float64(len(c.args) - 1))
	}
	n := c.int(0)
	if n < 0 {
		n += len(c.args)
	}
	if n < 1 {
		c.bad(0, "index out of range")
	}
	return c.args[min(n, len(c.args)):]
}

func toNumberBase(c *Call) []Value {
	base := c.intOr(1, 10)
	if base == 10 {
		if n, is := c.toNumber(c.any(0)); is {
			return one(n)
		}
		return one(nil)
	}
	if base < 2 || base > 36 {
		c.bad(1, "base out of range")
	}
	c.readsText(c.arg(0), numberWork)
	digits := trimBlanks(c.text(0))
	if base == 16 && len(digits) > 2 && (digits[:2] == "0x" || digits[:2] == "0X") {
		digits = digits[2:]
	}
	n := 0.0
	for i := range len(digits) {
		d, is := digit(digits[i])
		if !is || d >= base {
			return one(nil)
		}
		n = n*float64(base) + float64(d)
	}
	if digits == "" {
		return one(nil)
	}
	return one(n)
}

func trimBlanks(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// maxUnpacked is how many values unpack may make.
const maxUnpacked = 1 << 20

func unpack(c *Call) []Value {
	t := c.table(0)
	from, to := c.intOr(1, 1), c.intOr(2, t.Len())
	if from > to {
		return nil
	}
	if to-from >= maxUnpacked {
		c.Fail("too many results to unpack")
	}
	c.alloc(itemSize * (to - from + 1))
	values := make([]Value, 0, to-from+1)
	for i := from; i <= to; i++ {
		values = append(values, t.Get(float64(i)))
	}
	return values
}
