package openwhisk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// http3 waits for the end of the handshake before it sends anything but GET and HEAD, and its RequestStream says of each POST that it has no body.
// So an invocation that is early data has a QUIC stream of its own, with the frames of RFC 9114 written and read here.

// Frames of HTTP/3.
const (
	dataFrame    = 0
	headersFrame = 1
	maxHead      = 64 << 10 // bytes of an answer's head
)

// hopHeaders are of a connection of HTTP/1.1, or are written otherwise.
var hopHeaders = []string{"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host", "content-length"}

// writeRequest writes a request with its body, and ends that direction of the stream.
func writeRequest(stream *quic.Stream, r *http.Request, body []byte) error {
	var block bytes.Buffer
	e := qpack.NewEncoder(&block)
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	fields := []qpack.HeaderField{
		{Name: ":method", Value: r.Method},
		{Name: ":scheme", Value: r.URL.Scheme},
		{Name: ":authority", Value: host},
		{Name: ":path", Value: r.URL.RequestURI()},
		{Name: "content-length", Value: strconv.Itoa(len(body))},
	}
	for name, values := range r.Header {
		if name = strings.ToLower(name); slices.Contains(hopHeaders, name) {
			continue
		}
		for _, value := range values {
			fields = append(fields, qpack.HeaderField{Name: name, Value: value})
		}
	}
	for _, f := range fields {
		if err := e.WriteField(f); err != nil {
			return err
		}
	}
	text := frame(nil, headersFrame, block.Bytes())
	if len(body) > 0 {
		text = frame(text, dataFrame, body)
	}
	if _, err := stream.Write(text); err != nil {
		return err
	}
	return stream.Close()
}

func frame(to []byte, kind uint64, content []byte) []byte {
	to = quicvarint.Append(to, kind)
	return append(quicvarint.Append(to, uint64(len(content))), content...)
}

// frames reads the frames of a stream. As an io.Reader it gives what the data frames hold.
type frames struct {
	in   *bufio.Reader
	left uint64 // bytes of the data frame that is read
}

// next goes to the next frame of data or headers, and passes over others.
func (f *frames) next() (kind, length uint64, err error) {
	for {
		if kind, err = quicvarint.Read(f.in); err != nil {
			return 0, 0, err
		}
		if length, err = quicvarint.Read(f.in); err != nil {
			return 0, 0, unexpected(err)
		}
		if kind == dataFrame || kind == headersFrame {
			return kind, length, nil
		}
		if _, err := io.CopyN(io.Discard, f.in, int64(length)); err != nil {
			return 0, 0, unexpected(err)
		}
	}
}

// Read implements io.Reader.
func (f *frames) Read(b []byte) (int, error) {
	for f.left == 0 {
		kind, length, err := f.next()
		if err != nil {
			return 0, err
		}
		if kind == dataFrame {
			f.left = length
		} else if _, err := io.CopyN(io.Discard, f.in, int64(length)); err != nil { // trailers
			return 0, unexpected(err)
		}
	}
	n, err := f.in.Read(b[:min(uint64(len(b)), f.left)])
	f.left -= uint64(n)
	if f.left > 0 {
		err = unexpected(err)
	}
	return n, err
}

// head reads the head of the answer. It passes over what a server sends before that (100 Continue).
func (f *frames) head() (*http.Response, error) {
	for {
		kind, length, err := f.next()
		if err != nil {
			return nil, unexpected(err)
		}
		if kind != headersFrame || length > maxHead {
			return nil, errors.New("the answer does not begin with a head of at most 64 KiB")
		}
		block := make([]byte, length)
		if _, err := io.ReadFull(f.in, block); err != nil {
			return nil, unexpected(err)
		}
		answer, err := parseHead(block)
		if err != nil || answer.StatusCode >= http.StatusOK {
			return answer, err
		}
	}
}

func parseHead(block []byte) (*http.Response, error) {
	answer := &http.Response{Proto: "HTTP/3.0", ProtoMajor: 3, Header: make(http.Header), ContentLength: -1}
	next := qpack.NewDecoder().Decode(block)
	for {
		field, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the head of the answer cannot be read: %w", err)
		}
		if field.Name == ":status" {
			answer.StatusCode, err = strconv.Atoi(field.Value)
		} else {
			answer.Header.Add(field.Name, field.Value)
		}
		if err == nil && field.Name == "content-length" {
			answer.ContentLength, err = strconv.ParseInt(field.Value, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("the head of the answer cannot be read: %w", err)
		}
	}
	if answer.StatusCode < 100 || answer.StatusCode > 999 {
		return nil, errors.New("the answer has no status")
	}
	answer.Status = strconv.Itoa(answer.StatusCode) + " " + http.StatusText(answer.StatusCode)
	return answer, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
