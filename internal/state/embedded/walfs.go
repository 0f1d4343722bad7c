package embedded

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walFS is a file system on which Sync of a log file does nothing: Pebble's flush loop then only writes, which is what
// a Lazy transaction waits for. sync does the syncs put off, and Close of a log file does its own, so that Pebble never
// begins a new log before the old one is on disk.
type walFS struct {
	vfs.FS

	mu   sync.Mutex // guards open
	open map[*walFile]struct{}
}

func newWALFS(fs vfs.FS) *walFS { return &walFS{FS: fs, open: make(map[*walFile]struct{})} }

// Unwrap is for Pebble, which looks for the file system below.
func (fs *walFS) Unwrap() vfs.FS { return fs.FS }

// manifestMarker begins the name of the file whose name says which manifest counts.
const manifestMarker = "marker.manifest."

// Create makes a file. Before it makes the one that names a manifest, the manifest's own name is put on disk: Pebble syncs both at
// once, and a disk may keep either.
func (fs *walFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), manifestMarker) {
		if err := fs.syncFolder(fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := fs.FS.Create(name, category)
	return fs.wrap(name, f, err)
}

func (fs *walFS) syncFolder(path string) error {
	folder, err := fs.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// ReuseForWrite renames a file and opens it.
func (fs *walFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.wrap(newname, f, err)
}

func (fs *walFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	w := &walFile{File: f, fs: fs}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.open[w] = struct{}{}
	return w, nil
}

// sync puts on disk what was written to log files before it was called.
func (fs *walFS) sync() error {
	fs.mu.Lock()
	files := make([]*walFile, 0, len(fs.open))
	for w := range fs.open {
		files = append(files, w)
	}
	fs.mu.Unlock()
	var errs []error
	for _, w := range files {
		errs = append(errs, w.syncNow())
	}
	return errors.Join(errs...)
}

// walFile is a log file, open for writing.
type walFile struct {
	vfs.File
	fs      *walFS
	written atomic.Int64 // bytes

	mu     sync.Mutex // guards the rest; taken by sync and Close, never by Write
	synced int64      // bytes that are on disk
	closed bool
	err    error // of a sync: what is on disk is not known after it
}

// Write hands bytes to the operating system.
func (w *walFile) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	w.written.Add(int64(n))
	return n, err
}

// Sync is put off.
func (w *walFile) Sync() error { return nil }

// SyncData is put off.
func (w *walFile) SyncData() error { return nil }

func (w *walFile) syncNow() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	return w.syncLocked()
}

func (w *walFile) syncLocked() error {
	written := w.written.Load()
	if w.err == nil && written != w.synced {
		if w.err = w.File.SyncData(); w.err == nil {
			w.synced = written
		}
	}
	return w.err
}

// Close syncs and closes. If the sync fails, sync says so from then on.
func (w *walFile) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.syncLocked()
	w.closed = true
	if err == nil {
		w.fs.mu.Lock()
		delete(w.fs.open, w)
		w.fs.mu.Unlock()
	}
	return errors.Join(err, w.File.Close())
}
