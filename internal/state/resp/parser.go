package resp

import (
	"bytes"
	"io"
	"strconv"
	"unsafe"
)

// Limits of the protocol, as Redis's but for the number of arguments, which Redis bounds since 7.0 by memory alone.
const (
	maxInline     = 64 << 10
	maxArgs       = 1 << 20
	firstBuffer   = 8 << 10  // what a connection begins with
	restingBuffer = 64 << 10 // what it keeps when it has nothing to do
	restingArgs   = 512
	strangerArgs  = 10 // of who has not authenticated
	strangerBulk  = 16 << 10
)

// protocolError is a violation of the protocol, in Redis's words; the connection ends with it.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// parser finds commands in a stream of bytes. What it has read of an incomplete command is not read again.
type parser struct {
	maxBulk  int
	stranger bool // the client has not authenticated: its commands must be short

	buf  []byte // buf[start:] has come in and is not consumed
	full bool   // the last read filled the buffer

	start int    // of the command at work
	pos   int    // how far it has been read
	args  []span // its arguments so far
	left  int    // how many are to come; 0: it has not begun
	bulk  int    // length of the one at work, if known

	out [][]byte // the last command
}

// span is an argument's place in the buffer; inline commands, which may have escapes, are copied out of it.
type span struct{ from, to int }

// next returns the next complete command, valid until fill is called; ok is false if more bytes are needed. A command
// without arguments is empty. The error is a protocolError.
func (p *parser) next() (args [][]byte, ok bool, err error) {
	if p.left == 0 {
		if p.start == len(p.buf) {
			return nil, false, nil
		}
		if p.buf[p.start] != '*' {
			return p.inline()
		}
		if ok, err := p.begin(); !ok || err != nil {
			return nil, false, err
		}
	}
	for p.left > 0 {
		if ok, err := p.argument(); !ok || err != nil {
			return nil, false, err
		}
	}
	p.out = p.out[:0]
	for _, s := range p.args {
		p.out = append(p.out, p.buf[s.from:s.to])
	}
	p.consumed()
	return p.out, true, nil
}

// consumed makes ready for the next command.
func (p *parser) consumed() {
	p.start = p.pos
	p.args = p.args[:0]
	p.left = 0
	p.bulk = -1
}

// line returns what stands before the next line end; ok is false if there is none yet.
func (p *parser) line(tooLong protocolError) (line []byte, ok bool, err error) {
	rest := p.buf[p.pos:]
	i := bytes.IndexByte(rest[:min(len(rest), maxInline)], '\r')
	if i < 0 && len(rest) > maxInline {
		return nil, false, tooLong
	}
	if i < 0 || i+1 >= len(rest) {
		return nil, false, nil
	}
	p.pos += i + 2
	return rest[:i], true, nil
}

// begin reads the number of arguments.
func (p *parser) begin() (ok bool, err error) {
	p.pos = p.start
	line, ok, err := p.line("too big mbulk count string")
	if !ok || err != nil {
		return false, err
	}
	n, valid := length(line[1:])
	switch {
	case !valid || n > maxArgs:
		return false, protocolError("invalid multibulk length")
	case n > strangerArgs && p.stranger:
		return false, protocolError("unauthenticated multibulk length")
	}
	p.left = max(n, 0)
	p.bulk = -1
	return true, nil
}

// argument reads one argument.
func (p *parser) argument() (ok bool, err error) {
	if p.bulk < 0 {
		if ok, err := p.header(); !ok || err != nil {
			return false, err
		}
	}
	if len(p.buf)-p.pos < p.bulk+2 {
		return false, nil
	}
	p.args = append(p.args, span{p.pos, p.pos + p.bulk})
	p.pos += p.bulk + 2
	p.left--
	p.bulk = -1
	if p.pos-p.start > 2*p.maxBulk {
		return false, protocolError("too big command")
	}
	return true, nil
}

// header reads the length of an argument.
func (p *parser) header() (ok bool, err error) {
	if p.pos < len(p.buf) && p.buf[p.pos] != '$' {
		return false, protocolError("expected '$', got '" + string(p.buf[p.pos:p.pos+1]) + "'")
	}
	line, ok, err := p.line("too big bulk count string")
	if !ok || err != nil {
		return false, err
	}
	n, valid := length(line[1:])
	switch {
	case !valid || n < 0 || n > p.maxBulk:
		return false, protocolError("invalid bulk length")
	case n > strangerBulk && p.stranger:
		return false, protocolError("unauthenticated bulk length")
	}
	p.bulk = n
	return true, nil
}

// length reads a number as strictly as Redis.
func length(b []byte) (int, bool) {
	n, err := strconv.Atoi(string(b))
	if err != nil || strconv.Itoa(n) != string(b) {
		return 0, false
	}
	return n, true
}

// inline reads a command that is a line of words.
func (p *parser) inline() (args [][]byte, ok bool, err error) {
	rest := p.buf[p.start:]
	i := bytes.IndexByte(rest[:min(len(rest), maxInline)], '\n')
	if i < 0 {
		if len(rest) > maxInline {
			err = protocolError("too big inline request")
		}
		return nil, false, err
	}
	args, ok = splitWords(bytes.TrimSuffix(rest[:i], []byte("\r")))
	if !ok {
		return nil, false, protocolError("unbalanced quotes in request")
	}
	p.pos = p.start + i + 1
	p.consumed()
	return args, true, nil
}

// fill reads what has come in. Commands that next has returned are gone with it.
func (p *parser) fill(r io.Reader) error {
	p.letGo()
	p.makeRoom()
	n, err := r.Read(p.buf[len(p.buf):cap(p.buf)])
	p.buf = p.buf[:len(p.buf)+n]
	p.full = len(p.buf) == cap(p.buf)
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// letGo forgets the last command, which would keep the buffer that it came in, and what only large commands need.
func (p *parser) letGo() {
	clear(p.out[:cap(p.out)])
	if cap(p.out) > restingArgs {
		p.out = nil
	}
	if len(p.args) == 0 && cap(p.args) > restingArgs {
		p.args = nil
	}
}

// places is what the arguments of a command take beside their bytes.
func (p *parser) places() int {
	return cap(p.args)*int(unsafe.Sizeof(span{})) + cap(p.out)*int(unsafe.Sizeof([]byte{}))
}

// unread is how many bytes have come in that no complete command was made of yet.
func (p *parser) unread() int { return len(p.buf) - p.start }

// size is how large the buffer will be when fill reads into it.
func (p *parser) size() int {
	unread, size := p.unread(), cap(p.buf)
	switch {
	case size == 0 || size > restingBuffer && unread == 0:
		return firstBuffer
	case unread == size:
		return p.grown()
	case p.full && size < restingBuffer:
		return 2 * size
	}
	return size
}

// makeRoom moves what is not consumed to the front, and grows the buffer only if it was filled.
func (p *parser) makeRoom() {
	unread, size := p.buf[p.start:], p.size()
	if size != cap(p.buf) {
		p.buf = append(make([]byte, 0, size), unread...)
	} else {
		p.buf = p.buf[:copy(p.buf, unread)]
	}
	p.shift(p.start)
}

// grown is the next size of a full buffer: twice as large, but not larger than the argument at work.
func (p *parser) grown() int {
	size := 2 * cap(p.buf)
	if p.left > 0 && p.bulk >= 0 {
		if need := p.pos - p.start + p.bulk + 2; need > cap(p.buf) {
			size = min(size, need)
		}
	}
	return size
}

// shift moves all positions n bytes to the front.
func (p *parser) shift(n int) {
	if n == 0 {
		return
	}
	for i := range p.args {
		p.args[i].from -= n
		p.args[i].to -= n
	}
	p.start -= n
	p.pos -= n
}
