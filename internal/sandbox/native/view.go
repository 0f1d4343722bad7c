package native

import (
	"cmp"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// viewed is how much of a view is read at most: what is shorter than half of that the kernel tells at once.
const viewed = 4096

// view reads a small file that the kernel makes anew for each look. [os.File.ReadAt] looks twice, to see that there is no more.
type view struct {
	raw syscall.RawConn
	err error // it cannot be read
}

func viewOf(f *os.File) view {
	raw, err := f.SyscallConn()
	return view{raw, err}
}

// read reads from the beginning.
func (v view) read(b []byte) (n int, err error) {
	if v.err != nil {
		return 0, v.err
	}
	closed := v.raw.Control(func(fd uintptr) { n, err = unix.Pread(int(fd), b, 0) })
	return max(0, n), cmp.Or(closed, err)
}
