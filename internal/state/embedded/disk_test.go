package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/clock"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

func get(t *testing.T, s *Store, name string) state.Record {
	t.Helper()
	records, err := s.Get(context.Background(), forerun.Key{Space: "s", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return records[0]
}

func do(t *testing.T, s *Store, line string) forerun.Version {
	t.Helper()
	c := state.Command{Space: "s"}
	for _, word := range strings.Fields(line) {
		c.Args = append(c.Args, []byte(word))
	}
	reply, v, err := s.Do(context.Background(), c)
	if err != nil || reply.Kind == state.Error {
		t.Fatalf("%s: %s, %v", line, reply.Text, err)
	}
	return v
}

func closed(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestLazyIsOnDiskIn10ms looks at what the disk has after that time.
func TestLazyIsOnDiskIn10ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		s := mustOpen(t, "store", Options{FS: fs})
		defer closed(t, s)
		for n := range 3 {
			name := fmt.Sprint("record", n)
			if _, err := s.Apply(context.Background(), lazySet(name, []byte("x"))); err != nil {
				t.Fatal(err)
			}
			early := fs.CrashClone(vfs.CrashCloneCfg{})
			time.Sleep(10 * time.Millisecond)
			late := fs.CrashClone(vfs.CrashCloneCfg{})
			for clone, want := range map[*vfs.MemFS]bool{early: false, late: true} {
				after := mustOpen(t, "store", Options{FS: clone})
				if got := get(t, after, name).Version != 0; got != want {
					t.Errorf("%s is on disk: %v, want %v", name, got, want)
				}
				closed(t, after)
			}
		}
	})
}

// failingFS is a file system whose log files cannot be synced, or written, once it is told so.
type failingFS struct {
	vfs.FS
	sync, write atomic.Bool
}

var errDisk = errors.New("the disk is gone")

func (fs *failingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = &failingFile{f, fs}
	}
	return f, err
}

type failingFile struct {
	vfs.File
	fs *failingFS
}

func (f *failingFile) SyncData() error {
	if f.fs.sync.Load() {
		return errDisk
	}
	return f.File.SyncData()
}

func (f *failingFile) Write(p []byte) (int, error) {
	if f.fs.write.Load() {
		return 0, errDisk
	}
	return f.File.Write(p)
}

func TestDiskFails(t *testing.T) {
	for name, fail := range map[string]func(*failingFS){
		"sync":  func(fs *failingFS) { fs.sync.Store(true) },
		"write": func(fs *failingFS) { fs.write.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			fs := &failingFS{FS: vfs.NewMem()}
			s := mustOpen(t, "store", Options{FS: fs, Fatal: func(err error) { t.Errorf("the process would end: %v", err) }})
			v := do(t, s, "SET a 1")
			fail(fs)
			for range 2 {
				if err := s.Durable(context.Background(), v); !errors.Is(err, errDisk) || forerun.KindOf(err) != forerun.Unavailable {
					t.Errorf("Durable: %v", err)
				}
			}
			if _, err := s.Apply(context.Background(), lazySet("b", nil)); !errors.Is(err, errDisk) {
				t.Errorf("Apply: %v", err)
			}
			_, _, err := s.Do(context.Background(), state.Command{Space: "s", Args: [][]byte{[]byte("INCR"), []byte("a")}})
			if !errors.Is(err, errDisk) {
				t.Errorf("Do: %v", err)
			}
			if _, err := s.Get(context.Background(), forerun.Key{Space: "s", Name: "a"}); !errors.Is(err, errDisk) {
				t.Errorf("Get shows what is not on disk: %v", err)
			}
			if err := s.Close(); !errors.Is(err, errDisk) {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// TestLogThatIsClosedFails: what was written to a log file that cannot be synced as it is closed never counts as on disk.
func TestLogThatIsClosedFails(t *testing.T) {
	fs := &failingFS{FS: vfs.NewMem()}
	wal := newWALFS(fs)
	f, err := wal.Create("1.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	fs.sync.Store(true)
	if err := f.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close: %v", err)
	}
	fs.sync.Store(false)
	if err := wal.sync(); !errors.Is(err, errDisk) {
		t.Errorf("sync: %v", err)
	}
}

// TestDropWalksOverNothing: a range is dropped without looking at its records, though others are watched.
func TestDropWalksOverNothing(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	do(t, s, "MSET a 1 b 2 c 3")
	told := 0
	defer s.Watch(func(forerun.Key, forerun.Version) { told++ })()
	if err := s.Drop(t.Context(), state.Range{Space: "s", From: "a", To: "c"}); err != nil {
		t.Fatal(err)
	}
	if a, b, c := get(t, s, "a"), get(t, s, "b"), get(t, s, "c"); a.Version != 0 || b.Version != 0 || c.Version == 0 || told != 0 {
		t.Errorf("%v, %v, %v; told of %d", a, b, c, told)
	}
}

// TestSweep reclaims what has expired, in bounded steps, and tells who watches.
func TestSweep(t *testing.T) {
	now := time.UnixMilli(1000)
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: func() time.Time { return now }})
	defer closed(t, s)
	const many = sweepBatch + 10
	for n := range many {
		do(t, s, fmt.Sprintf("SET k%d x PX 10", n))
	}
	do(t, s, "HSET h f 1 g 2")
	do(t, s, "PEXPIRE h 500")
	do(t, s, "SET stays x PX 10000")
	do(t, s, "SET renewed x PX 10")
	do(t, s, "PEXPIRE renewed 10000")
	told := 0
	stop := s.Watch(func(forerun.Key, forerun.Version) { told++ })
	defer stop()
	now = now.Add(11 * time.Millisecond)
	if a, b, c := s.sweep(), s.sweep(), s.sweep(); a != sweepBatch || b != 10 || c != 0 || told != many {
		t.Errorf("swept %d, %d and %d, told of %d", a, b, c, told)
	}
	now = now.Add(time.Second)
	if n := s.sweep(); n != 1 {
		t.Errorf("swept %d", n)
	}
	var left []string
	if err := (reader{db: s.db}).Scan([]byte("a"), []byte("y"), false, func(key, _ []byte) bool {
		left = append(left, fmt.Sprintf("%q", key))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) != 6 { // two records, two entries of the index, format and versions
		t.Errorf("left: %s", left)
	}
}

// TestSweepPassesTheDamaged: more damaged records than it looks at in one step do not keep it from those behind them.
func TestSweepPassesTheDamaged(t *testing.T) {
	now := time.UnixMilli(1000)
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: func() time.Time { return now }})
	defer closed(t, s)
	const many = sweepBatch + 10
	for n := range many {
		name := fmt.Sprint("k", n)
		do(t, s, "SET "+name+" x PX 10")
		if err := s.write(command.RecordKey(forerun.Key{Space: "s", Name: name}), 0); err != nil {
			t.Fatal(err)
		}
	}
	do(t, s, "SET sound x PX 20")
	now = now.Add(21 * time.Millisecond)
	if a, b, c := s.sweep(), s.sweep(), s.sweep(); a != sweepBatch || b != 11 || c != 0 {
		t.Errorf("swept %d, %d and %d", a, b, c)
	}
	if _, found, err := (reader{db: s.db}).Get(command.RecordKey(forerun.Key{Space: "s", Name: "sound"})); found || err != nil {
		t.Errorf("what is behind is still there: %v, %v", found, err)
	}
	if _, err := s.Get(context.Background(), forerun.Key{Space: "s", Name: "k0"}); !errors.Is(err, command.ErrDamaged) {
		t.Errorf("the damaged record: %v", err)
	}
}

// TestSweepRuns lets the time of a bubble pass until the store sweeps by itself.
func TestSweepRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
		defer closed(t, s)
		told := make(chan struct{})
		stop := s.Watch(func(forerun.Key, forerun.Version) { close(told) })
		stop()
		do(t, s, "SET a x PX 10")
		stop = s.Watch(func(forerun.Key, forerun.Version) { close(told) })
		defer stop()
		<-told
	})
}

// TestReadersDoNotWaitForOthersSyncs reads a record whose write is on disk while another's is not.
func TestReadersDoNotWaitForOthersSyncs(t *testing.T) {
	fs := &failingFS{FS: vfs.NewMem()}
	s := mustOpen(t, "store", Options{FS: fs})
	v := do(t, s, "SET a 1")
	if err := s.Durable(context.Background(), v); err != nil {
		t.Fatal(err)
	}
	other := "b"
	for s.keys.claim("s", []byte(other), true) == s.keys.claim("s", []byte("a"), true) {
		other += "b" // they share a lock
	}
	unsynced := do(t, s, "SET "+other+" 1")
	fs.sync.Store(true)
	if r := get(t, s, "a"); r.Version != v {
		t.Errorf("%+v", r)
	}
	_, rests, err := s.Do(context.Background(), state.Command{Space: "s", Args: [][]byte{[]byte("GET"), []byte(other)}})
	if err != nil || rests != unsynced {
		t.Errorf("a read of what is not on disk rests on %d, %v; want %d", rests, err, unsynced)
	}
	if err := s.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close: %v", err)
	}
}

// TestClockIsSet: what is to expire does, in about its time, when somebody sets the machine's clock.
func TestClockIsSet(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var off atomic.Int64
				c := clock.New(func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
				s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: c.Now})
				defer closed(t, s)
				do(t, s, "SET a 1 PX 10000")
				off.Store(int64(jump))
				time.Sleep(8 * time.Second)
				if get(t, s, "a").Version == 0 {
					t.Error("it has expired too early")
				}
				time.Sleep(4 * time.Second)
				if get(t, s, "a").Version != 0 {
					t.Error("it has not expired")
				}
			})
		})
	}
}
