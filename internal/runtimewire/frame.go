// Package runtimewire is the server's end of the protocol between a worker and
// a language runtime: frames over a Unix stream socket, with descriptors and
// the sender's process id beside them. runtimes/PROTOCOL.md is the contract.
//
// It promises that nothing the other end sends makes it allocate more than has
// arrived (plus a constant), read beyond its limits, or keep a descriptor that
// no frame accounts for. It knows frames, not what they are for: that is in
// internal/worker.
package runtimewire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"forerun.dev/forerun/internal/forerun"
)

// Version is the version of the protocol, which a runtime's Hello must name.
const Version = 1

// Type is the first byte of a frame.
type Type byte

// The frames between server and initializer, on the control socket.
const (
	TypeHello    Type = 1 // runtime: what it is
	TypeInit     Type = 2 // server: load this code
	TypeInitDone Type = 3 // runtime: loaded, or why not
	TypeFork     Type = 4 // server: fork a handler ahead
	TypeHandler  Type = 5 // runtime: here it is, with the server's end of its socket
	TypeExit     Type = 6 // runtime: a handler ended, and how
	TypeContinue Type = 7 // server: let a handler go on that was stopped
	TypePause    Type = 8 // server: stop a handler
	TypePaused   Type = 9 // runtime: it is stopped, or has ended
)

// The frames between server and handler, on the handler's own socket.
const (
	TypeReady   Type = 16 // handler: waiting; carries the process id in its credentials
	TypeRun     Type = 17 // server: execute this
	TypeResult  Type = 18 // handler: its outcome, the last frame
	TypeLog     Type = 19 // handler: a line for the log
	TypePromote Type = 23 // server: no longer speculative
	TypeSquash  Type = 24 // server: end at once, no result is wanted
)

// PrefixSize is the length of what precedes header and payload.
const PrefixSize = 8

// The protocol's own limits, in bytes; a Conn may have lower ones.
const (
	MaxHeader  = 1 << 20
	MaxPayload = 64 << 20
)

// chunk is what is allocated before anything of a body has arrived.
const chunk = 32 << 10

// Frame is one frame as read.
type Frame struct {
	Type    Type
	Header  []byte // a JSON object, or empty
	Payload []byte
	Files   []*os.File // the descriptors that came with a Handler frame, owned by the reader of the frame; else none
	PID     int        // of the process that sent a Ready frame, in this process's namespace; else 0
}

// Decode reads the frame's header into v; an empty header is an empty object.
func (f *Frame) Decode(v any) error {
	if len(f.Header) == 0 {
		return nil
	}
	if err := json.Unmarshal(f.Header, v); err != nil {
		return fmt.Errorf("%w: the header of a frame of type %d cannot be read: %w", ErrMalformed, f.Type, err)
	}
	return nil
}

// Result reads the header of a Result. Nearly all are those of a success, as all runtimes write it.
func (f *Frame) Result() (r Result, err error) {
	if bytes.Equal(f.Header, succeeded) {
		return Result{Status: StatusOK}, nil
	}
	err = f.Decode(&r)
	return r, err
}

// Limits bound one direction of a connection.
type Limits struct {
	Header  int // at most MaxHeader
	Payload int // at most MaxPayload
}

// ErrMalformed is in the chain of errors that say that the other end broke the protocol, and did not just end.
var ErrMalformed = errors.New("the runtime protocol was broken")

// SizeError says that a frame was announced that is over the reader's limits. Nothing of its body was read. It is an
// ErrMalformed.
type SizeError struct {
	Type            Type
	Header, Payload int
	Limits          Limits
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("a frame of type %d with %d + %d bytes is over the limits of %d + %d",
		e.Type, e.Header, e.Payload, e.Limits.Header, e.Limits.Payload)
}

// Is makes a SizeError an ErrMalformed.
func (e *SizeError) Is(target error) bool { return target == ErrMalformed }

// ReadFrame reads one frame. At the end of the stream before a frame the error is io.EOF; within one it is
// io.ErrUnexpectedEOF.
func ReadFrame(r io.Reader, limits Limits) (Frame, error) {
	var prefix [PrefixSize]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{Type: Type(prefix[0])}
	sizes := binary.BigEndian.Uint64(prefix[:])
	header, payload := int(sizes>>32&0xffffff), int(sizes&0xffffffff)
	if header > limits.Header || payload > limits.Payload {
		return f, &SizeError{f.Type, header, payload, limits}
	}
	body, err := readBody(r, header+payload)
	if err != nil {
		return f, err
	}
	f.Header, f.Payload = body[:header:header], body[header:]
	return f, nil
}

// readBody reads n bytes, allocating as they arrive: twice what is there, at most.
func readBody(r io.Reader, n int) ([]byte, error) {
	body := make([]byte, 0, min(n, chunk))
	for len(body) < n {
		if len(body) == cap(body) {
			grown := make([]byte, len(body), min(n, 2*cap(body)))
			copy(grown, body)
			body = grown
		}
		got, err := io.ReadFull(r, body[len(body):cap(body)])
		body = body[:len(body)+got]
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}

// AppendFrame appends the prefix and header of a frame whose payload has the given size, and which follows it. A nil
// header is an empty one. The error is forerun.TooLarge if the frame would be over the protocol's limits.
func AppendFrame(dst []byte, t Type, header any, payload int) ([]byte, error) {
	at := len(dst)
	frame, err := appendHeader(append(dst, make([]byte, PrefixSize)...), header)
	if err != nil {
		return dst, fmt.Errorf("the header of a frame of type %d cannot be written: %w", t, err)
	}
	head := len(frame) - at - PrefixSize
	if head > MaxHeader || payload > MaxPayload {
		return dst, forerun.Errorf(forerun.TooLarge, "", "%w", &SizeError{t, head, payload, Limits{MaxHeader, MaxPayload}})
	}
	binary.BigEndian.PutUint64(frame[at:], uint64(t)<<56|uint64(head)<<32|uint64(payload))
	return frame, nil
}

func appendHeader(dst []byte, header any) ([]byte, error) {
	switch h := header.(type) {
	case nil:
		return dst, nil
	case Run:
		return h.append(dst), nil
	default:
		head, err := json.Marshal(header)
		return append(dst, head...), err
	}
}
