package flow

// maxProgram is about how many bytes a composition may take when it is compiled. Composer's lowering makes some thirty rows of a combinator that
// is a line in the document, so that of a megabyte come hundreds.
const maxProgram = 8 << 20

// What a row takes beside what it refers to, about, the variables of one, and each of these.
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
