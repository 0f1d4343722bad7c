package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/places"
)

// Keys of the store itself. Those of records begin with other letters (package command).
var (
	formatKey  = []byte("s/format")
	reserveKey = []byte("s/versions")
)

// dataFormat is the format that this code writes: how records lie in Pebble.
const dataFormat = 1

// Open opens the store in a folder, which it makes if it is not there. The error is forerun.Unavailable (another process
// has it open), Full (the disk is), Unsupported (it was written by a newer Forerun), Invalid (it is not Forerun's) or Internal.
func Open(dir string, opts Options) (*Store, error) {
	opts = withDefaults(opts)
	room := newRoom(opts.FS, dir)
	wal := newWALFS(&roomFS{opts.FS, room})
	lock, err := lockFolder(dir, wal)
	if err != nil {
		return nil, err
	}
	if err := room.begin(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	opts.hurry = room.low.Load
	db, err := openPebble(dir, wal, lock, opts)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Store{db: db, lock: lock, wal: wal, room: room, now: opts.Now, keys: newKeyLocks(), places: places.New(0), stop: make(chan struct{})}
	s.gate.idle = make(chan struct{})
	s.watch.init()
	s.announce.init()
	s.disk.init(s)
	if err := s.recover(); err != nil {
		return nil, errors.Join(err, db.Close(), lock.Close())
	}
	if err := s.openBooks(opts.Stored); err != nil {
		return nil, errors.Join(err, db.Close(), lock.Close())
	}
	s.behind.Go(s.sweepLoop)
	s.behind.Go(room.watch)
	s.behind.Go(s.reclaimLoop)
	return s, nil
}

func withDefaults(opts Options) Options {
	if opts.FS == nil {
		opts.FS = vfs.Default
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.CacheSize == 0 {
		opts.CacheSize = 32 << 20 // of which Pebble takes its memtables, mostly two
	}
	opts.hurry = func() bool { return false }
	if opts.Fatal == nil {
		opts.Fatal = func(err error) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	return opts
}

func lockFolder(dir string, fs vfs.FS) (*pebble.Lock, error) {
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, forerun.Errorf(forerun.Internal, dir, "The store's folder cannot be made: %w", err)
	}
	lock, err := pebble.LockDirectory(dir, fs)
	if err != nil {
		return nil, forerun.Errorf(forerun.Unavailable, dir, "The store is in use by another process, or its lock cannot be taken: %w", err)
	}
	return lock, nil
}

func openPebble(dir string, fs vfs.FS, lock *pebble.Lock, opts Options) (*pebble.DB, error) {
	if err := checkPebbleFormat(dir, fs); err != nil {
		return nil, err
	}
	cache := pebble.NewCache(opts.CacheSize)
	defer cache.Unref() // the database holds its own reference
	o := pebbleOptions(fs, lock, opts)
	o.Cache = cache
	db, err := pebble.Open(dir, o)
	if err != nil {
		return nil, forerun.Errorf(forerun.Internal, dir, "The store cannot be opened, because its files are damaged: %w. Restore them from a backup (forerun restore).", err)
	}
	return db, nil
}

// pebbleFormat is the format of Pebble's files. Not a newer one: from FormatWALSyncChunks on, chunks of the log say how
// much of it was synced before them, and Pebble would believe that of syncs that walFS has put off.
const pebbleFormat = pebble.FormatColumnarBlocks

// checkPebbleFormat refuses files that Pebble would read otherwise than this code expects, or not at all.
func checkPebbleFormat(dir string, fs vfs.FS) error {
	found, err := pebble.Peek(dir, fs)
	if err != nil && strings.Contains(err.Error(), "format major version") {
		return newer(dir, err.Error())
	}
	if err == nil && found.Exists && found.FormatMajorVersion > pebbleFormat {
		return newer(dir, fmt.Sprintf("its files have the format %d, this one reads up to %d", found.FormatMajorVersion, pebbleFormat))
	}
	return nil // whatever else is wrong with them, opening them says it better
}

func newer(subject, how string) error {
	return forerun.Errorf(forerun.Unsupported, subject, "The data were written by a newer Forerun: %s. Start that version, or choose another folder with --data.", how)
}

func pebbleOptions(fs vfs.FS, lock *pebble.Lock, opts Options) *pebble.Options {
	o := &pebble.Options{
		FS: fs, Lock: lock, Logger: logger{opts.Fatal},
		MemTableSize: 8 << 20, MaxOpenFiles: 256,
		FormatMajorVersion: pebbleFormat,
	}
	o.EventListener = &pebble.EventListener{BackgroundError: func(err error) {
		if !isFull(err) { // that is said already (setLow)
			o.Logger.Errorf("background error: %v", err)
		}
	}}
	o.CompactionConcurrencyRange = func() (lower, upper int) { return 1, 2 } // more than one: it is behind (pacer)
	o.L0StopWritesThreshold = paceStop
	o.Experimental.L0CompactionConcurrency = paceBehind
	o.Experimental.CompactionScheduler = newPacer(opts.hurry)
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// logger keeps Pebble quiet but for what matters.
type logger struct{ fatal func(error) }

func (logger) Infof(string, ...any) {}

func (logger) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "store: "+format+"\n", args...)
}

func (l logger) Fatalf(format string, args ...any) {
	l.fatal(forerun.Errorf(forerun.Internal, "state", "The store cannot go on: "+format, args...))
}

// recover checks the data format and finds where the versions go on.
func (s *Store) recover() error {
	format, err := s.number(formatKey)
	if err != nil {
		return err
	}
	if format > dataFormat {
		return newer("state", fmt.Sprintf("their format is %d, this one reads up to %d", format, dataFormat))
	}
	if format == 0 {
		if err := s.begin(); err != nil {
			return err
		}
	}
	reserved, err := s.number(reserveKey)
	if err != nil {
		return err
	}
	s.commits.startAt(forerun.Version(reserved))
	s.disk.startAt(forerun.Version(reserved))
	return s.disk.sync()
}

// begin writes the data format into a new store; one that has data but no format is not ours.
func (s *Store) begin() error {
	iter, err := s.db.NewIter(nil)
	if err != nil {
		return broken(err)
	}
	used := iter.First()
	if err := errors.Join(iter.Error(), iter.Close()); err != nil {
		return broken(err)
	}
	if used {
		return forerun.Errorf(forerun.Invalid, "state", "The store's folder holds data that are not Forerun's. Choose another with --data.")
	}
	return s.write(formatKey, dataFormat)
}

func (s *Store) write(key []byte, n uint64) error {
	if err := s.db.Set(key, binary.BigEndian.AppendUint64(nil, n), pebble.NoSync); err != nil {
		return broken(err)
	}
	return nil
}

// number reads a number of the store's own; 0 if it is not there.
func (s *Store) number(key []byte) (uint64, error) {
	value, found, err := reader{db: s.db}.Get(key)
	if err != nil || !found {
		return 0, err
	}
	if len(value) != 8 {
		return 0, forerun.Errorf(forerun.Internal, "state", "The store's record %s is damaged. Restore the data folder from a backup.", key)
	}
	return binary.BigEndian.Uint64(value), nil
}

// broken is a failure of Pebble.
func broken(err error) error {
	return forerun.Errorf(forerun.Internal, "state", "The store failed: %w", err)
}
