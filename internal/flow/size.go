package flow

// maxProgram is about how many bytes a composition may take when it is compiled. Composer's lowering makes some thirty rows of a combinator that
// is a line in the document, so a megabyte becomes hundreds.
const maxProgram = 8 << 20

// The approximate bytes of a row without the values that it refers to, of a set of variables, and of each variable.
const (
	rowCost  = 160
	varsCost = 400
	varCost  = 64
)

// size is about how many bytes a row takes.
func (r *row) size() int {
	n := rowCost + len(r.action) + len(r.value) + len(r.path)
	if r.code != nil {
		n += len(r.code.Kind) + len(r.code.Code)
	}
	if r.vars != nil {
		n += varsCost
		for name, v := range r.vars.values {
			n += varCost + len(name) + len(v)
		}
	}
	return n
}

// Size is about how many bytes the program takes.
func (p *Program) Size() int {
	n := p.size
	for _, kv := range p.parameters {
		n += varCost + len(kv.Key) + len(kv.Value)
	}
	return n
}
