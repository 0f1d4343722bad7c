package lua

import (
	"math"
	"strings"
)

// expression is a part of a script that has a value.
type expression interface {
	eval(f *frame) Value
}

// several is an expression that may have any number of values.
type several interface {
	expression
	all(f *frame) []Value
}

type (
	constant      struct{ value Value }
	localVariable struct{ *local }
	captured      struct {
		at   int
		name string
	}
	global struct {
		name string
		line int
	}
	index struct {
		of, key expression
		line    int
	}
	call struct {
		of     expression
		method string // empty: of is the function
		args   []expression
		line   int
	}
	single      struct{ of expression } // the first value of what is in brackets
	variadic    struct{}
	closure     struct{ *proto }
	constructor struct {
		list, keys, values []expression
		line               int
	}
	and      struct{ a, b expression }
	or       struct{ a, b expression }
	not      struct{ of expression }
	negation struct {
		of   expression
		line int
	}
	length struct {
		of   expression
		line int
	}
	equality struct {
		a, b   expression
		differ bool
	}
	comparison struct {
		a, b             expression
		orEqual, greater bool
		line             int
	}
	arithmetic struct {
		op   byte
		a, b expression
		line int
	}
	concatenation struct {
		parts []expression
		line  int
	}
)

// what names an expression in an error; empty: it has no name.
func what(e expression) string {
	switch e := e.(type) {
	case *localVariable:
		return "local '" + e.local.name + "'"
	case *captured:
		return "upvalue '" + e.name + "'"
	case *global:
		return "global '" + e.name + "'"
	case *index:
		if key, is := e.key.(*constant); is {
			if name, is := key.value.(string); is {
				return "field '" + name + "'"
			}
		}
		return "field '?'"
	}
	return ""
}

func (e *constant) eval(*frame) Value { return e.value }

func (e *localVariable) eval(f *frame) Value {
	if e.captured {
		return f.slots[e.slot].(*cell).v
	}
	return f.slots[e.slot]
}

func (e *captured) eval(f *frame) Value { return f.cells[e.at].v }

func (e *global) eval(f *frame) Value {
	if v := f.globals.Get(e.name); v != nil {
		return v
	}
	return f.index(f.globals, e.name, e.line, "")
}

func (e *index) eval(f *frame) Value {
	f.step()
	of := e.of.eval(f)
	key := e.key.eval(f)
	if t, is := of.(*Table); is {
		if v := f.get(t, key); v != nil || t.meta == nil {
			return v
		}
	}
	return f.index(of, key, e.line, what(e.of))
}

func (e *call) eval(f *frame) Value { return first(e.all(f)) }

func (e *call) all(f *frame) []Value {
	n := e.prepare(f)
	return f.call(n.fn, n.args, n.line)
}

// prepare finds the function and the arguments.
func (e *call) prepare(f *frame) next {
	of := e.of.eval(f)
	var args []Value
	called := what(e.of)
	if e.method != "" {
		self := of
		of = f.index(self, e.method, e.line, called)
		called = "method '" + e.method + "'"
		args = append(make([]Value, 0, 1+len(e.args)), self)
	} else if len(e.args) > 0 {
		args = make([]Value, 0, len(e.args))
	}
	args = f.values(args, e.args)
	if _, is := of.(*Function); !is && f.metamethod(of, "__call") == nil {
		f.fail(e.line, "attempt to call %s", f.described(called, of))
	}
	return next{of, args, e.line}
}

// values appends the values of expressions: all of the last.
func (f *frame) values(into []Value, list []expression) []Value {
	for i, e := range list {
		if m, is := e.(several); is && i == len(list)-1 {
			all := m.all(f)
			f.alloc(itemSize * len(all))
			return append(into, all...)
		}
		into = append(into, e.eval(f))
	}
	return into
}

func (e *single) eval(f *frame) Value { return e.of.eval(f) }

func (variadic) eval(f *frame) Value { return first(f.rest) }

func (variadic) all(f *frame) []Value { return f.rest }

// closureSize is what a function takes, with a variable.
const closureSize = 96

func (e *closure) eval(f *frame) Value {
	f.alloc(closureSize + len(e.captures)*closureSize/2)
	made := &Function{name: e.proto.name, proto: e.proto, cells: make([]*cell, len(e.captures))}
	for i, c := range e.captures {
		if c.local != nil {
			made.cells[i] = f.slots[c.local.slot].(*cell)
		} else {
			made.cells[i] = f.cells[c.index]
		}
	}
	return made
}

func (e *constructor) eval(f *frame) Value {
	f.alloc(tableSize + 2*itemSize*len(e.list))
	t := new(Table)
	for i, key := range e.keys {
		f.step()
		k := key.eval(f)
		f.set(t, k, e.values[i].eval(f), e.line)
	}
	if len(e.list) > 0 {
		t.list = f.values(make([]Value, 0, len(e.list)), e.list)
		for i := range t.list {
			t.remove(float64(i + 1)) // the list has the last word
		}
		f.alloc(itemSize * len(t.list))
		t.trim()
	}
	return t
}

func (e *and) eval(f *frame) Value {
	if a := e.a.eval(f); !truth(a) {
		return a
	}
	return e.b.eval(f)
}

func (e *or) eval(f *frame) Value {
	if a := e.a.eval(f); truth(a) {
		return a
	}
	return e.b.eval(f)
}

func (e *not) eval(f *frame) Value { return !truth(e.of.eval(f)) }

func (e *negation) eval(f *frame) Value {
	v := e.of.eval(f)
	if n, is := f.toNumber(v); is {
		return -n
	}
	if handler := f.metamethod(v, "__unm"); handler != nil {
		return first(f.call(handler, []Value{v, v}, e.line))
	}
	f.fail(e.line, "attempt to perform arithmetic on %s", f.described(what(e.of), v))
	return nil
}

func (e *length) eval(f *frame) Value {
	switch v := e.of.eval(f).(type) {
	case string:
		return float64(len(v))
	case *Table:
		return float64(v.Len())
	default:
		f.fail(e.line, "attempt to get length of %s", f.described(what(e.of), v))
	}
	return nil
}

func (e *equality) eval(f *frame) Value {
	f.step()
	a := e.a.eval(f)
	return f.equal(a, e.b.eval(f)) != e.differ
}

// equal is ==, with metamethods.
func (s *State) equal(a, b Value) bool {
	x, isTable := a.(*Table)
	y, both := b.(*Table)
	if !isTable || !both || x == y || x.meta == nil || y.meta == nil {
		return s.same(a, b)
	}
	handler := x.meta.Get("__eq")
	if handler == nil || handler != y.meta.Get("__eq") {
		return false
	}
	return truth(first(s.call(handler, []Value{a, b}, s.line)))
}

// same is ==, without metamethods.
func (s *State) same(a, b Value) bool {
	x, is := a.(string)
	y, both := b.(string)
	if is && both && len(x) == len(y) {
		s.busy(len(x))
	}
	return a == b
}

func (e *comparison) eval(f *frame) Value {
	f.step()
	a := e.a.eval(f)
	b := e.b.eval(f)
	if e.greater {
		a, b = b, a
	}
	return f.less(a, b, e.orEqual, e.line)
}

// less is < or <=, with metamethods.
func (s *State) less(a, b Value, orEqual bool, line int) bool {
	switch x := a.(type) {
	case float64:
		if y, is := b.(float64); is {
			return x < y || orEqual && x == y
		}
	case string:
		if y, is := b.(string); is {
			s.busy(min(len(x), len(y)))
			return x < y || orEqual && x == y
		}
	}
	event := "__lt"
	if orEqual {
		event = "__le"
	}
	if handler := s.binaryHandler(a, b, event); handler != nil {
		return truth(first(s.call(handler, []Value{a, b}, line)))
	}
	if handler := s.binaryHandler(b, a, "__lt"); orEqual && handler != nil {
		return !truth(first(s.call(handler, []Value{b, a}, line)))
	}
	if typeName(a) == typeName(b) {
		s.fail(line, "attempt to compare two %s values", typeName(a))
	}
	s.fail(line, "attempt to compare %s with %s", typeName(a), typeName(b))
	return false
}

// binaryHandler is the metamethod of either of two values, the first first.
func (s *State) binaryHandler(a, b Value, event string) Value {
	if handler := s.metamethod(a, event); handler != nil {
		return handler
	}
	return s.metamethod(b, event)
}

var events = map[byte]string{'+': "__add", '-': "__sub", '*': "__mul", '/': "__div", '%': "__mod", '^': "__pow"}

func (e *arithmetic) eval(f *frame) Value {
	f.step()
	a := e.a.eval(f)
	b := e.b.eval(f)
	x, isX := f.toNumber(a)
	y, isY := f.toNumber(b)
	if isX && isY {
		return compute(e.op, x, y)
	}
	if handler := f.binaryHandler(a, b, events[e.op]); handler != nil {
		return first(f.call(handler, []Value{a, b}, e.line))
	}
	wrong, named := b, what(e.b)
	if !isX {
		wrong, named = a, what(e.a)
	}
	f.fail(e.line, "attempt to perform arithmetic on %s", f.described(named, wrong))
	return nil
}

func compute(op byte, x, y float64) Value {
	switch op {
	case '+':
		return x + y
	case '-':
		return x - y
	case '*':
		return x * y
	case '/':
		return x / y
	case '^':
		return math.Pow(x, y)
	}
	return x - math.Floor(x/y)*y
}

// concatenate joins expressions, and those of a concatenation to the right.
func concatenate(a, b expression, line int) expression {
	parts := []expression{a}
	if right, is := b.(*concatenation); is {
		parts = append(parts, right.parts...)
	} else {
		parts = append(parts, b)
	}
	return &concatenation{parts, line}
}

func (e *concatenation) eval(f *frame) Value {
	values := make([]Value, len(e.parts))
	texts := make([]string, len(e.parts))
	size, plain := 0, true
	for i, part := range e.parts {
		f.step()
		values[i] = part.eval(f)
		t, is := text(values[i])
		texts[i], plain = t, plain && is
		size += len(t)
	}
	if plain {
		f.alloc(size)
		return strings.Join(texts, "")
	}
	right := values[len(values)-1]
	for i := len(values) - 2; i >= 0; i-- {
		right = e.join(f, i, values[i], right)
	}
	return right
}

// join joins a part and what is right of it.
func (e *concatenation) join(f *frame, at int, a, b Value) Value {
	x, isX := text(a)
	y, isY := text(b)
	if isX && isY {
		f.alloc(len(x) + len(y))
		return x + y
	}
	if handler := f.binaryHandler(a, b, "__concat"); handler != nil {
		return first(f.call(handler, []Value{a, b}, e.line))
	}
	wrong, named := b, what(e.parts[at+1])
	if !isX {
		wrong, named = a, what(e.parts[at])
	}
	f.fail(e.line, "attempt to concatenate %s", f.described(named, wrong))
	return nil
}
