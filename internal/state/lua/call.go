package lua

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Call is a call of a function of the library or of the host.
type Call struct {
	*State
	name string
	args []Value
}

// Args are the arguments.
func (c *Call) Args() []Value { return c.args }

// arg is an argument; nil if it is not there. The first is 0.
func (c *Call) arg(i int) Value {
	if i < len(c.args) {
		return c.args[i]
	}
	return nil
}

// bad throws what is wrong with an argument.
func (c *Call) bad(i int, format string, args ...any) {
	c.Fail("bad argument #%d to '%s' (%s)", i+1, c.name, fmt.Sprintf(format, args...))
}

func (c *Call) expected(i int, what string) {
	got := "no value"
	if i < len(c.args) {
		got = typeName(c.args[i])
	}
	c.bad(i, "%s expected, got %s", what, got)
}

// must be there, whatever it is.
func (c *Call) any(i int) Value {
	if i >= len(c.args) {
		c.bad(i, "value expected")
	}
	return c.args[i]
}

func (c *Call) text(i int) string {
	t, is := text(c.arg(i))
	if !is {
		c.expected(i, "string")
	}
	return t
}

func (c *Call) number(i int) float64 {
	n, is := c.toNumber(c.arg(i))
	if !is {
		c.expected(i, "number")
	}
	return n
}

// int is a number without its fraction.
func (c *Call) int(i int) int { return whole(c.number(i)) }

func (c *Call) intOr(i, otherwise int) int {
	if c.arg(i) == nil {
		return otherwise
	}
	return c.int(i)
}

// whole is a number without its fraction; one that is beyond all others is as far as they go.
func whole(f float64) int {
	const most = 1 << 53
	switch {
	case math.IsNaN(f):
		return 0
	case f > most:
		return most
	case f < -most:
		return -most
	}
	return int(f)
}

func (c *Call) table(i int) *Table {
	t, is := c.arg(i).(*Table)
	if !is {
		c.expected(i, "table")
	}
	return t
}

func (c *Call) function(i int) *Function {
	f, is := c.arg(i).(*Function)
	if !is {
		c.expected(i, "function")
	}
	return f
}

func one(v Value) []Value { return []Value{v} }

func sortedKeys(m map[string]Value) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// put sets a key of a table that is being made.
func (c *Call) put(t *Table, key, value Value) { c.set(t, key, value, c.line) }

// builder makes a string of a script.
type builder struct {
	strings.Builder
	*State
}

func (b *builder) add(s string) {
	b.alloc(len(s))
	b.WriteString(s)
}

func (b *builder) addByte(c byte) {
	b.alloc(1)
	b.WriteByte(c)
}
