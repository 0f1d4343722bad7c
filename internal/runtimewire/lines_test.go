package runtimewire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lineOf is a whole line.
func lineOf(value []byte, loaded, run map[string]string) []byte {
	return append(appendMembers(appendMembers(appendValue(nil, value), loaded), run), "}\n"...)
}

func TestLine(t *testing.T) {
	got := string(lineOf([]byte("{\n\"a\": 1}"),
		map[string]string{"__OW_API_HOST": "h", "REDIS_URL": "r", "__OW_NAMESPACE": "1"}, map[string]string{"__OW_DEADLINE": "2", "__OW_API_KEY": "a\nb"}))
	if want := "{\"value\":{ \"a\": 1},\"api_host\":\"h\",\"namespace\":\"1\",\"api_key\":\"a\\nb\",\"deadline\":\"2\"}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Whatever JSON comes in, one line of JSON with the same value goes out.
func FuzzLine(f *testing.F) {
	f.Add([]byte("{\r\n\"a\": [1.50, \"\\n\"]}"), "x\ny")
	f.Add([]byte(`"\u2028"`), "\xff")
	f.Fuzz(func(t *testing.T, value []byte, variable string) {
		if !json.Valid(value) {
			return
		}
		line := lineOf(value, nil, map[string]string{"__OW_X": variable})
		if bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' {
			t.Fatalf("%q is not one line", line)
		}
		var run struct{ Value json.RawMessage }
		if err := json.Unmarshal(line, &run); err != nil {
			t.Fatal(err)
		}
		var want, got bytes.Buffer
		if json.Compact(&want, value) != nil || json.Compact(&got, run.Value) != nil || got.String() != want.String() {
			t.Errorf("the value %s became %s", &want, &got)
		}
	})
}

// program is the other end of Lines: the ends of its pipes.
type program struct {
	in  *bufio.Reader
	out *os.File
}

// linesWith makes Lines with a program, whose process is this one.
func linesWith(t testing.TB) (*Lines, *program) {
	t.Helper()
	theirIn, in := pipe(t)
	out, theirOut := pipe(t)
	if _, err := unix.FcntlInt(in.Fd(), unix.F_SETOWN, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	l, err := NewLines(in, out, map[string]string{"__OW_NAMESPACE": "guest"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return l, &program{bufio.NewReader(theirIn), theirOut}
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// answer has the program answer the next Run with a text.
func (p *program) answer(t testing.TB, l *Lines, limit int, text string) (Frame, error) {
	t.Helper()
	if err := l.Run(Run{Limit: limit, Env: map[string]string{"__OW_API_KEY": "k"}}, []byte(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := p.in.ReadString('\n'); err != nil || got != `{"value":{"n":1},"namespace":"guest","api_key":"k"}`+"\n" {
		t.Fatalf("the program was sent %q (%v)", got, err)
	}
	written := make(chan error, 1)
	go func() {
		_, err := p.out.WriteString(text)
		written <- err
	}()
	f, err := l.Read()
	if len(text) < 1<<16 { // a pipe has room for it
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
	return f, err
}

func TestLinesAreFrames(t *testing.T) {
	l, p := linesWith(t)
	if f, err := l.Read(); err != nil || f.Type != TypeReady || f.PID != os.Getpid() {
		t.Errorf("the first frame is %+v (%v), not Ready of process %d", f, err, os.Getpid())
	}
	long := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
	for text, want := range map[string]string{
		"{\"a\":1}\n": `{"a":1}`, " [1] \r\n": `[1]`, "{}\n{\"stray\":1}\n": `{}`, long + "\n": long,
	} {
		f, err := p.answer(t, l, 2<<20, text)
		var r Result
		if err != nil || f.Type != TypeResult || f.Decode(&r) != nil || r.Status != StatusOK || string(f.Payload) != want {
			t.Errorf("%.20q became %d %s %.20s (%v)", text, f.Type, f.Header, f.Payload, err)
		}
		if f, err := l.Read(); err != nil || f.Type != TypeReady {
			t.Errorf("after an answer came a frame of type %d (%v), not Ready", f.Type, err)
		}
	}
}

func TestLinesThatAreTheLast(t *testing.T) {
	for text, want := range map[string]string{
		"7\n": "The action did not return a dictionary or array.", "\n": "The action did not return a dictionary or array.",
		"{\"xxxxxxxxxxxxxxxxxxx\":1}\n":            "The action produced a response that exceeded the allowed length: more than 20 bytes.",
		strings.Repeat("x", 1<<20):                 "The action produced a response that exceeded the allowed length: more than 20 bytes.",
		"{" + strings.Repeat(" ", 17<<10) + "1}\n": "The action produced a response that exceeded the allowed length: more than 20 bytes.",
	} {
		l, p := linesWith(t)
		f, err := p.answer(t, l, 20, text)
		var r Result
		if err != nil || f.Type != TypeResult || f.Decode(&r) != nil || r.Status != StatusError || r.Error != want {
			t.Errorf("%.20q became %d %s (%v)", text, f.Type, f.Header, err)
		}
		if f, err := l.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last answer came a frame of type %d (%v)", f.Type, err)
		}
	}
}

func TestLinesEndWithTheProgram(t *testing.T) {
	l, p := linesWith(t)
	if err := p.out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Run(Run{}, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if f, err := l.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("a frame of type %d came (%v)", f.Type, err)
	}
}

func TestLinesAreOfPipes(t *testing.T) {
	for _, wrong := range []int{0, 1} {
		file, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		out, in := pipe(t)
		ends := []*os.File{in, out}
		ends[wrong] = file
		if _, err := NewLines(ends[0], ends[1], nil); !errors.Is(err, ErrMalformed) {
			t.Errorf("a file in the place of pipe %d: %v", wrong, err)
		}
	}
}

func TestLinesOfNobody(t *testing.T) {
	_, in := pipe(t)
	out, _ := pipe(t)
	l, err := NewLines(in, out, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if f, err := l.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("without a process comes %+v (%v)", f, err)
	}
}

// Whatever a program writes, a line of it is its bytes up to the first line end, or refused for its length.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("{}\nrest"), 10)
	f.Add(bytes.Repeat([]byte("x"), 40), 20)
	f.Add([]byte("no end"), 6)
	f.Fuzz(func(t *testing.T, written []byte, limit int) {
		limit = max(0, min(limit, 1<<16))
		l := &Lines{answers: bufio.NewReaderSize(bytes.NewReader(written), 16), limit: limit}
		line, err := l.readLine()
		want := written
		if end := bytes.IndexByte(written, '\n'); end >= 0 {
			want = written[:end+1]
		}
		switch {
		case len(want) > limit+1:
			if !errors.Is(err, errTooLong) {
				t.Errorf("a line of %d bytes, where %d are allowed, is %d bytes, %v", len(want), limit, len(line), err)
			}
		case len(want) == 0:
			if !errors.Is(err, io.EOF) {
				t.Errorf("of nothing came %q, %v", line, err)
			}
		case err != nil || !bytes.Equal(line, want):
			t.Errorf("%q came as %q, %v", want, line, err)
		}
	})
}

// TestUnreadLine: a program that ends before it has read its line is told from one that has, or that has all of it but what ends it.
func TestUnreadLine(t *testing.T) {
	const line = `{"value":{}}` + "\n"
	for left, unread := range map[int]bool{len(line): true, 2: true, 1: false, 0: false} {
		theirIn, in := pipe(t)
		out, theirOut := pipe(t)
		l, err := NewLines(in, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Run(Run{}, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(theirIn, make([]byte, len(line)-left)); err != nil {
			t.Fatal(err)
		}
		_, _ = theirIn.Close(), theirOut.Close()
		_, err = l.Read()
		if err == nil {
			t.Fatal("a program that has ended answered")
		}
		if l.Unread(err) != unread {
			t.Errorf("%d bytes left: unread %v", left, l.Unread(err))
		}
		_ = l.Close()
	}
}

// TestAnswerBeforeTheInputIsRead: a line that a program writes before it has read anything is not its answer, whenever it is written. Nor is
// an error that a program has closed its input: what it does then tells how it ends.
func TestAnswerBeforeTheInputIsRead(t *testing.T) {
	for name, closed := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			theirIn, in := pipe(t)
			out, theirOut := pipe(t)
			l, err := NewLines(in, out, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			if closed {
				_ = theirIn.Close()
			}
			if err := l.Run(Run{}, []byte(`{"n":1}`)); err != nil {
				t.Fatal(err)
			}
			if _, err := theirOut.WriteString("{\"early\":1}\n{\"early\":2}\n"); err != nil {
				t.Fatal(err)
			}
			_ = theirOut.Close()
			if f, err := l.Read(); !errors.Is(err, io.EOF) || !l.Unread(err) {
				t.Errorf("a frame of type %d (%v), unread: %v", f.Type, err, l.Unread(err))
			}
		})
	}
}
