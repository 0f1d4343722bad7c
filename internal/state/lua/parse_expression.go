package lua

// precedence of operators: how much they bind to the left, and to the right.
var precedence = map[string][2]int{
	"or": {1, 1}, "and": {2, 2}, "<": {3, 3}, ">": {3, 3}, "<=": {3, 3}, ">=": {3, 3}, "~=": {3, 3}, "==": {3, 3},
	"..": {5, 4}, "+": {6, 6}, "-": {6, 6}, "*": {7, 7}, "/": {7, 7}, "%": {7, 7}, "^": {10, 9},
}

// unaryPrecedence is how much not, - and # bind.
const unaryPrecedence = 8

func (p *parser) expression() expression { return p.operation(0) }

// operation reads an expression of operators that bind more than a limit.
func (p *parser) operation(limit int) expression {
	p.deeper()
	defer p.higher()
	left := p.unary()
	for depth := 0; ; depth++ {
		binds, is := precedence[p.now.text]
		if p.now.kind != keyword || !is || binds[0] <= limit {
			return left
		}
		p.chains(depth)
		op, line := p.now.text, p.now.line
		p.advance()
		left = operator(op, left, p.operation(binds[1]), line)
	}
}

func (p *parser) unary() expression {
	line := p.now.line
	switch {
	case p.skips("not"):
		return &not{p.operation(unaryPrecedence)}
	case p.skips("#"):
		return &length{p.operation(unaryPrecedence), line}
	case p.skips("-"):
		of := p.operation(unaryPrecedence)
		if c, is := of.(*constant); is {
			if n, is := c.value.(float64); is {
				return &constant{-n}
			}
		}
		return &negation{of, line}
	}
	return p.simple()
}

func (p *parser) simple() expression {
	switch t := p.now; {
	case t.kind == number:
		p.advance()
		return &constant{t.number}
	case t.kind == quoted:
		p.advance()
		return &constant{t.text}
	case p.skips("nil"):
		return &constant{nil}
	case p.skips("true"):
		return &constant{true}
	case p.skips("false"):
		return &constant{false}
	case p.is("..."):
		if !p.fn.variadic {
			p.unexpected("cannot use '...' outside a vararg function")
		}
		p.advance()
		return variadic{}
	case p.is("{"):
		return p.table()
	case p.skips("function"):
		return p.function("", false, t.line)
	}
	return p.suffixed()
}

// suffixed reads a variable, or something in brackets, with fields and calls behind it.
func (p *parser) suffixed() expression {
	var of expression
	switch line := p.now.line; {
	case p.now.kind == name:
		text := p.name()
		of = p.variable(text, line)
	case p.skips("("):
		of = &single{p.expression()}
		p.close(")", "(", line)
	default:
		p.unexpected("unexpected symbol")
	}
	for depth := 0; ; depth++ {
		p.chains(depth)
		line := p.now.line
		switch {
		case p.skips("."):
			of = &index{of, &constant{p.name()}, line}
		case p.skips("["):
			of = &index{of, p.expression(), line}
			p.expect("]")
		case p.skips(":"):
			method := p.name()
			of = &call{of, method, p.arguments(), line}
		case p.is("("), p.is("{"), p.now.kind == quoted:
			if p.is("(") && line != p.last {
				p.fail(line, "ambiguous syntax (function call x new statement)", "(")
			}
			of = &call{of, "", p.arguments(), line}
		default:
			return of
		}
	}
}

func (p *parser) arguments() []expression {
	line := p.now.line
	switch t := p.now; {
	case t.kind == quoted:
		p.advance()
		return []expression{&constant{t.text}}
	case p.is("{"):
		return []expression{p.table()}
	}
	if !p.skips("(") {
		p.unexpected("function arguments expected")
	}
	if p.skips(")") {
		return nil
	}
	values := p.list()
	p.close(")", "(", line)
	return values
}

func (p *parser) table() expression {
	p.deeper()
	defer p.higher()
	line := p.now.line
	t := &constructor{line: line}
	p.expect("{")
	for !p.is("}") {
		switch {
		case p.now.kind == name && p.ahead.kind == keyword && p.ahead.text == "=":
			key := p.name()
			p.advance()
			t.keys, t.values = append(t.keys, &constant{key}), append(t.values, p.expression())
		case p.skips("["):
			key := p.expression()
			p.expect("]")
			p.expect("=")
			t.keys, t.values = append(t.keys, key), append(t.values, p.expression())
		default:
			t.list = append(t.list, p.expression())
		}
		if !p.skips(",") && !p.skips(";") {
			break
		}
	}
	p.close("}", "{", line)
	return t
}

func operator(op string, a, b expression, line int) expression {
	switch op {
	case "and":
		return &and{a, b}
	case "or":
		return &or{a, b}
	case "==":
		return &equality{a, b, false}
	case "~=":
		return &equality{a, b, true}
	case "<", "<=":
		return &comparison{a, b, op == "<=", false, line}
	case ">", ">=":
		return &comparison{a, b, op == ">=", true, line}
	case "..":
		return concatenate(a, b, line)
	}
	return &arithmetic{op[0], a, b, line}
}
