package service

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/proc"
)

// lockName is the file in the data folder that tells a folder of ours from any other and keeps a second server out.
const lockName = "lock"

// folder is the data folder of a running server, locked.
type folder struct {
	path string
	lock *os.File // keeps the lock while it is open
}

// openFolder makes the data folder if it is not there, and locks it. The error is forerun.Invalid (it cannot be one) or
// Exists (another server uses it).
func openFolder(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, forerun.Errorf(forerun.Invalid, path, "The data folder cannot be made: %w. Choose another with --data.", err)
	}
	if err := checkOurs(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, path, "The data folder cannot be used: %w. Choose another with --data.", err)
	}
	f := &folder{path: path, lock: lock}
	if err := f.seize(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// checkOurs refuses a folder that holds something else: its files would change their owner.
func checkOurs(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return forerun.Errorf(forerun.Invalid, path, "The data folder cannot be read: %w. Choose another with --data.", err)
	}
	for _, e := range entries {
		if e.Name() == lockName {
			return nil
		}
	}
	if len(entries) > 0 {
		return forerun.Errorf(forerun.Invalid, path, "The folder holds files that are not Forerun's (%s). Choose an empty or a new one with --data.", entries[0].Name())
	}
	return nil
}

// A server that was killed has the lock until the last of its threads has ended.
const (
	lockWait  = 50 * time.Millisecond // for one that may be about to end
	dyingWait = 5 * time.Second       // for one that is
	lockLooks = 10 * time.Millisecond
)

// seize takes the lock and writes our process id into it.
func (f *folder) seize() error {
	err := f.tryLock()
	for begin := time.Now(); errors.Is(err, syscall.EWOULDBLOCK); err = f.tryLock() {
		if passed := time.Since(begin); passed > dyingWait || passed > lockWait && !f.holderEnds() {
			break
		}
		time.Sleep(lockLooks)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return forerun.Errorf(forerun.Exists, "", "Another server (process %s) already uses the data folder %s. Stop it, or choose another folder with --data.", f.holder(), f.path)
	}
	if err == nil {
		err = f.lock.Truncate(0)
	}
	if err == nil {
		_, err = f.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return forerun.Errorf(forerun.Internal, f.path, "The data folder cannot be locked: %w", err)
	}
	return nil
}

func (f *folder) tryLock() error {
	return syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// holderEnds reports whether the process that holds the lock is gone but for the lock, or on its way out.
func (f *folder) holderEnds() bool {
	t, ok := proc.ReadTask("/proc/" + f.holder() + "/stat")
	return !ok || t.Exits()
}

// holder reads whose process holds the lock.
func (f *folder) holder() string {
	text := make([]byte, 20)
	n, _ := f.lock.ReadAt(text, 0) // what is not there is not known
	if pid := strings.TrimSpace(string(text[:n])); pid != "" {
		return pid
	}
	return "unknown"
}

// giveTo makes uid the owner of everything in the folder. Whatever is in it, nothing outside of it is touched.
func (f *folder) giveTo(uid int) error {
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return forerun.Errorf(forerun.Internal, f.path, "The data folder cannot be opened: %w", err)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = root.Lchown(name, uid, uid)
		}
		if err != nil {
			return forerun.Errorf(forerun.Internal, f.path, "The data folder cannot be given to user %d: %w", uid, err)
		}
		return nil
	})
}

// enter makes the folder the working directory: from then on all its files are named relative to it, so its parents
// need not be readable for the user that the server becomes.
func (f *folder) enter() error {
	if err := os.Chdir(f.path); err != nil {
		return forerun.Errorf(forerun.Internal, f.path, "The data folder cannot be entered: %w", err)
	}
	return nil
}

func (f *folder) close() error { return f.lock.Close() }
