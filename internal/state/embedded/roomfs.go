package embedded

import (
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// rewrites is what Pebble says of a table that it makes from others (compaction), when it creates the file.
const rewrites = "pebble-compaction"

// roomFS is a file system that waits for room where another would say that the disk is full. A compaction does not wait: it would hold the
// room of the tables that it has made, and keep what it makes them from. It fails, Pebble removes its tables, and tries again later.
type roomFS struct {
	vfs.FS
	room *room
}

// Unwrap is for Pebble, which looks for the file system below.
func (fs *roomFS) Unwrap() vfs.FS { return fs.FS }

// opened retries what opens a file for writing.
func (fs *roomFS) opened(name string, open func() (vfs.File, error)) (f vfs.File, err error) {
	step := func() error {
		f, err = open()
		return err
	}
	urgent := !strings.HasSuffix(name, ".sst")
	if err := fs.room.retry(step(), urgent, step); err != nil {
		return nil, err
	}
	return &roomFile{f, fs.room, urgent}, nil
}

// Create makes a file.
func (fs *roomFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == rewrites {
		if !fs.room.mayRewrite() {
			return nil, &os.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
		}
		return fs.FS.Create(name, category)
	}
	return fs.opened(name, func() (vfs.File, error) { return fs.FS.Create(name, category) })
}

// OpenReadWrite opens a file, which it makes if it is not there.
func (fs *roomFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.opened(name, func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite renames a file and opens it.
func (fs *roomFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.opened(newname, func() (vfs.File, error) { return fs.FS.ReuseForWrite(oldname, newname, category) })
}

// Link gives a file another name.
func (fs *roomFS) Link(oldname, newname string) error {
	step := func() error { return fs.FS.Link(oldname, newname) }
	return fs.room.retry(step(), true, step)
}

// Rename renames a file.
func (fs *roomFS) Rename(oldname, newname string) error {
	step := func() error { return fs.FS.Rename(oldname, newname) }
	return fs.room.retry(step(), true, step)
}

// MkdirAll makes a folder.
func (fs *roomFS) MkdirAll(dir string, perm os.FileMode) error {
	step := func() error { return fs.FS.MkdirAll(dir, perm) }
	return fs.room.retry(step(), true, step)
}

// roomFile is a file of a roomFS, open for writing. A sync for which there is no room is an error as any other: what is on
// disk is not known after it.
type roomFile struct {
	vfs.File
	room   *room
	urgent bool
}

// Write writes at the end.
func (f *roomFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		err = f.room.retry(err, f.urgent, func() error {
			more, err := f.File.Write(p[n:])
			n += more
			return err
		})
	}
	return n, err
}

// WriteAt writes at an offset.
func (f *roomFile) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(p, offset)
	if err != nil {
		err = f.room.retry(err, f.urgent, func() error {
			more, err := f.File.WriteAt(p[n:], offset+int64(n))
			n += more
			return err
		})
	}
	return n, err
}

// Preallocate asks for room ahead; what it does not get the writes wait for.
func (f *roomFile) Preallocate(offset, length int64) error {
	if err := f.File.Preallocate(offset, length); !isFull(err) {
		return err
	}
	return nil
}
