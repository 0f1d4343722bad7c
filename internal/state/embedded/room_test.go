package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// smallFS is a file system on a disk that others use too.
type smallFS struct {
	vfs.FS

	mu      sync.Mutex // guards the rest
	free    int64      // bytes
	ballast int64      // bytes that a file took ahead
}

const smallDisk = 1 << 30

func newSmallFS() *smallFS { return &smallFS{FS: vfs.NewCrashableMem(), free: smallDisk} }

// set makes so many bytes free, as if others took or gave the difference.
func (fs *smallFS) set(free int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.free = free
}

// take takes up to n bytes.
func (fs *smallFS) take(n int) int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n = int(min(int64(n), fs.free))
	fs.free -= int64(n)
	return n
}

func (fs *smallFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return vfs.DiskUsage{AvailBytes: uint64(fs.free), TotalBytes: smallDisk}, nil
}

func (fs *smallFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.take(1) == 0 {
		return nil, &syscallError{"create", syscall.ENOSPC}
	}
	f, err := fs.FS.Create(name, category)
	return &smallFile{f, fs, strings.HasSuffix(name, ballastName)}, err
}

func (fs *smallFS) Remove(name string) error {
	err := fs.FS.Remove(name)
	if err == nil && strings.HasSuffix(name, ballastName) {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.free, fs.ballast = fs.free+fs.ballast, 0
	}
	return err
}

// syscallError is an error that wraps another, as those of the operating system.
type syscallError struct {
	op  string
	err error
}

func (e *syscallError) Error() string { return e.op + ": " + e.err.Error() }
func (e *syscallError) Unwrap() error { return e.err }

type smallFile struct {
	vfs.File
	fs      *smallFS
	ballast bool
}

func (f *smallFile) Write(p []byte) (int, error) {
	n := f.fs.take(len(p))
	m, err := f.File.Write(p[:n])
	if err == nil && n < len(p) {
		err = &syscallError{"write", syscall.ENOSPC}
	}
	return m, err
}

func (f *smallFile) Preallocate(_, length int64) error {
	if f.ballast {
		n := int64(f.fs.take(int(length)))
		f.fs.mu.Lock()
		defer f.fs.mu.Unlock()
		f.fs.ballast += n
	}
	return nil
}

func try(s *Store, line string) error {
	c := state.Command{Space: "s"}
	for _, word := range strings.Fields(line) {
		c.Args = append(c.Args, []byte(word))
	}
	reply, v, err := s.Do(context.Background(), c)
	if err == nil && reply.Kind == state.Error {
		err = errors.New(string(reply.Text))
	}
	return errors.Join(err, s.Durable(context.Background(), v))
}

func refusesFull(t *testing.T, s *Store, line string) {
	t.Helper()
	if err := try(s, line); forerun.KindOf(err) != forerun.Full || err == nil {
		t.Errorf("%s: %v", line, err)
	}
}

func openSmall(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s := mustOpen(t, "store", Options{FS: fs, Fatal: func(err error) { t.Errorf("the process would end: %v", err) }})
	time.Sleep(2 * roomInterval) // the ballast is made
	return s
}

// TestLittleRoom refuses what is new, and nothing else, until there is room again.
func TestLittleRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newSmallFS()
		s := openSmall(t, fs)
		defer closed(t, s)
		do(t, s, "SET a 1")
		do(t, s, "SET b 1")
		fs.set(reserveSize - 1)
		time.Sleep(2 * roomInterval)
		refusesFull(t, s, "SET a 2")
		refusesFull(t, s, "LPUSH l 2")
		if _, _, err := s.Exec(t.Context(), nil, []state.Command{{Space: "s", Args: [][]byte{[]byte("INCR"), []byte("a")}}}); forerun.KindOf(err) != forerun.Full {
			t.Errorf("Exec: %v", err)
		}
		if err := s.Room(); forerun.KindOf(err) != forerun.Full || err == nil {
			t.Errorf("Room: %v", err)
		}
		if got := get(t, s, "a"); string(got.Data) != "1" {
			t.Errorf("a is %s", got.Data)
		}
		if _, err := s.Apply(t.Context(), owe(lazySet("record", nil))); err != nil {
			t.Errorf("what was begun before: %v", err)
		}
		if err := try(s, "DEL b"); err != nil {
			t.Errorf("what only removes: %v", err)
		}
		fs.set(smallDisk / 2)
		time.Sleep(2 * roomInterval)
		if err := errors.Join(s.Room(), try(s, "SET a 2")); err != nil {
			t.Errorf("with room again: %v", err)
		}
	})
}

// TestNoRoom has others take all of the disk, and then what the store gives back of it.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newSmallFS()
		s := openSmall(t, fs)
		do(t, s, "SET a 1")
		if err := try(s, "SET a 1"); err != nil {
			t.Fatal(err)
		}
		fs.set(0)
		if err := try(s, "SET a 2"); err != nil { // the ballast is for this
			t.Fatal(err)
		}
		refusesFull(t, s, "SET a 3")
		fs.set(0)
		waits := make(chan error)
		go func() {
			_, err := s.Apply(t.Context(), owe(lazySet("record", []byte(strings.Repeat("x", 64<<10)))))
			waits <- err
		}()
		synctest.Wait()
		refusesFull(t, s, "DEL a")
		if got := get(t, s, "a"); string(got.Data) != "2" {
			t.Errorf("a is %s", got.Data)
		}
		fs.set(smallDisk)
		if err := <-waits; err != nil {
			t.Errorf("what waited: %v", err)
		}
		time.Sleep(2 * roomInterval)
		if err := try(s, "SET a 4"); err != nil {
			t.Error(err)
		}
		closed(t, s)
		after := mustOpen(t, "store", Options{FS: fs})
		defer closed(t, after)
		if a, r := get(t, after, "a"), get(t, after, "record"); string(a.Data) != "4" || len(r.Data) != 64<<10 {
			t.Errorf("a is %s, the record has %d bytes", a.Data, len(r.Data))
		}
	})
}

// TestWhatIsAppliedIsNotRefused: transactions that get no room when they are applied already wait for it.
func TestWhatIsAppliedIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newSmallFS()
		s := openSmall(t, fs)
		names := []string{"a", "b", "c"}
		for _, name := range names {
			if err := try(s, "SET "+name+" 1"); err != nil {
				t.Fatal(err)
			}
		}
		refill(s, fs)
		full := make(chan struct{})
		stop := s.Watch(func(forerun.Key, forerun.Version) { <-full })
		ended := make(chan error, len(names))
		for _, name := range names {
			go func() {
				_, err := s.Apply(t.Context(), state.Txn{Ops: []state.Command{{Space: "s", Args: words("DEL", name)}}})
				ended <- err
			}()
		}
		synctest.Wait() // all are applied
		close(full)
		synctest.Wait()
		if len(ended) > 0 {
			t.Errorf("%d do not wait", len(ended))
		}
		stop()
		refusesFull(t, s, "SET d 1")
		fs.set(smallDisk)
		for range names {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		closed(t, s)
		after := mustOpen(t, "store", Options{FS: fs})
		defer closed(t, after)
		for _, name := range names {
			if get(t, after, name).Version != 0 {
				t.Errorf("%s is still there", name)
			}
		}
	})
}

// refill takes what the store gives back of a disk that others have filled.
func refill(s *Store, fs *smallFS) {
	fs.set(0)
	s.room.noRoom(true)
	fs.set(0)
}

// begin applies transactions, of which the first finds no room for the log, and returns what comes of each.
func begin(ctx context.Context, s *Store, txns ...state.Txn) []chan error {
	ended := make([]chan error, len(txns))
	for i, txn := range txns {
		ended[i] = make(chan error, 1)
		go func() {
			_, err := s.Apply(ctx, txn)
			ended[i] <- err
		}()
		synctest.Wait()
	}
	return ended
}

// owed are a transaction that is too large for the log's buffer, and what else the store owes those whose invocations end.
func owed() []state.Txn {
	txns := []state.Txn{owe(lazySet("large", []byte(strings.Repeat("x", 64<<10))))}
	for _, name := range []string{"first", "second", "synced"} {
		txn := owe(lazySet(name, []byte("record")))
		txn.Ops[0].Fresh, txn.Lazy = true, name != "synced"
		txns = append(txns, txn)
	}
	return append(txns, owe(lazyDel("accepted")))
}

func owe(t state.Txn) state.Txn {
	t.Owed = true
	return t
}

func lazyDel(name string) state.Txn {
	return state.Txn{Ops: []state.Command{{Space: "s", Args: words("DEL", name)}}, Lazy: true}
}

// TestWhatIsOwedWaitsForRoom behind what waits already: invocations that end meanwhile end with their records.
func TestWhatIsOwedWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newSmallFS()
		s := openSmall(t, fs)
		if err := try(s, "SET accepted 1"); err != nil {
			t.Fatal(err)
		}
		refill(s, fs)
		ended := begin(t.Context(), s, owed()...)
		ctx, cancel := context.WithCancel(t.Context())
		left := begin(ctx, s, owe(lazySet("left", nil)))[0]
		for i, err := range ended {
			if len(err) > 0 {
				t.Errorf("transaction %d does not wait", i)
			}
		}
		refusesFull(t, s, "SET new 1")
		if _, err := s.Apply(t.Context(), lazyDel("accepted")); forerun.KindOf(err) != forerun.Full {
			t.Errorf("what may be asked for again: %v", err)
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("whose client has gone: %v", err)
		}
		fs.set(smallDisk)
		for i, err := range ended {
			if err := <-err; err != nil {
				t.Errorf("transaction %d: %v", i, err)
			}
		}
		closed(t, s)
		after := mustOpen(t, "store", Options{FS: fs})
		defer closed(t, after)
		for name, there := range map[string]bool{"large": true, "first": true, "second": true, "synced": true, "accepted": false, "left": false} {
			if got := get(t, after, name).Version != 0; got != there {
				t.Errorf("%s is there: %v", name, got)
			}
		}
	})
}

// TestGiveUpWhatIsOwed ends what waits, and lets nothing else into a log that has failed.
func TestGiveUpWhatIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newSmallFS()
		s := openSmall(t, fs)
		if err := try(s, "SET accepted 1"); err != nil {
			t.Fatal(err)
		}
		refill(s, fs)
		ended := begin(t.Context(), s, owed()...)
		s.GiveUp()
		for i, err := range append(ended, begin(t.Context(), s, owed()...)...) {
			if err := <-err; err == nil {
				t.Errorf("transaction %d is not on disk, and was acknowledged", i)
			}
		}
		if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestCloseWithoutRoom ends what waits.
func TestCloseWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newSmallFS()
		s := openSmall(t, fs)
		if err := try(s, "SET a 1"); err != nil {
			t.Fatal(err)
		}
		refill(s, fs)
		waits := make(chan error)
		go func() { waits <- try(s, "SET a "+strings.Repeat("x", 64<<10)) }()
		synctest.Wait()
		s.GiveUp() // before who waits has an answer the store is not closed
		if err := <-waits; err == nil {
			t.Error("what is not on disk was acknowledged")
		}
		if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close: %v", err)
		}
		if _, err := Open("store", Options{FS: fs}); forerun.KindOf(err) != forerun.Full {
			t.Errorf("Open on a full disk: %v", err)
		}
		fs.set(smallDisk)
		after := mustOpen(t, "store", Options{FS: fs})
		defer closed(t, after)
		if got := get(t, after, "a"); string(got.Data) != "1" && len(got.Data) != 64<<10 {
			t.Errorf("a is %.9s", got.Data)
		}
	})
}

// TestRoomComesAndGoes writes while others fill and free the disk at random: no write that was acknowledged is lost, none that was refused
// is there, and at the end everything is as if there always had been room.
func TestRoomComesAndGoes(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { comeAndGo(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func comeAndGo(t *testing.T, random *rand.Rand) {
	fs := newSmallFS()
	s := openSmall(t, fs)
	value := strings.Repeat("x", 32<<10)
	var mu sync.Mutex // guards acknowledged
	acknowledged := make(map[string]bool)
	refused := 0
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 150 {
				name := fmt.Sprintf("%d-%d", w, n)
				err := try(s, "SET "+name+" "+value)
				mu.Lock()
				if acknowledged[name] = err == nil; err != nil {
					refused++
				}
				mu.Unlock()
				time.Sleep(time.Duration(n*(w+7)%80) * time.Millisecond)
				if err != nil && forerun.KindOf(err) != forerun.Full {
					t.Error(err)
				}
			}
		})
	}
	for range 40 {
		fs.set([]int64{0, 10 << 10, 1 << 20, reserveSize / 2, smallDisk}[random.IntN(5)])
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
	}
	fs.set(smallDisk)
	writers.Wait()
	time.Sleep(2 * roomInterval)
	if err := try(s, "SET last 1"); err != nil {
		t.Errorf("with room: %v", err)
	}
	clone := fs.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{}) // the power fails
	closed(t, s)
	after := mustOpen(t, "store", Options{FS: clone})
	defer closed(t, after)
	for name, ok := range acknowledged {
		if there := get(t, after, name).Version != 0; there != ok {
			t.Errorf("%s was acknowledged: %v, is there: %v", name, ok, there)
		}
	}
	t.Logf("%d written, %d refused", len(acknowledged)-refused, refused)
}

// TestCompactionWithoutRoom has it fail, where it would wait for room that only its end gives back, and try again.
func TestCompactionWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newSmallFS()
		s := openSmall(t, fs)
		defer closed(t, s)
		for range 2 { // tables that overlap
			do(t, s, "SET a 1")
			do(t, s, "SET b 1")
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		fs.set(0)
		done := make(chan error, 1)
		go func() { done <- s.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false) }()
		time.Sleep(3 * rewriteTries * roomRetry)
		if s.room.waits() {
			t.Error("it waits for room")
		}
		if err := try(s, "DEL b"); err != nil {
			t.Errorf("what only removes: %v", err)
		}
		fs.set(smallDisk)
		if err := <-done; err != nil {
			t.Errorf("with room: %v", err)
		}
		if got := get(t, s, "a"); string(got.Data) != "1" {
			t.Errorf("a is %s", got.Data)
		}
	})
}

// TestCompactionThatGetsNoRoom fails in the middle of a table, too.
func TestCompactionThatGetsNoRoom(t *testing.T) {
	fs := newSmallFS()
	r := &roomFS{FS: fs, room: newRoom(fs, "store")}
	f, err := r.Create("1.sst", rewrites)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fs.set(1)
	if n, err := f.Write([]byte("xy")); n != 1 || !isFull(err) {
		t.Errorf("%d bytes were written: %v", n, err)
	}
}
