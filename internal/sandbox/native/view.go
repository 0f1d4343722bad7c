package native

import (
	"cmp"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// viewed bounds how much of a view is read. The kernel gives less than half of that at once.
const viewed = 4096

// view reads a small file that the kernel makes again for each look. [os.File.ReadAt] looks twice, to see that there is no more.
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
