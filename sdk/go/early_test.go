package openwhisk

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/quic-go/qpack"
)

// answerOf is an answer as a server writes it: 100 Continue, its head, an unknown frame, two parts of a body, and trailers.
func answerOf(t testing.TB, status, length string) []byte {
	t.Helper()
	block := func(fields ...qpack.HeaderField) []byte {
		var b bytes.Buffer
		e := qpack.NewEncoder(&b)
		for _, f := range fields {
			if err := e.WriteField(f); err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}
	text := frame(nil, headersFrame, block(qpack.HeaderField{Name: ":status", Value: "100"}))
	text = frame(text, headersFrame, block(qpack.HeaderField{Name: ":status", Value: status}, qpack.HeaderField{Name: "content-length", Value: length}))
	text = frame(text, 0x21, []byte("unknown"))
	text = frame(frame(text, dataFrame, []byte("one ")), dataFrame, []byte("two"))
	return frame(text, headersFrame, block(qpack.HeaderField{Name: "x-trailer", Value: "1"}))
}

func TestFrames(t *testing.T) {
	text := answerOf(t, "200", "7")
	in := &frames{in: bufio.NewReader(bytes.NewReader(text))}
	answer, err := in.head()
	if err != nil || answer.StatusCode != http.StatusOK || answer.ContentLength != 7 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if body, err := io.ReadAll(in); err != nil || string(body) != "one two" {
		t.Errorf("the body is %q, %v", body, err)
	}
	if _, err := (&frames{in: bufio.NewReader(bytes.NewReader(answerOf(t, "x", "7")))}).head(); err == nil {
		t.Error("a status that is not a number is taken")
	}
	cut := &frames{in: bufio.NewReader(bytes.NewReader(text[:len(text)-len("two")-20]))}
	if _, err := cut.head(); err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(cut); err == nil && string(body) == "one two" {
		t.Error("an answer that was cut off is whole")
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(answerOf(f, "200", "7"))
	f.Fuzz(func(t *testing.T, text []byte) {
		in := &frames{in: bufio.NewReader(bytes.NewReader(text))}
		answer, err := in.head()
		if err != nil {
			return
		}
		body, _ := io.ReadAll(in) // it may be cut off
		if answer.StatusCode < http.StatusOK || len(body) > len(text) {
			t.Errorf("%+v with %d bytes of %d", answer, len(body), len(text))
		}
	})
}
