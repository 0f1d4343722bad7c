package runtimewire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"runtime"
	"testing"
	"testing/iotest"

	"forerun.dev/forerun/internal/forerun"
)

var all = Limits{MaxHeader, MaxPayload}

// vectors is the form of runtimes/testdata/vectors.json.
type vectors struct {
	Protocol int
	Frames   []struct {
		Name, From     string
		Type           Type
		Header         map[string]any
		Payload, Bytes string
	}
	Refused []struct{ Name, Why, Bytes string }
}

func readVectors(t testing.TB) (v vectors) {
	data, err := os.ReadFile("../../runtimes/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// message makes an empty header of each type that has one.
var message = map[Type]func() any{
	TypeHello: func() any { return new(Hello) }, TypeInit: func() any { return new(Init) },
	TypeInitDone: func() any { return new(InitDone) }, TypeHandler: func() any { return new(Handler) },
	TypeFork: func() any { return new(Fork) }, TypeContinue: func() any { return new(Continue) },
	TypePause: func() any { return new(Pause) }, TypePaused: func() any { return new(Paused) },
	TypeExit: func() any { return new(Exit) }, TypeReady: func() any { return new(Ready) },
	TypeRun: func() any { return new(Run) }, TypeResult: func() any { return new(Result) },
	TypeLog: func() any { return new(Log) },
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	if v.Protocol != Version || len(v.Frames) == 0 {
		t.Fatalf("vectors of version %d, %d frames", v.Protocol, len(v.Frames))
	}
	for _, frame := range v.Frames {
		want, payload := unhex(t, frame.Bytes), unhex(t, frame.Payload)
		f, err := ReadFrame(bytes.NewReader(want), all)
		if err != nil || f.Type != frame.Type || !bytes.Equal(f.Payload, payload) {
			t.Errorf("%s: read as %+v, %v", frame.Name, f, err)
			continue
		}
		var header any
		if len(frame.Header) > 0 {
			header = frame.Header
		}
		got, err := AppendFrame(nil, frame.Type, header, len(payload))
		if got = append(got, payload...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: written as %x, %v; want %x", frame.Name, got, err, want)
		}
		checkMessage(t, frame.Name, &f, frame.Header)
	}
}

// checkMessage checks that a header loses nothing on its way through this package's type for it.
func checkMessage(t *testing.T, name string, f *Frame, want map[string]any) {
	if message[f.Type] == nil {
		if len(f.Header) > 0 {
			t.Errorf("%s: a header that has no type", name)
		}
		return
	}
	m := message[f.Type]()
	if err := f.Decode(m); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v; want %v", name, got, want)
	}
}

func TestRefusedVectors(t *testing.T) {
	for _, r := range readVectors(t).Refused {
		f, err := ReadFrame(bytes.NewReader(unhex(t, r.Bytes)), all)
		switch r.Why {
		case "truncated":
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %v", r.Name, err)
			}
		case "too large":
			if _, ok := errors.AsType[*SizeError](err); !ok {
				t.Errorf("%s: %v", r.Name, err)
			}
		case "header":
			var m map[string]any
			if err != nil || f.Decode(&m) == nil {
				t.Errorf("%s: read, %v", r.Name, err)
			}
		default:
			t.Errorf("%s: %q is no reason that is known", r.Name, r.Why)
		}
	}
}

func TestFramesByPieces(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789"), 50_000)
	data, err := AppendFrame(nil, TypeResult, Result{Status: StatusOK}, len(payload))
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, payload...)
	r := iotest.HalfReader(bytes.NewReader(append(data, data...)))
	for range 2 {
		f, err := ReadFrame(r, all)
		if err != nil || !bytes.Equal(f.Payload, payload) || string(f.Header) != `{"status":"ok"}` {
			t.Fatalf("%s and %d bytes, %v", f.Header, len(f.Payload), err)
		}
	}
	if _, err := ReadFrame(r, all); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestPromisedSizesAreNotAllocated(t *testing.T) {
	prefix, err := AppendFrame(nil, TypeResult, nil, MaxPayload)
	if err != nil {
		t.Fatal(err)
	}
	if cost := allocated(func() {
		if _, err := ReadFrame(bytes.NewReader(prefix), all); err == nil {
			t.Error("a frame without its payload was read")
		}
	}); cost > 4*chunk {
		t.Errorf("a promise of %d bytes costs %d", MaxPayload, cost)
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestTooLargeToWrite(t *testing.T) {
	if _, err := AppendFrame(nil, TypeRun, nil, MaxPayload+1); forerun.KindOf(err) != forerun.TooLarge {
		t.Errorf("%v", err)
	}
	if _, err := AppendFrame(nil, TypeRun, map[string]float64{"x": 1}["y"], 0); err != nil {
		t.Errorf("%v", err)
	}
	if _, err := AppendFrame(nil, TypeRun, func() {}, 0); err == nil {
		t.Error("a function was written as JSON")
	}
}

func FuzzReadFrame(f *testing.F) {
	v := readVectors(f)
	for _, frame := range v.Frames {
		f.Add(unhex(f, frame.Bytes))
	}
	for _, r := range v.Refused {
		f.Add(unhex(f, r.Bytes))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := Limits{Header: 1 << 10, Payload: 1 << 16}
		frame, err := ReadFrame(bytes.NewReader(data), limits)
		if err != nil {
			return
		}
		if len(frame.Header) > limits.Header || len(frame.Payload) > limits.Payload {
			t.Fatalf("%d + %d bytes are over the limits", len(frame.Header), len(frame.Payload))
		}
		if make := message[frame.Type]; make != nil {
			_ = frame.Decode(make()) // refused or not, it does not crash
		}
		again := []byte{byte(frame.Type)}
		again = append(again, data[1:PrefixSize]...)
		again = append(append(again, frame.Header...), frame.Payload...)
		if !bytes.Equal(again, data[:len(again)]) {
			t.Fatalf("%x was read of %x", again, data)
		}
	})
}

// TestHeadersOfEachActivation: those that are not written or read by encoding/json are what it makes of them.
func TestHeadersOfEachActivation(t *testing.T) {
	odd := "a \"quoted\" \\ <name> &\t\u2028 of \U0001f600 and \x00"
	for _, want := range []Run{
		{}, {Limit: 5}, {Speculative: true}, {Env: map[string]string{odd: odd, "": "", "b": "x"}, Limit: 1 << 20, Speculative: true},
	} {
		frame, err := AppendFrame([]byte("before"), TypeRun, want, 0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := ReadFrame(bytes.NewReader(frame[len("before"):]), all)
		if err != nil {
			t.Fatal(err)
		}
		var got Run
		if err := f.Decode(&got); err != nil || f.Type != TypeRun || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v; want %+v", f.Header, got, err, want)
		}
	}
	for header, want := range map[string]Result{
		`{"status":"ok"}`: {Status: StatusOK}, `{"status": "ok"}`: {Status: StatusOK}, `{"status":"error","error":"x"}`: {StatusError, "x"}, "": {},
	} {
		f := Frame{Type: TypeResult, Header: []byte(header)}
		if got, err := f.Result(); err != nil || got != want {
			t.Errorf("%s is %+v, %v", header, got, err)
		}
	}
	if _, err := (&Frame{Header: []byte("{")}).Result(); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}
