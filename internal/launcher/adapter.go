package launcher

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/runtimewire"
)

// variablePrefix begins the names of the variables that a line carries beside the value.
const variablePrefix = "__OW_"

// adapter translates between the frames of a handler's socket and the lines of a native program.
type adapter struct {
	pipes   *pipes
	env     map[string]string // of Init
	frames  *bufio.Reader
	answers *bufio.Reader
	out     []byte // space for what is written
}

func newAdapter(p *pipes, env map[string]string) *adapter {
	return &adapter{pipes: p, env: env, frames: bufio.NewReaderSize(p.handler, 16<<10), answers: bufio.NewReaderSize(p.outRead, 16<<10)}
}

func (a *adapter) close() {
	closeAll(a.pipes.handler, a.pipes.inWrite, a.pipes.outRead, a.pipes.statusRead)
}

// begin waits until the stub has become the program, and for its acknowledgement if it gives one.
func (a *adapter) begin(ack bool) error {
	reason, err := io.ReadAll(a.pipes.statusRead)
	if err != nil || len(reason) > 0 {
		return errors.Join(err, errors.New(string(reason)))
	}
	if !ack {
		return nil
	}
	return acknowledged(a.line(runtimewire.MaxHeader))
}

// serve translates until the server or the program is gone, or the program breaks the rules.
func (a *adapter) serve() {
	for {
		f, err := runtimewire.ReadFrame(a.frames, runtimewire.Limits{Header: runtimewire.MaxHeader, Payload: runtimewire.MaxPayload})
		if err != nil || f.Type != runtimewire.TypeRun {
			return
		}
		result, payload, ok := a.run(&f)
		if !ok {
			return
		}
		if err := a.answer(result, payload); err != nil || result.Status != runtimewire.StatusOK {
			return // a program that answered with nonsense is not asked again
		}
	}
}

// run has the program execute one activation. It reports false if the program ended without an answer.
func (a *adapter) run(f *runtimewire.Frame) (result runtimewire.Result, payload []byte, ok bool) {
	header := runtimewire.Run{}
	if err := f.Decode(&header); err != nil {
		return result, nil, false
	}
	if header.Limit == 0 {
		header.Limit = runtimewire.MaxPayload
	}
	a.discard()
	a.out = appendLine(a.out[:0], f.Payload, a.env, header.Env)
	if _, err := a.pipes.inWrite.Write(a.out); err != nil {
		return result, nil, false
	}
	line, err := a.line(header.Limit)
	switch trimmed := bytes.TrimSpace(line); {
	case errors.Is(err, errTooLong):
		result.Error = fmt.Sprintf("The action produced a response that exceeded the allowed length: more than %d bytes.", header.Limit)
	case err != nil:
		return result, nil, false
	case len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[':
		result.Error = "The action did not return a dictionary or array."
	default:
		return runtimewire.Result{Status: runtimewire.StatusOK}, trimmed, true
	}
	result.Status = runtimewire.StatusError
	return result, nil, true
}

// answer sends a Result and, if the program can go on, Ready.
func (a *adapter) answer(result runtimewire.Result, payload []byte) (err error) {
	a.out, err = runtimewire.AppendFrame(a.out[:0], runtimewire.TypeResult, result, len(payload))
	if err != nil {
		return err
	}
	a.out = append(a.out, payload...)
	if result.Status == runtimewire.StatusOK {
		if a.out, err = runtimewire.AppendFrame(a.out, runtimewire.TypeReady, nil, 0); err != nil {
			return err
		}
	}
	_, err = a.pipes.handler.Write(a.out)
	return err
}

// discard drops what the program wrote after its last answer.
func (a *adapter) discard() {
	_, _ = a.answers.Discard(a.answers.Buffered())
	poll := []unix.PollFd{{Fd: int32(a.pipes.outRead.Fd()), Events: unix.POLLIN}}
	for n, _ := unix.Poll(poll, 0); n > 0 && poll[0].Revents&unix.POLLIN != 0; n, _ = unix.Poll(poll, 0) {
		if _, err := a.answers.Peek(1); err != nil {
			return
		}
		_, _ = a.answers.Discard(a.answers.Buffered())
	}
}

var errTooLong = errors.New("the line is too long")

// line reads a line of at most so many bytes; what comes before the end of the stream is one too.
func (a *adapter) line(limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := a.answers.ReadSlice('\n')
		if len(line)+len(part) > limit+1 {
			return nil, errTooLong
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

// appendLine appends the line of an activation: its input, and what OpenWhisk sends with it, under the variables' names
// without their prefix.
func appendLine(dst, value []byte, envs ...map[string]string) []byte {
	dst = append(dst, `{"value":`...)
	from := len(dst)
	dst = append(dst, value...)
	for i, b := range dst[from:] {
		if b == '\n' || b == '\r' {
			dst[from+i] = ' ' // between two tokens: within a string it would be escaped
		}
	}
	members := make(map[string]string)
	for _, env := range envs {
		for name, v := range env {
			if name, ok := strings.CutPrefix(name, variablePrefix); ok {
				members[strings.ToLower(name)] = v
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key, _ := json.Marshal(name) // strings always marshal
		text, _ := json.Marshal(members[name])
		dst = append(append(append(append(dst, ','), key...), ':'), text...)
	}
	return append(dst, "}\n"...)
}
