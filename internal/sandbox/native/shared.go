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

// The layout: the counter has a page of its own, and the gates follow. Gates without a sandbox take no memory.
const (
	sharedGates = 4096
	sharedSize  = sharedGates + rangesAtMost*int(unsafe.Sizeof(guard.Switch{}))
)

// newShared makes it, and the file through which another process gets it.
func newShared() (*shared, *os.File, error) {
	file, err := memoryFile(nil)
	if err != nil {
		return nil, nil, err
	}
	if err := file.Truncate(int64(sharedSize)); err != nil {
		file.Close()
		return nil, nil, err
	}
	s, err := mapShared(file)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return s, file, nil
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
