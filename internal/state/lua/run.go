package lua

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strconv"
)

// Host is what a script runs in.
type Host interface {
	// Work is told of work that the script is about to do, in bytes that are read. An error ends the script.
	Work(bytes int) error
	// Seed is what the numbers of math.random depend on. An error ends the script.
	Seed() (uint64, error)
}

// Error is what a script has thrown.
type Error struct {
	Value Value
	Line  int // of the script where it was thrown
}

// Error is the message, as far as the value is one.
func (e *Error) Error() string {
	if message, is := text(e.Value); is {
		return message
	}
	return "(error object is a " + typeName(e.Value) + " value)"
}

// stopped ends a run, past whatever the script does about errors.
type stopped struct{ err error }

// Bounds of a run.
const (
	MaxWork    = 1 << 30   // bytes of work: a second or two
	MaxMemory  = 256 << 20 // bytes that it makes, whether it still needs them or not
	maxStack   = 400_000   // levels of the tree that are at work at a time
	callStack  = 40        // of a call, beside those of the function's own expressions
	stepWork   = 32        // of a step
	throwWork  = 16 << 10  // of an error that is caught
	textWork   = 4         // of a byte that is looked at by itself
	numberWork = 16        // of a byte that is read as a digit
	stride     = 1024      // steps between two looks at the bounds
)

// State is a run of a script.
type State struct {
	globals *Table
	host    Host
	chunk   string

	steps   int // before the bounds are looked at; negative: now
	work    int // in all
	bytes   int // made
	stack   int
	line    int   // of the call or the operation at work
	callers []int // lines of the calls of the script's functions at work
	native  bool  // the function at work is the library's or the host's, whose errors have no place in the script
	below   bool  // and so is the one that has called it
	shown   map[Value]int
	random  *generator
	json    jsonSettings
}

// New makes a run with a host, and with what a script sees besides the library.
func New(host Host, globals map[string]Value) *State {
	all := library()
	s := &State{host: host, globals: &Table{fixed: true, meta: standard.strict}, json: defaultJSON}
	for _, e := range all.pairs {
		s.globals.Set(e.key, e.value)
	}
	for _, name := range sortedKeys(globals) {
		s.globals.Set(name, globals[name])
	}
	s.globals.Set("_G", s.globals)
	return s
}

// Run runs a script. The error is *Error, or what the host has ended it with.
func (s *State) Run(c *Chunk) (results []Value, err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case *Error:
			err = failed
		case stopped:
			err = failed.err
		case runtime.Error:
			err = faulty(c.name, failed)
		default:
			panic(failed)
		}
	}()
	s.chunk = c.name
	return s.Call(&Function{name: c.main.name, proto: c.main}), nil
}

// faulty tells of a fault of the interpreter. It ends one script, whose writes are taken back, and not the server.
func faulty(chunk string, failed runtime.Error) *Error {
	slog.Error("the Lua interpreter has a fault", "error", failed, "stack", string(debug.Stack()))
	return &Error{Value: chunk + ": the server's Lua interpreter failed on this script, and nothing of it is written: please report it"}
}

// Host is what the script runs in.
func (s *State) Host() Host { return s.host }

// Line is the line of the script that is at work.
func (s *State) Line() int { return s.line }

// Stop ends the run with an error of the host.
func (s *State) Stop(err error) { panic(stopped{err}) }

// step counts one.
func (s *State) step() {
	if s.steps--; s.steps < 0 {
		s.look()
	}
}

// look tells the host of the work since it was told, and ends what is beyond its bounds.
func (s *State) look() {
	work := (stride - s.steps) * stepWork
	s.steps = stride
	if s.work += work; s.work > MaxWork {
		s.TakesTooLong()
	}
	if err := s.host.Work(work); err != nil {
		s.Stop(err)
	}
}

// TakesTooLong ends the run.
func (s *State) TakesTooLong() {
	s.Stop(&Error{Value: s.where(s.line) + "the script takes too long, so it was ended, and nothing of it is written", Line: s.line})
}

// alloc counts bytes that are about to be made.
func (s *State) alloc(bytes int) {
	if s.bytes += bytes; s.bytes > MaxMemory || bytes < 0 {
		s.Stop(&Error{Value: s.where(s.line) + fmt.Sprintf("the script makes more than %d MiB, so it was ended, and nothing of it is written", MaxMemory>>20), Line: s.line})
	}
	s.busy(bytes / 5)
}

// busy counts work on bytes.
func (s *State) busy(bytes int) {
	if s.steps -= bytes / stepWork; s.steps < 0 {
		s.look()
	}
}

// Charge counts bytes that the host makes for the script.
func (s *State) Charge(bytes int) { s.alloc(bytes) }

// Looks counts work on bytes that the host only looks at.
func (s *State) Looks(bytes int) { s.busy(bytes) }

// Text is a new string of a script, which is counted.
func (s *State) Text(b []byte) string {
	s.alloc(len(b))
	return string(b)
}

// readsText counts work on the bytes of a value, if it is a string: so many times its length.
func (s *State) readsText(v Value, times int) {
	if text, is := v.(string); is {
		s.busy(times * len(text))
	}
}

// toNumber is toNumber, whose work is counted.
func (s *State) toNumber(v Value) (float64, bool) {
	s.readsText(v, numberWork)
	return toNumber(v)
}

// get is the value of a key of a table, without metamethods. The key is counted.
func (s *State) get(t *Table, key Value) Value {
	s.readsText(key, 1)
	return t.Get(key)
}

// following is Next of a table, whose work is counted.
func (s *State) following(t *Table, key Value) (next, value Value, ok bool) {
	s.readsText(key, 1)
	next, value, passed, ok := t.Next(key)
	s.busy(itemSize * passed)
	return next, value, ok
}

func (s *State) where(line int) string {
	return s.chunk + ":" + strconv.Itoa(line) + ": "
}

// Throw throws a value.
func (s *State) Throw(v Value) {
	panic(&Error{Value: v, Line: s.line})
}

// fail throws a message about a line.
func (s *State) fail(line int, format string, args ...any) {
	s.line = line
	message := fmt.Sprintf(format, args...)
	if !s.native {
		message = s.where(line) + message
	}
	s.alloc(2 * len(message))
	s.Throw(message)
}

// Fail throws a message about the call of the function of the library that is at work.
func (s *State) Fail(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if !s.below {
		message = s.where(s.line) + message
	}
	s.alloc(2 * len(message))
	s.Throw(message)
}

// protect calls f, and returns what it throws.
func (s *State) protect(f func()) *Error {
	thrown, ended := s.catch(f)
	if ended != nil {
		panic(*ended) // here, not while it is caught: a script may be in many such calls
	}
	if thrown != nil {
		s.busy(throwWork)
	}
	return thrown
}

func (s *State) catch(f func()) (thrown *Error, ended *stopped) {
	stack, callers, native, below := s.stack, len(s.callers), s.native, s.below
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case *Error:
			s.stack, s.callers, s.native, s.below = stack, s.callers[:callers], native, below
			thrown = failed
		case stopped:
			ended = &failed
		default:
			panic(failed)
		}
	}()
	f()
	return nil, nil
}

// Call calls a function.
func (s *State) Call(fn Value, args ...Value) []Value { return s.call(fn, args, s.line) }

func (s *State) call(fn Value, args []Value, line int) []Value {
	for {
		s.step()
		f, is := fn.(*Function)
		if !is {
			handler := s.metamethod(fn, "__call")
			if handler == nil {
				s.fail(line, "attempt to call a %s value", typeName(fn))
			}
			fn, args = handler, append([]Value{fn}, args...)
			if f, is = fn.(*Function); !is {
				s.fail(line, "attempt to call a %s value", typeName(fn))
			}
		}
		cost := callStack
		if f.proto != nil {
			cost += f.proto.nested * (1 + f.proto.chained)
		}
		if s.stack += cost; s.stack > maxStack {
			s.fail(line, "stack overflow")
		}
		s.line = line
		native, below := s.native, s.below
		s.native, s.below = f.native != nil, native
		if s.native {
			results := f.native(&Call{State: s, name: f.name, args: args})
			s.stack, s.native, s.below = s.stack-cost, native, below
			return results
		}
		s.callers = append(s.callers, line)
		results, next := s.enter(f, args)
		s.callers = s.callers[:len(s.callers)-1]
		s.stack, s.native, s.below = s.stack-cost, native, below
		if next == nil {
			return results
		}
		fn, args, line = next.fn, next.args, next.line
	}
}

// next is the call with which a function ends.
type next struct {
	fn   Value
	args []Value
	line int
}

// frame is a function at work.
type frame struct {
	*State
	slots   []Value // a captured variable's is a *cell
	cells   []*cell
	rest    []Value // what ... is
	results []Value
	next    *next
}

// enter runs the body of a function.
func (s *State) enter(f *Function, args []Value) ([]Value, *next) {
	p := f.proto
	fr := frame{State: s, slots: make([]Value, p.slots), cells: f.cells}
	for i, l := range p.params {
		var v Value
		if i < len(args) {
			v = args[i]
		}
		fr.declare(l, v)
	}
	if p.variadic && len(args) > len(p.params) {
		fr.rest = args[len(p.params):]
	}
	fr.exec(p.body)
	return fr.results, fr.next
}

// declare gives a variable its first value.
func (f *frame) declare(l *local, v Value) {
	if l.captured {
		v = &cell{v}
	}
	f.slots[l.slot] = v
}

// metamethod is what a value has for an event; nil: nothing.
func (s *State) metamethod(v Value, event string) Value {
	switch v := v.(type) {
	case *Table:
		if v.meta != nil {
			return v.meta.Get(event)
		}
	case string:
		return stringMeta().Get(event)
	}
	return nil
}

// maxIndirect is how many tables __index and __newindex lead through, as in Lua.
const maxIndirect = 100

// Index is v[key].
func (s *State) index(v, key Value, line int, what string) Value {
	for range maxIndirect {
		t, is := v.(*Table)
		if is {
			if found := s.get(t, key); found != nil || t.meta == nil {
				return found
			}
		}
		handler := s.metamethod(v, "__index")
		switch {
		case handler == nil && is:
			return nil
		case handler == nil:
			s.fail(line, "attempt to index %s", s.described(what, v))
		}
		if f, is := handler.(*Function); is {
			return first(s.call(f, []Value{v, key}, line))
		}
		v, what = handler, ""
	}
	s.fail(line, "loop in gettable")
	return nil
}

func (s *State) setIndex(v, key, value Value, line int, what string) {
	for range maxIndirect {
		t, is := v.(*Table)
		var handler Value
		if is {
			if t.meta == nil || s.get(t, key) != nil {
				s.set(t, key, value, line)
				return
			}
			if handler = t.meta.Get("__newindex"); handler == nil {
				s.set(t, key, value, line)
				return
			}
		} else if handler = s.metamethod(v, "__newindex"); handler == nil {
			s.fail(line, "attempt to index %s", s.described(what, v))
		}
		if f, is := handler.(*Function); is {
			s.call(f, []Value{v, key, value}, line)
			return
		}
		v, what = handler, ""
	}
	s.fail(line, "loop in settable")
}

// set sets a key of a table, without metamethods.
func (s *State) set(t *Table, key, value Value, line int) {
	switch f, is := key.(float64); {
	case t.fixed:
		s.fail(line, "Attempt to modify a readonly table")
	case key == nil:
		s.fail(line, "table index is nil")
	case is && f != f:
		s.fail(line, "table index is NaN")
	}
	s.readsText(key, 1)
	if grown := t.Set(key, value); grown > 0 {
		s.alloc(grown)
	}
}

// described names a value in an error.
func (s *State) described(what string, v Value) string {
	if what == "" {
		return "a " + typeName(v) + " value"
	}
	return what + " (a " + typeName(v) + " value)"
}

func first(values []Value) Value {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}
