package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"forerun.dev/forerun/internal/egress"
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

// list writes a list without names: 0 for one that bounds nothing, else one more than its rules.
func (e *encoder) list(l egress.List) {
	if l == nil {
		e.number(0)
		return
	}
	e.number(uint64(len(l)) + 1)
	for _, r := range l {
		e.text(string(r.Network.Addr().AsSlice()))
		e.number(uint64(r.Network.Bits()))
		e.number(uint64(r.Port))
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

func (d *decoder) list() egress.List {
	n := d.number()
	if n == 0 {
		return nil
	}
	if n-1 > uint64(len(d.b)) {
		d.err, d.b = errFrame, nil
		return egress.List{}
	}
	l := make(egress.List, 0, n-1)
	for range n - 1 {
		ip, _ := netip.AddrFromSlice([]byte(d.text()))
		r := egress.Rule{Network: netip.PrefixFrom(ip, d.small()).Masked()}
		port := d.small()
		if !r.Network.IsValid() || port > math.MaxUint16 {
			d.err, d.b = errFrame, nil
		}
		r.Port = uint16(port)
		l = append(l, r)
	}
	return l
}

// end returns the first error; unread bytes are one.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		return fmt.Errorf("a frame holds %d bytes too many", len(d.b))
	}
	return d.err
}
