package lua

import (
	"errors"
	"fmt"
	"runtime"
)

// Chunk is a compiled script. It is immutable.
type Chunk struct {
	name string
	main *proto
}

// proto is a function as it is written.
type proto struct {
	name     string
	params   []*local
	variadic bool
	slots    int // locals at a time
	nested   int // levels of blocks and expressions
	chained  int // operators and suffixes that an expression has side by side
	captures []capture
	body     []statement
}

// capture says where a closure finds a variable of a function around it.
type capture struct {
	name  string
	local *local // of the function just around; nil: it is one of that function's own captures
	index int    // which
}

// local is a local variable.
type local struct {
	name     string
	slot     int
	captured bool // it lies in a cell
}

// Bounds of what a script may look like: the interpreter goes down as deep as it is nested.
const (
	maxSource   = 4 << 20
	maxNested   = 200     // as in Lua
	maxChain    = 200     // operators or suffixes that one expression has side by side
	maxLocals   = 200     // of a function, as in Lua
	maxCompared = 1 << 27 // names of variables, which a name is looked for among
)

// Compile compiles a script. The error is *Error.
func Compile(chunk, source string) (c *Chunk, err error) {
	if len(source) > maxSource {
		return nil, &Error{Value: fmt.Sprintf("%s:1: the script is larger than %d MiB", chunk, maxSource>>20), Line: 1}
	}
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case *Error:
			err = failed
		case runtime.Error:
			err = faulty(chunk, failed)
		default:
			panic(failed)
		}
	}()
	p := &parser{lexer: lexer{chunk: chunk, source: source, line: 1}}
	p.advance()
	p.advance()
	main := &function{proto: &proto{name: "main chunk", variadic: true}}
	p.fn = main
	main.proto.body = p.block()
	if p.now.kind != end {
		p.unexpected("'<eof>' expected")
	}
	return &Chunk{chunk, main.proto}, nil
}

// IsSyntax says whether an error is the compiler's.
func IsSyntax(err error) bool {
	_, is := errors.AsType[*Error](err)
	return is
}

// parser makes statements of tokens.
type parser struct {
	lexer
	now, ahead token
	last       int // line of the token before
	fn         *function
	nested     int
	compared   int // names of variables
}

// function is a function that is being read.
type function struct {
	*proto
	around *function
	active []*local
	loops  int // that break can end
}

func (p *parser) advance() {
	p.last = p.now.line
	p.now, p.ahead = p.ahead, p.lexer.next()
}

func (p *parser) is(word string) bool { return p.now.kind == keyword && p.now.text == word }

// skips passes over a keyword if it is there.
func (p *parser) skips(word string) bool {
	if !p.is(word) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) unexpected(what string) { p.fail(p.now.line, what, p.now.text) }

func (p *parser) expect(word string) {
	if !p.skips(word) {
		p.unexpected("'" + word + "' expected")
	}
}

// close expects what ends something that began in a line.
func (p *parser) close(word, opening string, line int) {
	if p.skips(word) {
		return
	}
	if line == p.now.line {
		p.unexpected("'" + word + "' expected")
	}
	p.unexpected(fmt.Sprintf("'%s' expected (to close '%s' at line %d)", word, opening, line))
}

func (p *parser) name() string {
	if p.now.kind != name {
		p.unexpected("'<name>' expected")
	}
	text := p.now.text
	p.advance()
	return text
}

// deeper counts what is nested; the caller calls higher.
func (p *parser) deeper() {
	if p.nested++; p.nested > maxNested {
		p.fail(p.now.line, "chunk has too many syntax levels", "")
	}
	p.fn.nested = max(p.fn.nested, p.nested)
}

func (p *parser) higher() { p.nested-- }

// chains counts what an expression has side by side: each is a level of the tree.
func (p *parser) chains(n int) {
	if n > maxChain {
		p.fail(p.now.line, "the expression has too many parts", "")
	}
	p.fn.chained = max(p.fn.chained, n)
}

// declare makes a variable, which is seen from now on.
func (p *parser) declare(name string) *local {
	l := &local{name: name, slot: len(p.fn.active)}
	if l.slot >= maxLocals {
		p.fail(p.now.line, "too many local variables (limit is 200)", p.now.text)
	}
	p.fn.active = append(p.fn.active, l)
	p.fn.slots = max(p.fn.slots, len(p.fn.active))
	return l
}

// block reads statements up to what ends them, with variables of their own.
func (p *parser) block() (body []statement) {
	p.deeper()
	defer p.higher()
	defer p.fn.leave(len(p.fn.active))
	return p.statements()
}

// leave forgets the variables of a block, whichever function an error is found in.
func (f *function) leave(seen int) { f.active = f.active[:seen] }

func (p *parser) statements() (body []statement) {
	for !p.ends() {
		last := p.is("return") || p.is("break")
		body = append(body, p.statement())
		p.skips(";")
		if last {
			break
		}
	}
	return body
}

func (p *parser) ends() bool {
	return p.now.kind == end || p.is("end") || p.is("else") || p.is("elseif") || p.is("until")
}

func (p *parser) statement() statement {
	line := p.now.line
	switch {
	case p.skips("if"):
		return p.ifs(line)
	case p.skips("while"):
		condition := p.expression()
		p.expect("do")
		body := p.loop()
		p.close("end", "while", line)
		return &whileLoop{condition, body}
	case p.skips("do"):
		body := p.block()
		p.close("end", "do", line)
		return &doBlock{body}
	case p.skips("for"):
		return p.fors(line)
	case p.skips("repeat"):
		return p.repeat(line)
	case p.skips("function"):
		return p.functionStatement(line)
	case p.skips("local"):
		if p.skips("function") {
			l := p.declare(p.name())
			return &localFunction{l, p.function(l.name, false, line)}
		}
		return p.locals(line)
	case p.skips("return"):
		return p.returns(line)
	case p.skips("break"):
		if p.fn.loops == 0 {
			p.unexpected("no loop to break")
		}
		return breaks{}
	}
	return p.expressionStatement(line)
}

func (p *parser) loop() []statement {
	p.fn.loops++
	defer func() { p.fn.loops-- }()
	return p.block()
}

func (p *parser) ifs(line int) statement {
	s := &ifStatement{}
	for {
		condition := p.expression()
		p.expect("then")
		s.branches = append(s.branches, branch{condition, p.block()})
		if !p.skips("elseif") {
			break
		}
	}
	if p.skips("else") {
		s.otherwise = p.block()
	}
	p.close("end", "if", line)
	return s
}

func (p *parser) repeat(line int) statement {
	p.deeper()
	defer p.higher()
	defer p.fn.leave(len(p.fn.active))
	p.fn.loops++
	body := p.statements()
	p.fn.loops--
	p.close("until", "repeat", line)
	return &repeatLoop{body, p.expression()} // which sees the body's variables
}

func (p *parser) fors(line int) statement {
	first := p.name()
	defer p.fn.leave(len(p.fn.active))
	if p.skips("=") {
		s := &numericFor{line: line, from: p.expression()}
		p.expect(",")
		s.to = p.expression()
		if p.skips(",") {
			s.step = p.expression()
		}
		p.expect("do")
		s.variable = p.declare(first)
		s.body = p.loop()
		p.close("end", "for", line)
		return s
	}
	names := []string{first}
	for p.skips(",") {
		names = append(names, p.name())
	}
	if !p.is("in") {
		p.unexpected("'=' or 'in' expected")
	}
	p.advance()
	s := &genericFor{line: p.now.line, values: p.list()}
	p.expect("do")
	for _, name := range names {
		s.variables = append(s.variables, p.declare(name))
	}
	s.body = p.loop()
	p.close("end", "for", line)
	return s
}

func (p *parser) functionStatement(line int) statement {
	first := p.name()
	target, full := p.variable(first, line), first
	method := false
	for p.is(".") || p.is(":") {
		method = p.is(":")
		p.advance()
		key := p.name()
		target, full = &index{target, &constant{key}, line}, full+"."+key
		if method {
			break
		}
	}
	return &assignment{[]expression{target}, []expression{p.function(full, method, line)}, line}
}

func (p *parser) locals(line int) statement {
	names := []string{p.name()}
	for p.skips(",") {
		names = append(names, p.name())
	}
	s := &localStatement{}
	if p.skips("=") {
		s.values = p.list()
	}
	for _, name := range names {
		s.variables = append(s.variables, p.declare(name))
	}
	return s
}

func (p *parser) returns(line int) statement {
	s := &returnStatement{}
	if p.ends() || p.is(";") {
		return s
	}
	s.values = p.list()
	if len(s.values) == 1 {
		s.tail, _ = s.values[0].(*call)
	}
	return s
}

func (p *parser) expressionStatement(line int) statement {
	first := p.suffixed()
	if c, is := first.(*call); is && !p.is("=") && !p.is(",") {
		return &callStatement{c}
	}
	targets := []expression{first}
	for p.skips(",") {
		targets = append(targets, p.suffixed())
	}
	for _, target := range targets {
		switch target.(type) {
		case *localVariable, *captured, *global, *index:
		default:
			p.unexpected("syntax error")
		}
	}
	p.expect("=")
	return &assignment{targets, p.list(), line}
}

// list reads expressions with commas between them.
func (p *parser) list() []expression {
	values := []expression{p.expression()}
	for p.skips(",") {
		values = append(values, p.expression())
	}
	return values
}

// function reads a function from its parameters on.
func (p *parser) function(name string, method bool, line int) expression {
	f := &function{proto: &proto{name: name}, around: p.fn}
	p.fn = f
	if method {
		f.params = append(f.params, p.declare("self"))
	}
	p.expect("(")
	for !p.is(")") {
		if p.skips("...") {
			f.variadic = true
			break
		}
		f.params = append(f.params, p.declare(p.name()))
		if !p.skips(",") {
			break
		}
		if p.is(")") {
			p.unexpected("'<name>' expected")
		}
	}
	p.expect(")")
	f.body = p.block()
	p.close("end", "function", line)
	p.fn = f.around
	return &closure{f.proto}
}

// variable is what a name stands for.
func (p *parser) variable(name string, line int) expression {
	for f := p.fn; f != nil; f = f.around {
		p.compared += 1 + len(f.active) + len(f.captures)
	}
	if p.compared > maxCompared {
		p.fail(line, "the script has too many variables", name)
	}
	if l := p.fn.find(name); l != nil {
		return &localVariable{l}
	}
	if at := p.fn.capture(name); at >= 0 {
		return &captured{at, name}
	}
	return &global{name, line}
}

func (f *function) find(name string) *local {
	for i := len(f.active) - 1; i >= 0; i-- {
		if f.active[i].name == name {
			return f.active[i]
		}
	}
	return nil
}

// capture finds a variable of the functions around; negative: there is none.
func (f *function) capture(name string) int {
	if f.around == nil {
		return -1
	}
	c := capture{name: name, local: f.around.find(name)}
	if c.local == nil {
		if c.index = f.around.capture(name); c.index < 0 {
			return -1
		}
	} else {
		c.local.captured = true
	}
	for at, known := range f.captures {
		if known == c {
			return at
		}
	}
	f.captures = append(f.captures, c)
	return len(f.captures) - 1
}
