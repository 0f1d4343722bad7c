package runtimewire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// variablePrefix begins the names of the variables that a line carries beside the value.
const variablePrefix = "__OW_"

// Lines is a connection with a handler that knows no frames: a program that reads a line of JSON from a pipe for each
// activation, and writes its answer as a line to another, as in OpenWhisk's ActionLoop. It has a Conn's methods and makes the
// frames itself that such a handler would send. One goroutine uses it; any may close it.
type Lines struct {
	in, out *os.File // the program's standard input and its answers
	answers *bufio.Reader
	common  []byte // the members that all lines have
	line    []byte // space
	limit   int
	state   linesState
	unsent  bool // the program had closed its standard input before Run could write to it
}

// linesState is what the next Read brings.
type linesState int

const (
	linesBorn     linesState = iota // the first Ready
	linesIdle                       // nothing, before the next Run
	linesRunning                    // the program's line
	linesAnswered                   // a further Ready
	linesEnded                      // the end, after an answer that was none
)

// NewLines makes a connection with the program behind the pipes in and out, which it owns. env is the environment that the
// code was loaded with.
func NewLines(in, out *os.File, env map[string]string) (*Lines, error) {
	l := &Lines{common: appendMembers(nil, env)}
	var err error
	if l.in, err = pollable(in); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	if l.out, err = pollable(out); err != nil {
		return nil, errors.Join(err, l.in.Close())
	}
	l.answers = bufio.NewReaderSize(l.out, 16<<10)
	return l, nil
}

// pollable makes a pipe one that a goroutine can wait for. Other files are refused.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	var st syscall.Stat_t
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(fd)
	err = syscall.Fstat(fd, &st)
	if err == nil && st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		err = fmt.Errorf("%w: a descriptor is not a pipe", ErrMalformed)
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// SetReadDeadline bounds Read.
func (l *Lines) SetReadDeadline(t time.Time) error { return l.out.SetReadDeadline(t) }

// Close closes everything; a Read in progress ends.
func (l *Lines) Close() error { return errors.Join(l.in.Close(), l.out.Close()) }

// Run sends an activation. What the program has written since its last answer is dropped. A program that has closed its standard input, or
// has ended, is not an error: Read tells how it goes on.
func (l *Lines) Run(header Run, input []byte) error {
	if err := l.discard(); err != nil {
		return err
	}
	l.line = appendMembers(append(appendValue(l.line[:0], input), l.common...), header.Env)
	l.line = append(l.line, "}\n"...)
	l.limit, l.state = header.Limit, linesRunning
	if l.limit == 0 {
		l.limit = MaxPayload
	}
	_, err := l.in.Write(l.line)
	if l.unsent = errors.Is(err, syscall.EPIPE); l.unsent {
		return nil
	}
	return err
}

// Unread reports whether the program has left something of the value in the line that Run wrote. The line's end alone does not show that: a
// program that parses as it reads has all that it needs with the last brace, and may have acted.
func (l *Lines) Unread(error) bool { return l.unsent || l.left() > len("\n") }

// isUntouched reports whether the program has read nothing of the line that Run wrote.
func (l *Lines) isUntouched() bool { return l.unsent || l.left() >= len(l.line) }

// left is how many bytes the program has not read; 0 if that cannot be told.
func (l *Lines) left() (bytes int) {
	raw, err := l.in.SyscallConn()
	if err != nil {
		return 0
	}
	controlErr := raw.Control(func(fd uintptr) { bytes, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) // fails if it is closed
	if errors.Join(controlErr, err) != nil {
		return 0
	}
	return bytes
}

// discard drops what is there to read.
func (l *Lines) discard() error {
	_, _ = l.answers.Discard(l.answers.Buffered())
	raw, err := l.out.SyscallConn()
	if err != nil {
		return err
	}
	var scrap [4096]byte
	return raw.Control(func(fd uintptr) {
		for range maxDiscarded / len(scrap) {
			if n, _ := syscall.Read(int(fd), scrap[:]); n <= 0 {
				return
			}
		}
	})
}

// maxDiscarded bounds what is dropped before a Run: a program may go on writing.
const maxDiscarded = 1 << 20

// Read brings the next frame: of a Result the payload is valid until the next Run.
func (l *Lines) Read() (Frame, error) {
	switch l.state {
	case linesBorn:
		return l.ready()
	case linesRunning:
		return l.answer()
	case linesAnswered:
		l.state = linesIdle
		return Frame{Type: TypeReady}, nil
	default:
		return Frame{}, io.EOF
	}
}

// ready is the first frame. The process is the owner of its input, whom the kernel names in this process's namespace.
func (l *Lines) ready() (f Frame, err error) {
	raw, err := l.in.SyscallConn()
	if err != nil {
		return f, err
	}
	f.Type, l.state = TypeReady, linesIdle
	controlErr := raw.Control(func(fd uintptr) { f.PID, err = unix.FcntlInt(fd, unix.F_GETOWN, 0) })
	if err = errors.Join(err, controlErr); err == nil && f.PID <= 0 {
		err = io.EOF // it has ended
	}
	return f, err
}

// succeeded is the header of a Result.
var succeeded = []byte(`{"status":"` + StatusOK + `"}`)

// answer reads the program's line and makes a Result of it. One that is not a JSON object or array, or is too long, is the last. A line that
// the program wrote before it read anything is not an answer.
func (l *Lines) answer() (Frame, error) {
	line, err := l.readLine()
	for err == nil && l.isUntouched() {
		line, err = l.readLine()
	}
	trimmed := bytes.TrimSpace(line)
	failure := Result{Status: StatusError}
	switch {
	case errors.Is(err, errTooLong):
		failure.Error = fmt.Sprintf("The action produced a response that exceeded the allowed length: more than %d bytes.", l.limit)
	case err != nil:
		return Frame{}, err
	case len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[':
		failure.Error = "The action did not return a dictionary or array."
	default:
		l.state = linesAnswered
		return Frame{Type: TypeResult, Header: succeeded, Payload: trimmed}, nil
	}
	l.state = linesEnded
	header, err := json.Marshal(failure)
	return Frame{Type: TypeResult, Header: header}, err
}

var errTooLong = errors.New("the line is too long")

// readLine reads a line within the limit; what comes before the end of the stream is one too.
func (l *Lines) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := l.answers.ReadSlice('\n')
		switch {
		case len(line)+len(part) > l.limit+1:
			return nil, errTooLong
		case err == nil && line == nil:
			return part, nil
		}
		line = append(line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// appendValue begins a line with an activation's input, in which no line may end.
func appendValue(dst, value []byte) []byte {
	dst = append(dst, `{"value":`...)
	from := len(dst)
	dst = append(dst, value...)
	for i, b := range dst[from:] {
		if b == '\n' || b == '\r' {
			dst[from+i] = ' ' // between two tokens: within a string it would be escaped
		}
	}
	return dst
}

// appendMembers appends what OpenWhisk sends beside the value: the variables __OW_NAME as name, sorted.
func appendMembers(dst []byte, env map[string]string) []byte {
	var room [8]string
	variables := slices.AppendSeq(room[:0], maps.Keys(env))
	slices.Sort(variables)
	for _, variable := range variables {
		name, ok := strings.CutPrefix(variable, variablePrefix)
		if !ok {
			continue
		}
		dst = appendString(append(dst, ','), strings.ToLower(name))
		dst = appendString(append(dst, ':'), env[variable])
	}
	return dst
}

// appendString appends a JSON string.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := json.Marshal(s) // strings always marshal
			return append(dst, text...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
