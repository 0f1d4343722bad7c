package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
)

const (
	reserveSize  = 64 << 20 // bytes of the disk that are left for what was begun before, of a small disk a quarter
	ballastSize  = 16 << 20 // bytes of a file that makes room if others fill the disk, of a small disk a 64th
	ballastName  = "ballast"
	roomInterval = 250 * time.Millisecond // between looks at the disk
	lookAfter    = 2 << 20                // bytes that are written, after which it is looked at again
	roomRetry    = 50 * time.Millisecond  // between tries of what the disk had no room for
	rewriteTries = 20                     // of a compaction, until it begins again
)

// room watches the disk's free space. When little is left, the store takes nothing new, but finishes what it has begun.
// When none is left, because others have filled the disk, what Pebble writes waits until there is some, for Pebble could
// not go on after such an error.
type room struct {
	fs  vfs.FS
	dir string
	low atomic.Bool // nothing new is taken

	free   atomic.Int64 // bytes for what is new, when it was noted (remember); negative: not known
	taken  atomic.Int64 // bytes written to the log since
	looked atomic.Int64 // of these when it was looked at

	stop   chan struct{} // closed by Close: nothing waits any more
	closed sync.Once     // closes stop

	mu      sync.Mutex // guards the rest
	open    bool       // the store is: before, nothing waits
	ballast bool       // the file is there
	waiting int        // steps that wait for room
}

func newRoom(fs vfs.FS, dir string) *room {
	_, err := fs.Stat(fs.PathJoin(dir, ballastName))
	return &room{fs: fs, dir: dir, stop: make(chan struct{}), ballast: err == nil}
}

// begin looks whether a store can be opened. The error is forerun.Full.
func (r *room) begin() error {
	const least = 1 << 20 // bytes that Pebble writes when it opens a store
	free, _, known := r.measure()
	if known && free < least {
		r.noRoom(true)
		if free, _, _ = r.measure(); free < least {
			return forerun.Errorf(forerun.Full, r.dir, "The disk is full (%d kB are free), so the store cannot be opened. Make room on it, and try again.", free>>10)
		}
	}
	r.remember()
	r.look()
	return nil
}

// close ends the waits.
func (r *room) close() { r.closed.Do(func() { close(r.stop) }) }

// measure returns the bytes that are free and those that there are, if the file system says so.
func (r *room) measure() (free, total uint64, known bool) {
	usage, err := r.fs.GetDiskUsage(r.dir)
	return usage.AvailBytes, usage.TotalBytes, err == nil && usage.TotalBytes > 0
}

// watch looks at the disk until Close.
func (r *room) watch() {
	r.mu.Lock()
	r.open = true
	r.mu.Unlock()
	ticker := time.NewTicker(roomInterval)
	defer ticker.Stop()
	for {
		r.remember()
		r.look()
		select {
		case <-r.stop:
			return
		case <-ticker.C:
		}
	}
}

// look finds whether there is room, and makes the ballast anew when there is.
func (r *room) look() {
	free, total, known := r.measure()
	r.mu.Lock()
	defer r.mu.Unlock()
	needed := needs(total)
	switch {
	case known && free < needed:
		r.setLow(true)
	case r.waiting > 0:
	case known && !r.ballast:
		size := min(ballastSize, total/64)
		if free >= needed+size && r.open {
			r.ballast = true // also if it cannot be made: not every file system can
			r.makeBallast(int64(size))
		}
		r.setLow(free < needed+size)
	default:
		r.setLow(false)
	}
}

// remember notes how much is free. The log gets that room at once, or within the time between two calls.
func (r *room) remember() {
	left := int64(-1)
	if free, total, known := r.measure(); known {
		left = int64(free) - int64(min(needs(total), free))
	}
	r.free.Store(left)
	r.taken.Store(0)
	r.looked.Store(0)
}

// left is how many bytes what is new may take, or negative if that is not known.
func (r *room) left() int64 {
	free := r.free.Load()
	if free < 0 {
		return free
	}
	return max(0, free-r.taken.Load())
}

// needs is what is left of a disk for what was begun before.
func needs(total uint64) uint64 { return min(reserveSize, total/4) }

func (r *room) setLow(low bool) {
	if r.low.Swap(low) == low {
		return
	}
	if low {
		fmt.Fprintln(os.Stderr, "store: the disk is nearly full: nothing new is stored until there is room")
	} else {
		fmt.Fprintln(os.Stderr, "store: the disk has room again")
	}
}

func (r *room) makeBallast(size int64) {
	f, err := r.fs.Create(r.fs.PathJoin(r.dir, ballastName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return
	}
	_ = f.Preallocate(0, size) // what it gets of the disk is what it can give back
	_ = f.Close()
}

// admit says whether a transaction may be written. What was begun before there was little room (owed), and what only
// removes, still may, unless something waits: it would wait too, with its keys. What is owed waits without them (queue).
func (r *room) admit(still bool) error {
	if taken := r.taken.Load(); taken > r.looked.Load()+lookAfter {
		r.looked.Store(taken)
		r.look()
	}
	if !r.low.Load() || still && !r.waits() {
		return nil
	}
	return full()
}

func full() error {
	return forerun.Errorf(forerun.Full, "state", "The server's disk is full, so nothing new is stored until there is room on it again. Delete what is not needed, or ask the operator.")
}

func (r *room) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting > 0
}

// queue returns when nothing waits any more, or with why something owed, which was refused for that, is not to wait for it.
func (r *room) queue(ctx context.Context) error {
	for r.waits() {
		select {
		case <-r.stop:
			return full()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(roomRetry):
		}
	}
	return nil
}

// retry carries out a step, which has failed with err, until the disk has room for it or the store is closed. The ballast is
// for what is urgent, the log above all: tables can wait.
func (r *room) retry(err error, urgent bool, step func() error) error {
	if !isFull(err) {
		return err
	}
	r.noRoom(urgent)
	if urgent {
		if err = step(); !isFull(err) {
			return err
		}
	}
	if !r.wait() {
		return err
	}
	defer func() { r.waited(urgent, err) }()
	for isFull(err) {
		select {
		case <-r.stop:
			return err
		case <-time.After(roomRetry):
		}
		if urgent || r.hasSome() {
			err = step()
		}
	}
	return err
}

// hasSome says whether there is room for a table that would leave some for what is urgent.
func (r *room) hasSome() bool {
	free, total, known := r.measure()
	return !known || free >= needs(total)/2
}

// mayRewrite says whether there is room for a table of a compaction. It waits a little for that: Pebble tries again at once.
func (r *room) mayRewrite() bool {
	for range rewriteTries {
		if r.hasSome() {
			return true
		}
		r.noRoom(false)
		select {
		case <-r.stop:
			return false
		case <-time.After(roomRetry):
		}
	}
	return false
}

// noRoom notes that there is none, and gives back the ballast if that is for this.
func (r *room) noRoom(urgent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLow(true)
	if urgent && r.ballast {
		_ = r.fs.Remove(r.fs.PathJoin(r.dir, ballastName)) // an error changes nothing
		r.ballast = false
	}
}

// wait begins to wait, if the store is open.
func (r *room) wait() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open {
		r.waiting++
	}
	return r.open
}

// waited ends a wait. What was urgent and got no room waits for good: nothing may follow it into the log.
func (r *room) waited(urgent bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !urgent || !isFull(err) {
		r.waiting--
	}
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Room returns an error of kind forerun.Full while the store takes nothing new because the disk is full.
func (s *Store) Room() error {
	if s.room.low.Load() {
		return full()
	}
	return nil
}
