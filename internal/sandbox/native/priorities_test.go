package native

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoPriorities: where the server may come before others, its sandboxes may not.
func TestNoPriorities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can allow it to the server")
	}
	for resource, most := range map[int]uint64{unix.RLIMIT_NICE: 40, unix.RLIMIT_RTPRIO: 99} {
		var was unix.Rlimit
		if err := unix.Getrlimit(resource, &was); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = unix.Setrlimit(resource, &was) })
	}
	m := startHelper(t, Config{})
	spec := sleeper("priorities")
	spec.Argv = []string{"/usr/bin/bash", "-c", "ulimit -Hr; ulimit -He"}
	s, err := m.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	stdout, _ := s.Output()
	got, _ := io.ReadAll(stdout)
	if string(got) != "0\n0\n" {
		t.Errorf("the limits of priorities are %q", got)
	}
}
