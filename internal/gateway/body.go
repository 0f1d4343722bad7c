package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// bodyTime is how long a client may take to send a body.
const bodyTime = time.Minute

// await gives a client from now on that long. When all has come http.Server waits on; what has not by then it does not wait for either, before
// the answer or behind it.
func await(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // a writer in a test has none
}

// Body reads a request's body of at most limit bytes. The error is forerun.TooLarge, Invalid (cut off) or
// DeadlineExpired (sent too slowly).
func Body(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(r.ContentLength, limit)
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	await(w)
	body, err := read(http.MaxBytesReader(w, r.Body, limit), r.ContentLength)
	switch {
	case err == nil:
		return body, nil
	case isThrottled(err):
		return nil, err
	case isTooLarge(err):
		return nil, tooLarge(limit+1, limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, forerun.Errorf(forerun.DeadlineExpired, "body", "The request's content did not arrive within %s.", bodyTime)
	default:
		return nil, forerun.Errorf(forerun.Invalid, "body", "Failed extracting request body.")
	}
}

// maxDrain bounds what is read of a body that nobody reads.
const maxDrain = 64 << 20

// drain reads what a client sends of a request's body although it was refused: many clients hear an answer only when they have sent all.
// With HTTP/2 all hear it, and http.Server tells them to send no more.
func drain(r *http.Request, body io.Reader) {
	if !isShared(r) && r.ContentLength <= maxDrain && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, body, maxDrain) // the answer is the same if it breaks off
	}
}

// read reads a body whose length is known, or -1. What is announced takes no memory before it comes.
func read(body io.Reader, length int64) ([]byte, error) {
	if length < 0 {
		return io.ReadAll(body)
	}
	var b []byte
	for have := int64(0); have < length; have = int64(len(b)) {
		b = append(b, make([]byte, min(length, max(smallBody, 2*have))-have)...)
		if _, err := io.ReadFull(body, b[have:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func isTooLarge(err error) bool {
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

func isThrottled(err error) bool {
	_, ok := errors.AsType[*throttled](err)
	return ok
}

func tooLarge(is, allowed int64) error {
	return forerun.Errorf(forerun.TooLarge, "body", "Request larger than allowed: %d > %d bytes.", is, allowed)
}
