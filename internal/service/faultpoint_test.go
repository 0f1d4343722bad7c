package service

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/test/history"
)

// pointedFS is a file system that calls at before one of its steps that change something: a fault point.
type pointedFS struct {
	vfs.FS
	left atomic.Int64 // steps until then
	at   func()
}

func (fs *pointedFS) step() {
	if fs.left.Add(-1) == 0 {
		fs.at()
	}
}

func (fs *pointedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs.step()
	return fs.file(fs.FS.Create(name, category))
}

func (fs *pointedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs.step()
	return fs.file(fs.FS.ReuseForWrite(oldname, newname, category))
}

func (fs *pointedFS) OpenDir(name string) (vfs.File, error) { return fs.file(fs.FS.OpenDir(name)) }

func (fs *pointedFS) Remove(name string) error {
	fs.step()
	return fs.FS.Remove(name)
}

func (fs *pointedFS) Rename(oldname, newname string) error {
	fs.step()
	return fs.FS.Rename(oldname, newname)
}

func (fs *pointedFS) Link(oldname, newname string) error {
	fs.step()
	return fs.FS.Link(oldname, newname)
}

func (fs *pointedFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &pointedFile{f, fs}, nil
}

type pointedFile struct {
	vfs.File
	fs *pointedFS
}

func (f *pointedFile) Write(p []byte) (int, error) {
	f.fs.step()
	return f.File.Write(p)
}

func (f *pointedFile) Sync() error {
	f.fs.step()
	return f.File.Sync()
}

func (f *pointedFile) SyncData() error {
	f.fs.step()
	return f.File.SyncData()
}

// TestPowerLossAtStart has the power fail before each step that a store takes when it is opened, made or begun again.
func TestPowerLossAtStart(t *testing.T) {
	seed := history.Seed(t)
	used := vfs.NewCrashableMem()
	m := &machine{T: t, disk: used}
	m.boot()
	if _, err := m.store.Apply(t.Context(), state.Txn{Ops: []state.Command{redisCommand("SET", "k", "v")}}); err != nil {
		t.Fatal(err)
	}
	m.shutDown()
	for name, start := range map[string]*vfs.MemFS{"made": vfs.NewCrashableMem(), "begun again": used} {
		failed := true
		for step := int64(1); failed; step++ {
			random := rand.New(rand.NewPCG(seed, uint64(step)))
			m := &machine{T: t, disk: start.CrashClone(vfs.CrashCloneCfg{}), chance: random}
			m.fs.left.Store(step)
			m.boot()
			m.shutDown()
			if failed = m.left != nil; !failed {
				continue
			}
			after := &machine{T: t, disk: m.left}
			after.boot()
			r, err := after.store.Get(t.Context(), forerun.Key{Space: "s", Name: "k"})
			if found := err == nil && r[0].Version != 0; found != (start == used) {
				t.Errorf("%s, before step %d: the record is there: %v, %v", name, step, found, err)
			}
			after.shutDown()
		}
	}
}
