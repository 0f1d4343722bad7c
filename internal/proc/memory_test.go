package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestMemory(t *testing.T) {
	own, err := OpenMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	const more = 64 << 20
	before := own.Anonymous()
	block, err := syscall.Mmap(-1, 0, more, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < more; i += os.Getpagesize() {
		block[i] = 1
	}
	if after := own.Anonymous(); before <= 0 || after < before+more/2 {
		t.Errorf("%d bytes, and %d with %d more in use", before, after, more)
	}
	if err := syscall.Munmap(block); err != nil {
		t.Error(err)
	}
}

func TestMemoryOfAnEndedProcess(t *testing.T) {
	sleep := exec.CommandContext(t.Context(), "sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	m, err := OpenMemory(sleep.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_ = sleep.Process.Kill()
	_ = sleep.Wait() // it was killed
	if n := m.Anonymous(); n != 0 {
		t.Errorf("it uses %d bytes", n)
	}
}
