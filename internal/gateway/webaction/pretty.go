package webaction

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// pretty writes JSON as OpenWhisk does: each member of an object on a line of its own, arrays on one line. What that would blow up, as
// many members lie deep in it, stays as it is.
func pretty(value json.RawMessage) []byte {
	var b bytes.Buffer
	p := printer{out: &b, most: 64<<10 + 4*len(value), in: jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))}
	if p.value(0) != nil {
		return value // if it is no JSON, it is nothing of ours, and nothing to make of it
	}
	return b.Bytes()
}

type printer struct {
	out  *bytes.Buffer
	most int // bytes of out
	in   *jsontext.Decoder
}

var errBlownUp = errors.New("it gets too long")

func (p *printer) value(depth int) error {
	if p.out.Len() > p.most {
		return errBlownUp
	}
	switch p.in.PeekKind() {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	}
	value, err := p.in.ReadValue()
	p.out.Write(value)
	return err
}

func (p *printer) object(depth int) error {
	if _, err := p.in.ReadToken(); err != nil {
		return err
	}
	p.out.WriteString("{\n")
	for first := true; p.in.PeekKind() != '}'; first = false {
		if !first {
			p.out.WriteString(",\n")
		}
		name, err := p.in.ReadValue()
		if err != nil {
			return err
		}
		p.indent(depth + 1)
		p.out.Write(name)
		p.out.WriteString(": ")
		if err := p.value(depth + 1); err != nil {
			return err
		}
	}
	p.out.WriteByte('\n')
	p.indent(depth)
	p.out.WriteByte('}')
	_, err := p.in.ReadToken()
	return err
}

func (p *printer) array(depth int) error {
	if _, err := p.in.ReadToken(); err != nil {
		return err
	}
	p.out.WriteByte('[')
	for first := true; p.in.PeekKind() != ']'; first = false {
		if !first {
			p.out.WriteString(", ")
		}
		if err := p.value(depth); err != nil {
			return err
		}
	}
	p.out.WriteByte(']')
	_, err := p.in.ReadToken()
	return err
}

func (p *printer) indent(depth int) {
	for range depth {
		p.out.WriteString("  ")
	}
}
