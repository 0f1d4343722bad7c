package lua

// statement is a part of a script that does something.
type statement interface {
	exec(f *frame) outcome
}

// outcome is how a statement ends.
type outcome int

// The outcomes of statements.
const (
	goesOn outcome = iota
	breaksLoop
	returned
)

type (
	ifStatement struct {
		branches  []branch
		otherwise []statement
	}
	branch struct {
		condition expression
		body      []statement
	}
	whileLoop struct {
		condition expression
		body      []statement
	}
	repeatLoop struct {
		body      []statement
		condition expression
	}
	numericFor struct {
		variable       *local
		from, to, step expression // step may be nil: 1
		body           []statement
		line           int
	}
	genericFor struct {
		variables []*local
		values    []expression
		body      []statement
		line      int
	}
	doBlock       struct{ body []statement }
	localFunction struct {
		*local
		function expression
	}
	localStatement struct {
		variables []*local
		values    []expression
	}
	assignment struct {
		targets, values []expression
		line            int
	}
	callStatement   struct{ *call }
	returnStatement struct {
		values []expression
		tail   *call // if it is the only value
	}
	breaks struct{}
)

// exec runs statements until one ends them.
func (f *frame) exec(body []statement) outcome {
	for _, s := range body {
		f.step()
		if o := s.exec(f); o != goesOn {
			return o
		}
	}
	return goesOn
}

func (s *ifStatement) exec(f *frame) outcome {
	for _, b := range s.branches {
		f.step()
		if truth(b.condition.eval(f)) {
			return f.exec(b.body)
		}
	}
	return f.exec(s.otherwise)
}

// round runs the body of a loop, and reports false if the loop ends with that.
func (f *frame) round(body []statement) (outcome, bool) {
	f.step()
	switch f.exec(body) {
	case breaksLoop:
		return goesOn, false
	case returned:
		return returned, false
	}
	return goesOn, true
}

func (s *whileLoop) exec(f *frame) outcome {
	for truth(s.condition.eval(f)) {
		if o, more := f.round(s.body); !more {
			return o
		}
	}
	return goesOn
}

func (s *repeatLoop) exec(f *frame) outcome {
	for {
		if o, more := f.round(s.body); !more {
			return o
		}
		if truth(s.condition.eval(f)) {
			return goesOn
		}
	}
}

func (s *numericFor) exec(f *frame) outcome {
	from := f.bound(s.from, "initial", s.line)
	to := f.bound(s.to, "limit", s.line)
	step := 1.0
	if s.step != nil {
		step = f.bound(s.step, "step", s.line)
	}
	for i := from; step > 0 && i <= to || step <= 0 && i >= to; i += step {
		f.declare(s.variable, i)
		if o, more := f.round(s.body); !more {
			return o
		}
	}
	return goesOn
}

func (f *frame) bound(e expression, name string, line int) float64 {
	n, is := f.toNumber(e.eval(f))
	if !is {
		kind := " value"
		if name != "initial" {
			kind = ""
		}
		f.fail(line, "'for' %s%s must be a number", name, kind)
	}
	return n
}

func (s *genericFor) exec(f *frame) outcome {
	var given [3]Value
	copy(given[:], f.values(nil, s.values))
	step, state, control := given[0], given[1], given[2]
	if _, is := step.(*Function); !is && f.metamethod(step, "__call") == nil {
		f.fail(s.line, "attempt to call a %s value", typeName(step))
	}
	for {
		var values []Value
		if t, is := state.(*Table); is && step == Value(standard.next) {
			key, value, ok := f.following(t, control)
			if !ok {
				f.fail(s.line, "invalid key to 'next'")
			}
			if key == nil {
				return goesOn
			}
			values = []Value{key, value}
		} else if values = f.call(step, []Value{state, control}, s.line); first(values) == nil {
			return goesOn
		}
		control = values[0]
		for i, l := range s.variables {
			var v Value
			if i < len(values) {
				v = values[i]
			}
			f.declare(l, v)
		}
		if o, more := f.round(s.body); !more {
			return o
		}
	}
}

func (s *doBlock) exec(f *frame) outcome { return f.exec(s.body) }

func (s *localFunction) exec(f *frame) outcome {
	f.declare(s.local, nil)
	f.assign(&localVariable{s.local}, s.function.eval(f), 0)
	return goesOn
}

func (s *localStatement) exec(f *frame) outcome {
	if len(s.values) == 1 && len(s.variables) == 1 {
		f.declare(s.variables[0], s.values[0].eval(f))
		return goesOn
	}
	values := f.values(nil, s.values)
	for i, l := range s.variables {
		var v Value
		if i < len(values) {
			v = values[i]
		}
		f.declare(l, v)
	}
	return goesOn
}

func (s *assignment) exec(f *frame) outcome {
	if len(s.targets) == 1 && len(s.values) == 1 {
		if e, is := s.targets[0].(*index); is {
			of := e.of.eval(f)
			key := e.key.eval(f)
			f.setIndex(of, key, s.values[0].eval(f), e.line, what(e.of))
			return goesOn
		}
		f.assign(s.targets[0], s.values[0].eval(f), s.line)
		return goesOn
	}
	places := make([]next, len(s.targets)) // tables and keys, before anything is assigned
	for i, target := range s.targets {
		if e, is := target.(*index); is {
			places[i] = next{e.of.eval(f), []Value{e.key.eval(f)}, e.line}
		}
	}
	values := f.values(nil, s.values)
	for i := len(s.targets) - 1; i >= 0; i-- {
		var v Value
		if i < len(values) {
			v = values[i]
		}
		if e, is := s.targets[i].(*index); is {
			f.setIndex(places[i].fn, places[i].args[0], v, e.line, what(e.of))
		} else {
			f.assign(s.targets[i], v, s.line)
		}
	}
	return goesOn
}

// assign gives a variable a value.
func (f *frame) assign(target expression, v Value, line int) {
	switch e := target.(type) {
	case *localVariable:
		if e.captured {
			f.slots[e.slot].(*cell).v = v
		} else {
			f.slots[e.slot] = v
		}
	case *captured:
		f.cells[e.at].v = v
	case *global:
		f.set(f.globals, e.name, v, line)
	}
}

func (s *callStatement) exec(f *frame) outcome {
	s.all(f)
	return goesOn
}

func (s *returnStatement) exec(f *frame) outcome {
	if s.tail != nil {
		n := s.tail.prepare(f)
		f.next = &n
		return returned
	}
	f.results = f.values(nil, s.values)
	return returned
}

func (breaks) exec(*frame) outcome { return breaksLoop }
