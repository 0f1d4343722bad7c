package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// streamNames are the streams of an output, by index.
var streamNames = [2]string{"stdout", "stderr"}

// output collects what the processes of a sandbox write. Two goroutines read the pipes as they fill; at an activation's
// end what is left in them is taken at once, so no line is missed and none is waited for.
type output struct {
	streams [2]syscall.RawConn
	files   [2]*os.File

	mu      sync.Mutex           // guards the rest, and is held while a pipe is read
	log     *logbook             // of the activation, or of loading the code; nil: output is dropped
	wrote   func(lines []string) // hears of the activation's lines; nil: of none
	loading *logbook             // of the loading that is over, for the first activation; nil: it has it
	partial [2][]byte            // lines without their end yet
	buffer  []byte
}

// newOutput begins to collect into the log of the code's loading.
func newOutput(stdout, stderr *os.File, limit int) (*output, error) {
	o := &output{files: [2]*os.File{stdout, stderr}, log: newLogbook(limit), buffer: make([]byte, 16<<10)}
	for i, f := range o.files {
		raw, err := f.SyscallConn()
		if err != nil {
			return nil, fmt.Errorf("the sandbox's %s cannot be read: %w", streamNames[i], err)
		}
		o.streams[i] = raw
	}
	return o, nil
}

// read reads one stream until its end.
func (o *output) read(stream int) {
	ended := false
	for !ended {
		err := o.streams[stream].Read(func(fd uintptr) bool {
			var more bool
			more, ended = o.take(int(fd), stream)
			return more || ended
		})
		if err != nil {
			return
		}
	}
}

// take reads once. more is false when nothing is there, ended when nothing will be.
func (o *output) take(fd, stream int) (more, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := syscall.Read(fd, o.buffer)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return false, false
	case errors.Is(err, syscall.EINTR):
		return true, false
	case err != nil || n == 0:
		return false, true
	}
	o.split(stream, o.buffer[:n])
	return true, false
}

// drain reads what is in the pipes now, but no more than a pipe holds: a process that the activation left may go on
// writing.
func (o *output) drain() {
	for i, raw := range o.streams {
		_ = raw.Control(func(fd uintptr) {
			for range pipeReads {
				if more, _ := o.take(int(fd), i); !more {
					return
				}
			}
		})
	}
}

// pipeReads is how many reads take what a pipe of 1 MiB, the largest there is, can hold: of each page one, as a process may have made it one of
// packets (O_DIRECT).
const pipeReads = 256

// split adds the lines of data to the log. mu is held.
func (o *output) split(stream int, data []byte) {
	if o.log == nil || o.log.full {
		o.partial[stream] = nil
		return
	}
	now := time.Now()
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			break
		}
		o.log.add(now, streamNames[stream], append(o.partial[stream], line...))
		o.partial[stream], data = o.partial[stream][:0], rest
	}
	o.partial[stream] = append(o.partial[stream], data...)
	if len(o.partial[stream]) > o.log.limit {
		o.flush(stream)
	}
	o.tell()
}

// tell tells of the lines so far. mu is held.
func (o *output) tell() {
	if o.wrote != nil && len(o.log.lines) > 0 {
		o.wrote(o.log.lines)
	}
}

// flush makes a line of what has no end yet. mu is held.
func (o *output) flush(stream int) {
	if o.log != nil && len(o.partial[stream]) > 0 {
		o.log.add(time.Now(), streamNames[stream], o.partial[stream])
	}
	o.partial[stream] = nil
}

// begin makes the log an activation's. The first one also gets what was written while the code was loaded. wrote, unless it
// is nil, is called with the lines so far each time that there are more.
func (o *output) begin(limit int, wrote func(lines []string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log, o.loading = o.loading, nil; o.log == nil {
		o.log = newLogbook(limit)
	}
	o.wrote = wrote
	o.tell()
}

// loaded ends the log of loading the code. Output before the first activation is dropped, because another process may be
// loaded.
func (o *output) loaded() {
	o.drain()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(0)
	o.flush(1)
	o.loading, o.log = o.log, nil
}

// restart begins a new log of loading the code, with the action's limit.
func (o *output) restart(limit int) {
	o.discard()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = newLogbook(limit)
}

// say adds a text to the log that did not come through a pipe.
func (o *output) say(stream, text string) {
	if stream != streamNames[0] {
		stream = streamNames[1]
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log == nil {
		return
	}
	for line := range strings.Lines(text) {
		o.log.add(time.Now(), stream, []byte(strings.TrimSuffix(line, "\n")))
	}
	o.tell()
}

// end closes the log and returns it. Later output is dropped.
func (o *output) end() []string {
	o.drain()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(0)
	o.flush(1)
	if o.log == nil {
		return nil
	}
	lines := o.log.lines
	o.log, o.wrote = nil, nil
	return lines
}

// discard drops what came after the end.
func (o *output) discard() {
	o.drain()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = [2][]byte{}
}

// close ends the readers.
func (o *output) close() {
	for _, f := range o.files {
		_ = f.Close()
	}
}

// logbook is the log of one activation, bounded.
type logbook struct {
	lines []string
	limit int // bytes of all lines
	size  int
	full  bool
}

func newLogbook(limit int) *logbook { return &logbook{limit: limit} }

// stampLayout is the form of a log line's time: UTC, nanoseconds.
const stampLayout = "2006-01-02T15:04:05.000000000Z"

// add adds a line, "time stream: text". The line that does not fit is cut, and is the last but one.
func (l *logbook) add(at time.Time, stream string, text []byte) {
	if l.full {
		return
	}
	line := make([]byte, 0, len(stampLayout)+len(stream)+3+len(text))
	line = at.UTC().AppendFormat(line, stampLayout)
	line = append(line, ' ')
	line = append(line, stream...)
	line = append(line, ": "...)
	head := len(line)
	if room := l.limit - l.size - head; len(text) > room {
		text, l.full = text[:max(room, 0)], true
	}
	line = append(line, text...)
	l.size += len(line)
	if !l.full || len(text) > 0 {
		l.lines = append(l.lines, strings.ToValidUTF8(string(line), "\ufffd"))
	}
	if l.full {
		l.lines = append(l.lines, fmt.Sprintf("%s stderr: Logs were truncated because the total bytes size exceeds the limit of %d bytes.",
			at.UTC().Format(stampLayout), l.limit))
	}
}
