package native

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The frames between server, helper and first stage are sequences of numbers (unsigned varints) and strings (a length and bytes). They
// have no names: each reader knows the order.

type encoder struct{ b []byte }

func (e *encoder) number(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

func (e *encoder) flag(v bool) {
	if v {
		e.number(1)
	} else {
		e.number(0)
	}
}

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) texts(list []string) {
	e.number(uint64(len(list)))
	for _, s := range list {
		e.text(s)
	}
}

var errFrame = errors.New("a frame ends too early or holds too large a number")

// decoder keeps its first error; after it everything reads as zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.err, d.b = errFrame, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) flag() bool { return d.number() != 0 }

// count reads the length of what follows; each element takes at least one byte.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.err, d.b = errFrame, nil
		return 0
	}
	return int(n)
}

// small reads a number that is used as an int.
func (d *decoder) small() int {
	n := d.number()
	if n > 1<<31-1 {
		d.err, d.b = errFrame, nil
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) texts() []string {
	var list []string
	for range d.count() {
		list = append(list, d.text())
	}
	return list
}

// end returns the first error; unread bytes are one.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		return fmt.Errorf("a frame holds %d bytes too many", len(d.b))
	}
	return d.err
}
