package proc

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Memory tells how much memory a process uses. Its file stays open: to open a file in /proc costs many times as much as to read it again.
// Its methods may be called concurrently.
type Memory struct {
	file *os.File
	raw  syscall.RawConn
}

// OpenMemory opens the file of a process.
func OpenMemory(pid int) (*Memory, error) {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Memory{file, raw}, nil
}

// Close closes the file.
func (m *Memory) Close() error { return m.file.Close() }

// Anonymous is how many bytes are in use that belong to no file, also those that the process shares with its parent since the fork. It is 0
// if the process has ended.
func (m *Memory) Anonymous() int64 {
	var text [128]byte
	n := 0
	if m.raw.Control(func(fd uintptr) { n, _ = unix.Pread(int(fd), text[:], 0) }) != nil || n <= 0 {
		return 0
	}
	_, rest, _ := bytes.Cut(text[:n], []byte(" ")) // pages of addresses
	resident, rest, _ := bytes.Cut(rest, []byte(" "))
	files, _, _ := bytes.Cut(rest, []byte(" "))
	return (pages(resident) - pages(files)) * int64(os.Getpagesize())
}

func pages(text []byte) int64 {
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}
