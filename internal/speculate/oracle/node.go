package oracle

import (
	"encoding/binary"
	"encoding/json"
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// Apart is added to the number of an invocation for those that it began and detached: they are not given up with it.
const Apart = 100

// node is an execution of an action, or of what is in it.
type node struct {
	kind       nodeKind
	invocation int
	action     string
	self       bool            // the function of an action that is a program, whose code it has
	detach     forerun.Program // in place of it: begin this
	input      json.RawMessage

	code   *Code
	acc    int // of a function
	next   int // its instruction
	calls  []*node
	sent   bool // nobody waits for it
	posted bool // it is a command

	program forerun.Program // of a walk
	owner   string          // its action
	at      forerun.Cursor
	fork    bool // calls are branches
	result  *forerun.Result
}

type nodeKind byte

const (
	starting nodeKind = iota // which version of the code it has is decided when it begins
	function
	walk
	done
	barred // it must not run, and never ends
)

func (n *node) clone() *node {
	c := *n
	c.calls = make([]*node, len(n.calls))
	for i, x := range n.calls {
		c.calls[i] = x.clone()
	}
	return &c
}

func (n *node) end(r forerun.Result) {
	n.kind, n.result, n.calls = done, &r, nil
}

// encode writes what distinguishes a node from another.
func (r *search) encode(b []byte, n *node) []byte {
	if n == nil {
		return append(b, '-')
	}
	b = append(b, '(', byte(n.kind), byte(n.invocation), flag(n.sent)|flag(n.fork)<<1|flag(n.self)<<2)
	switch n.kind {
	case done:
		b = append(b, byte(n.result.Status))
		b = append(b, n.result.Value...)
		return append(b, ')')
	case starting:
		b = append(append(append(b, n.action...), n.input...), flag(n.detach != nil))
		b = binary.AppendUvarint(b, r.number(n.code))
		if n.detach != nil {
			b = binary.AppendUvarint(b, r.number(n.detach))
		}
	case function:
		b = append(append(b, byte(n.acc), byte(n.next)), n.input...) // what it returns, and calls with, may be of its input
		b = binary.AppendUvarint(b, r.number(n.code))
	case walk:
		b = binary.AppendUvarint(b, r.number(n.code))
		b = binary.AppendUvarint(b, r.number(n.program))
		b = binary.AppendUvarint(b, r.number(n.at))
	}
	for _, x := range n.calls {
		b = r.encode(b, x)
	}
	return append(b, ')')
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// number gives each comparable thing a number.
func (r *search) number(x any) uint64 {
	n, ok := r.numbers[x]
	if !ok {
		n = uint64(len(r.numbers))
		r.numbers[x] = n
	}
	return n
}

// state is where a search is.
type state struct {
	at    int // events that were explained
	hint  int // hints that were followed, or missed
	store Store
	roots []*node // by invocation; nil before and after it
	loose []*node // what nobody waits for
}

func (s *state) clone() *state {
	c := &state{at: s.at, hint: s.hint, store: s.store, roots: make([]*node, len(s.roots)), loose: make([]*node, len(s.loose))}
	for i, n := range s.roots {
		if n != nil {
			c.roots[i] = n.clone()
		}
	}
	for i, n := range s.loose {
		c.loose[i] = n.clone()
	}
	return c
}

func (r *search) key(s *state) string {
	b := append(r.buffer[:0], byte(s.at))
	for _, v := range s.store {
		b = append(append(b, v.Kind), v.Text...)
		b = append(b, 0)
	}
	for _, n := range s.roots {
		b = r.encode(b, n)
	}
	b = append(b, '|')
	loose := make([]string, len(s.loose)) // in whatever order
	for i, n := range s.loose {
		from := len(b)
		b = r.encode(b, n)
		loose[i], b = string(b[from:]), b[:from]
	}
	slices.Sort(loose)
	for _, text := range loose {
		b = append(b, text...)
	}
	r.buffer = b
	return string(b)
}

// each visits the executions that wait to do something; a caller before what it called.
func (s *state) each(visit func(*node) bool) bool {
	for _, n := range s.roots {
		if n != nil && !n.each(visit) {
			return false
		}
	}
	for _, n := range s.loose {
		if !n.each(visit) {
			return false
		}
	}
	return true
}

// node is the one that each visits as number at.
func (s *state) node(at int) (it *node) {
	s.each(func(n *node) bool {
		it = n
		at--
		return at >= 0
	})
	return it
}

func (n *node) each(visit func(*node) bool) bool {
	if !visit(n) {
		return false
	}
	for _, x := range n.calls {
		if !x.each(visit) {
			return false
		}
	}
	return true
}
