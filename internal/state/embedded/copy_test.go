package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/backup"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestCopyIsOfOneMoment copies a store while two records are always written together.
func TestCopyIsOfOneMoment(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	for n := range 2*copyStep + 1 {
		do(t, s, fmt.Sprintf("SET k%d %d", n, n))
	}
	do(t, s, "HSET h f v")
	both := []state.Command{{Space: "s", Args: [][]byte{[]byte("INCR"), []byte("a")}}, {Space: "s", Args: [][]byte{[]byte("INCR"), []byte("z")}}}
	write := func() forerun.Version {
		_, v, err := s.Exec(context.Background(), nil, both)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	last := write()
	fs := vfs.NewMem()
	l, err := Load("copy", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	for p, err := range s.Pairs(t.Context()) {
		write()
		if err = errors.Join(err, l.Add(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := mustOpen(t, "copy", Options{FS: fs})
	defer closed(t, c)
	a, z, k := get(t, c, "a"), get(t, c, "z"), get(t, c, fmt.Sprint("k", 2*copyStep))
	if string(a.Data) != "1" || string(z.Data) != "1" || a.Version != last || string(k.Data) != fmt.Sprint(2*copyStep) {
		t.Errorf("%+v, %+v, %+v; the last version was %d", a, z, k, last)
	}
	if v := do(t, c, "HSET h g w"); v <= last {
		t.Errorf("version %d comes after %d", v, last)
	}
}

func TestPairsEnd(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	do(t, s, "SET a 1")
	for _, err := range s.Pairs(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	closed(t, s) // nobody holds it
	for _, c := range []context.Context{ctx, t.Context()} {
		for _, err := range s.Pairs(c) {
			if err == nil {
				t.Error("a closed store has something")
			}
		}
	}
}

func TestLoadReplacesNothing(t *testing.T) {
	fs := vfs.NewMem()
	closed(t, mustOpen(t, "store", Options{FS: fs}))
	if _, err := Load("store", Options{FS: fs}); err == nil {
		t.Error("a store was loaded over another")
	}
	closed(t, mustOpen(t, "store", Options{FS: fs}))
}

// TestLoadOfOtherThings finds no store in pairs that are not one's.
func TestLoadOfOtherThings(t *testing.T) {
	fs := vfs.NewMem()
	l, err := Load("store", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Add(backup.Pair{Key: []byte("x")}), l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("store", Options{FS: fs}); forerun.KindOf(err) != forerun.Invalid || err == nil {
		t.Error(err)
	}
}

// TestLoadAfterAFailedWrite: what is closed then is no store, and says so.
func TestLoadAfterAFailedWrite(t *testing.T) {
	fs := vfs.NewMem()
	closed(t, mustOpen(t, "store", Options{FS: fs}))
	lock, err := lockFolder("store", fs)
	if err != nil {
		t.Fatal(err)
	}
	o := pebbleOptions(fs, lock, withDefaults(Options{FS: fs}))
	o.ReadOnly = true
	db, err := pebble.Open("store", o)
	if err != nil {
		t.Fatal(err)
	}
	l := &Loader{dir: "store", db: db, lock: lock, batch: db.NewBatch(), failed: make(chan struct{})}
	for what, err := range map[string]error{"Add": l.Add(backup.Pair{Key: []byte("x"), Value: make([]byte, loadStep)}), "Close": l.Close()} {
		if !errors.Is(err, pebble.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLoadOnAFullDisk ends, wherever the disk gets full, with an error that says so.
func TestLoadOnAFullDisk(t *testing.T) {
	value := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(value) // cannot be compressed
	load := func(fs vfs.FS) error {
		l, err := Load("store", Options{FS: fs, Fatal: func(err error) { t.Errorf("the process would end: %v", err) }})
		if err != nil {
			return err
		}
		for n := range 12 {
			if err = l.Add(backup.Pair{Key: []byte{byte(n)}, Value: value}); err != nil {
				break
			}
		}
		return cmp.Or(err, l.Close())
	}
	for _, free := range []int64{0, 3, 100, 1 << 10, 1 << 20, 5 << 20, 8 << 20, 11 << 20} {
		fs := newSmallFS()
		fs.set(free)
		ended := make(chan error)
		go func() { ended <- load(fs) }()
		select {
		case err := <-ended:
			if forerun.KindOf(err) != forerun.Full || !strings.Contains(fmt.Sprint(err), "The disk is full") {
				t.Errorf("with %d bytes: %v", free, err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("with %d bytes it goes on", free)
		}
	}
	if err := load(newSmallFS()); err != nil {
		t.Error(err)
	}
}
