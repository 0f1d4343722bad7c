package openwhisk

import (
	"bufio"
	"io"
	"iter"
	"net/http"

	"forerun.dev/forerun/internal/gateway"
)

// streamPart is how much is sent at a time, in bytes, if the pieces are smaller.
const streamPart = 32 << 10

// stream answers with a document that is written piece by piece, as together the pieces may be large. If one cannot be made, those before it
// may have been sent: then the connection is cut, so that the client knows.
func (c *call) stream(write func(out *bufio.Writer) error) error {
	c.w.Header().Set("Content-Type", "application/json")
	sent := &sender{to: c.w}
	out := bufio.NewWriterSize(sent, streamPart)
	err := write(out)
	switch {
	case sent.err != nil: // nobody is left to tell
	case err == nil:
		_ = out.Flush()
	case !sent.began:
		return err
	default:
		gateway.Explain(c.w, c.r, err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// sender knows whether something was sent, and why no more can be.
type sender struct {
	to    io.Writer
	began bool
	err   error
}

// Write implements io.Writer.
func (s *sender) Write(b []byte) (n int, err error) {
	s.began = true
	n, s.err = s.to.Write(b)
	return n, s.err
}

// streamList answers with a list.
func streamList[T, D any](c *call, items iter.Seq2[T, error], show func(T) D) error {
	return c.stream(func(out *bufio.Writer) error { return writeList(out, items, show) })
}

// writeList writes a list whose items are read one by one.
func writeList[T, D any](out *bufio.Writer, items iter.Seq2[T, error], show func(T) D) error {
	_ = out.WriteByte('[') // that it fails is told by what follows
	isFirst := true
	for item, err := range items {
		if err != nil {
			return err
		}
		if !isFirst {
			_ = out.WriteByte(',')
		}
		if _, err := out.Write(gateway.Marshal(show(item))); err != nil {
			return err
		}
		isFirst = false
	}
	return out.WriteByte(']')
}
