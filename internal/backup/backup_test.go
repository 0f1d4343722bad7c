package backup

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"forerun.dev/forerun/internal/forerun"
)

func some(pairs ...Pair) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		for _, p := range pairs {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func written(t testing.TB, pairs ...Pair) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, Header{Created: time.Unix(1, 0).UTC(), Version: "v1"}, some(pairs...)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(data []byte) (all []string, s Summary, err error) {
	s, err = Read(bytes.NewReader(data), func(p Pair) error {
		all = append(all, fmt.Sprintf("%q=%d %.5q", p.Key, len(p.Value), p.Value))
		return nil
	})
	return all, s, err
}

func examples() []Pair {
	return []Pair{{[]byte("a"), nil}, {nil, []byte("b")}, {[]byte("c\x00"), []byte(strings.Repeat("x", 100_000))}}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	all, s, err := read(written(t, examples()...))
	if got := strings.Join(all, " "); err != nil || got != `"a"=0 "" ""=1 "b" "c\x00"=100000 "xxxxx"` {
		t.Errorf("%s, %v", got, err)
	}
	if s.Pairs != 3 || s.Bytes != 100_004 || s.Version != "v1" || !s.Created.Equal(time.Unix(1, 0)) {
		t.Errorf("%+v", s)
	}
	if all, s, err := read(written(t)); err != nil || all != nil || s.Pairs != 0 {
		t.Errorf("of nothing: %v, %+v, %v", all, s, err)
	}
}

// TestDamageIsFound cuts a backup at each place, and changes each byte.
func TestDamageIsFound(t *testing.T) {
	whole := written(t, examples()...)
	for n := range whole {
		if _, _, err := read(whole[:n]); forerun.KindOf(err) != forerun.Invalid {
			t.Errorf("cut at %d of %d: %v", n, len(whole), err)
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 0x10
		if all, _, err := read(changed); err == nil && strings.Join(all, " ") != `"a"=0 "" ""=1 "b" "c\x00"=100000 "xxxxx"` {
			t.Errorf("changed at %d of %d: %v", n, len(whole), all)
		}
	}
	if _, _, err := read(append(bytes.Clone(whole), 'x')); err == nil {
		t.Error("something follows")
	}
}

// TestNewerForm is refused, with the version that wrote it.
func TestNewerForm(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(Magic)
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(z, `{"format":%d,"version":"v99"}`+"\n", format+1)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(b.Bytes()); forerun.KindOf(err) != forerun.Unsupported || !strings.Contains(err.Error(), "v99") {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	stop := errors.New("stop")
	if err := Write(new(bytes.Buffer), Header{}, func(yield func(Pair, error) bool) { yield(Pair{}, stop) }); !errors.Is(err, stop) {
		t.Errorf("the source's error: %v", err)
	}
	if _, err := Read(bytes.NewReader(written(t, examples()...)), func(Pair) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the receiver's error: %v", err)
	}
}

// failing takes so many bytes.
type failing struct{ left int }

var errWrite = errors.New("nobody reads")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errWrite
	}
	return len(p), nil
}

// TestWriteEndsWithItsWriter: nothing more is read for a backup that goes nowhere.
func TestWriteEndsWithItsWriter(t *testing.T) {
	const most = 100
	value := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(value) // cannot be compressed
	read := 0
	err := Write(&failing{1 << 10}, Header{}, func(yield func(Pair, error) bool) {
		for read < most && yield(Pair{[]byte("a"), value}, nil) {
			read++
		}
	})
	if !errors.Is(err, errWrite) || read == most {
		t.Errorf("%d were read, %v", read, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, examples()...))
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, s, err := read(data)
		if err == nil && uint64(len(all)) != s.Pairs {
			t.Errorf("%d pairs, it says %d", len(all), s.Pairs)
		}
	})
}
