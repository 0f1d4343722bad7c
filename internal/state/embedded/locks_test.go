package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

func words(line ...string) (args [][]byte) {
	for _, word := range line {
		args = append(args, []byte(word))
	}
	return args
}

// TestSpacesAreApart: while a step has every record of a space, or many, those of another space are read and written.
func TestSpacesAreApart(t *testing.T) {
	many := words("MSET")
	for i := range 100_000 {
		many = append(many, fmt.Append(nil, i), nil)
	}
	for name, step := range map[string][][]byte{"all": words("FLUSHDB"), "many": many} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
			defer closed(t, s)
			do(t, s, "SET a 1")
			held, done, told := make(chan struct{}), make(chan struct{}), false
			stop := s.Watch(func(k forerun.Key, _ forerun.Version) {
				if k.Space != "s" || told {
					return
				}
				told = true
				close(held)
				select {
				case <-done:
				case <-time.After(2 * time.Minute):
					t.Error("another space's records wait")
				}
			})
			defer stop()
			go func() {
				defer close(done)
				<-held
				for _, args := range [][][]byte{words("SET", "a", "1"), words("GET", "a"), words("FLUSHDB")} {
					if _, _, err := s.Do(context.Background(), state.Command{Space: "another", Args: args}); err != nil {
						t.Error(err)
					}
				}
			}()
			if _, _, err := s.Do(context.Background(), state.Command{Space: "s", Args: step}); err != nil {
				t.Error(err)
			}
			<-done
		})
	}
}

// TestFewCommandsOfASpaceAtATime: one more waits, without keeping another space's, until there is a place or its context ends.
func TestFewCommandsOfASpaceAtATime(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	var busy turn
	for range atWork {
		var err error
		if busy, err = s.keys.begin(t.Context(), "busy", true); err != nil {
			t.Fatal(err)
		}
	}
	set := func(ctx context.Context, space string) error {
		_, _, err := s.Do(ctx, state.Command{Space: space, Args: words("SET", "a", "1")})
		return err
	}
	exec := func(ctx context.Context, space string) error {
		_, _, err := s.Exec(ctx, nil, []state.Command{{Space: space, Args: words("SET", "a", "1")}})
		return err
	}
	for name, step := range map[string]func(context.Context, string) error{"Do": set, "Exec": exec} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := step(ctx, "busy"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s of a busy space: %v", name, err)
		}
		cancel()
		if err := step(t.Context(), "other"); err != nil {
			t.Errorf("%s of another: %v", name, err)
		}
	}
	if _, _, err := s.Do(t.Context(), state.Command{Space: "busy", Args: words("GET", "a")}); err != nil {
		t.Errorf("what only reads: %v", err)
	}
	busy.end()
	for range 2 {
		if err := errors.Join(set(t.Context(), "busy"), exec(t.Context(), "busy")); err != nil {
			t.Errorf("when one has ended: %v", err)
		}
	}
}

// TestNobodyIsAtWorkWhoWaits: a command has its records before it is among those at work, so that others do not wait with it for one.
func TestNobodyIsAtWorkWhoWaits(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	for range atWork {
		if _, err := s.keys.begin(t.Context(), "s", true); err != nil {
			t.Fatal(err)
		}
	}
	record := s.keys.claim("s", []byte("a"), true).on()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	ended := make(chan error)
	go func() {
		_, _, err := s.Do(ctx, state.Command{Space: "s", Args: words("SET", "a", "1")})
		ended <- err
	}()
	for record.TryLock() {
		record.Unlock()
		if ctx.Err() != nil {
			t.Fatal("it waits for its turn, and has not the record")
		}
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestUnusedLocksAreLetGo: those of a space are kept while somebody uses one, or has written what is not on disk, which a reader waits for.
func TestUnusedLocksAreLetGo(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	kept := func() int {
		for range 2 {
			s.keys.letGo(forerun.Version(s.disk.synced.Load()))
		}
		return len(s.keys.spaces)
	}
	key := forerun.Key{Space: "s", Name: "a"}
	nonsense := state.Txn{Expect: []state.Expect{{Key: key}}, Ops: []state.Command{{Space: "s", Args: words("NONSENSE")}}}
	for name, use := range map[string]func() error{
		"a read":        func() error { return try(s, "GET a") },
		"of many":       func() error { return try(s, "MGET a b a") },
		"of all":        func() error { return try(s, "FLUSHDB") },
		"a look at all": func() error { return try(s, "KEYS *") },
		"a write":       func() error { return try(s, "SET a 1") },
		"a transaction": func() error {
			_, err := s.Apply(t.Context(), state.Txn{Expect: []state.Expect{{Key: key}}, Ops: []state.Command{{Space: "s", Args: words("DEL", "b")}}})
			return err
		},
		"a refused one": func() error {
			if _, err := s.Apply(t.Context(), nonsense); err == nil {
				return errors.New("it is not refused")
			}
			return nil
		},
		"versions": func() error {
			_, err := s.Versions(t.Context(), key, key)
			return err
		},
		"a step": func() error {
			_, _, err := s.Exec(t.Context(), []state.Expect{}, []state.Command{{Space: "s", Args: words("GET", "a")}})
			return err
		},
	} {
		if err := use(); err != nil && forerun.KindOf(err) != forerun.Exists {
			t.Errorf("%s: %v", name, err)
		}
		if n := kept(); n != 0 {
			t.Errorf("after %s those of %d spaces are kept", name, n)
		}
	}
	v := do(t, s, "SET a 1")
	if n := kept(); n != 1 {
		t.Errorf("what is not on disk: those of %d spaces are kept", n)
	}
	if err := s.Durable(t.Context(), v); err != nil || kept() != 0 {
		t.Errorf("when it is: %d, %v", kept(), err)
	}
	work, err := s.keys.begin(t.Context(), "s", false)
	if err != nil || kept() != 1 {
		t.Errorf("a command at work: %d, %v", kept(), err)
	}
	work.end()
	held := lock([]claim{s.keys.claim("s", []byte("a"), true)})
	if n := kept(); n != 1 {
		t.Errorf("a record that is held: %d", n)
	}
	held.unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Do(ctx, state.Command{Space: "s", Args: words("GET", "a")}); err == nil || kept() != 0 {
		t.Errorf("who has left: %d, %v", kept(), err)
	}
}

// TestLocksInSteadyUseStay: those of a space that was used since the look before are not made anew.
func TestLocksInSteadyUseStay(t *testing.T) {
	k := newKeyLocks()
	use := func(record string, version forerun.Version) {
		held := lock([]claim{k.claim("s", []byte(record), true)})
		defer held.unlock()
		held.wrote(version, true)
	}
	use("a", 2)
	locks := k.spaces["s"]
	for range 3 {
		use("b", 1) // as another had the later version first
		if k.letGo(2); k.spaces["s"] != locks {
			t.Fatal("they are let go")
		}
	}
	if k.letGo(1); k.spaces["s"] != locks {
		t.Error("they are let go before what was written is on disk")
	}
	if k.letGo(2); len(k.spaces) != 0 {
		t.Error("they are kept without any use")
	}
}

// TestFlushKeepsNoNames: who watches is told of each record that is removed, and their names are not in memory all at a time.
func TestFlushKeepsNoNames(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	const many, size = 16, 1 << 20
	for n := range many {
		if _, _, err := s.Do(t.Context(), state.Command{Space: "s", Args: words("SET", fmt.Sprint(n)+strings.Repeat("x", size), "")}); err != nil {
			t.Fatal(err)
		}
	}
	var most uint64
	told := 0
	defer s.Watch(func(forerun.Key, forerun.Version) {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		most = max(most, memory.HeapAlloc)
		told++
	})()
	if err := s.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil { // else it is flushed or rewritten while memory is measured
		t.Fatal(err)
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	do(t, s, "FLUSHDB")
	if taken := int64(most) - int64(before.HeapAlloc); told != many || taken > many*size/2 {
		t.Errorf("told of %d, with %d MiB", told, taken>>20)
	}
}

// TestObserveBoundsNames: the names of what is cleared are noted up to a bound.
func TestObserveBoundsNames(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	do(t, s, "SET a 1")
	c := &changed{stored: reader{db: s.db}, size: maxCleared - clearedCost}
	from, to := command.RecordRange("s", "", "")
	if err := c.Clear(from, to); forerun.KindOf(err) != forerun.TooLarge || err == nil {
		t.Errorf("%v", err)
	}
	c.size = maxCleared - clearedCost - 1
	if err := c.Clear(from, to); err != nil || len(c.keys) == 0 {
		t.Errorf("%d, %v", len(c.keys), err)
	}
}

// TestVersionsCopyNothing: versions of large records take no memory.
func TestVersionsCopyNothing(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	const size = 1 << 20
	_, v, err := s.Do(t.Context(), state.Command{Space: "s", Args: words("SET", "a", strings.Repeat("x", size))})
	if err != nil || s.Durable(t.Context(), v) != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 8 {
		if seen, err := s.Versions(t.Context(), forerun.Key{Space: "s", Name: "a"}, forerun.Key{Space: "s", Name: "b"}); err != nil || seen[0].Version != v || seen[1].Version != 0 {
			t.Fatal(seen, err)
		}
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > size {
		t.Errorf("8 times took %d bytes", taken)
	}
}
