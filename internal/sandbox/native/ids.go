package native

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// idsFolder is where the servers of a machine agree on who gives which user ids to sandboxes.
const idsFolder = "/run/forerun"

// idLocks are the locks on ranges of user ids: a byte of a file for each. The kernel frees the locks of a process that has ended, however
// it did. The zero value locks nothing.
type idLocks struct{ file *os.File }

// openIDLocks opens the file of a folder, which only root can write.
func openIDLocks(folder string) (idLocks, error) {
	err := os.Mkdir(folder, 0o700)
	if err != nil && !os.IsExist(err) {
		return idLocks{}, err
	}
	fd, err := unix.Open(filepath.Join(folder, "ids"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return idLocks{}, fmt.Errorf("opening %s/ids: %w", folder, err)
	}
	return idLocks{os.NewFile(uintptr(fd), "ids")}, nil
}

// take locks a range, and reports whether no other server has it.
func (l idLocks) take(n int) bool { return l.file == nil || l.set(n, unix.F_WRLCK) == nil }

func (l idLocks) free(n int) {
	if l.file != nil {
		_ = l.set(n, unix.F_UNLCK) // of a lock that is there this does not fail
	}
}

func (l idLocks) set(n int, kind int16) error {
	return unix.FcntlFlock(l.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: int64(n), Len: 1})
}
