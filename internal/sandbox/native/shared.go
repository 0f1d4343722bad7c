package native

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox/guard"
)

// shared is memory that the server shares with its helper. It lasts as long as the process.
type shared struct {
	told  *atomic.Uint64 // connections that were refused or wait, of which the helper has told
	gates []guard.Switch // by the numbers of the sandboxes
}

// The layout: the counter has a part of its own, of which gates take no more than they need.
const (
	sharedGates = 4096
	sharedSize  = sharedGates + rangesAtMost*int(unsafe.Sizeof(guard.Switch{}))
)

// newShared makes it, and the file through which another process gets it.
func newShared() (*shared, *os.File, error) {
	fd, err := unix.MemfdCreate("shared", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "shared")
	err = file.Truncate(int64(sharedSize))
	if err == nil {
		var s *shared
		if s, err = mapShared(file); err == nil {
			return s, file, nil
		}
	}
	file.Close()
	return nil, nil, err
}

func mapShared(file *os.File) (*shared, error) {
	memory, err := unix.Mmap(int(file.Fd()), 0, sharedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("sharing memory between the server and its helper: %w", err)
	}
	return &shared{
		told:  (*atomic.Uint64)(unsafe.Pointer(&memory[0])),
		gates: unsafe.Slice((*guard.Switch)(unsafe.Pointer(&memory[sharedGates])), rangesAtMost),
	}, nil
}
