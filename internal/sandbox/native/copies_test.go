package native

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox/guard"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
)

// limitDescriptors lets this process have so many, and no more ever.
func limitDescriptors(most string) {
	n, err := strconv.ParseUint(most, 10, 64)
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// TestManyCallsWait: however many calls of an owner's functions wait, where a process may have few descriptors the helper has some for others'.
func TestManyCallsWait(t *testing.T) {
	host := sandboxtest.Outside()
	if !host.IsValid() {
		t.Skip("the tests have no network namespace of their own")
	}
	const few = 320
	m := startHelper(t, Config{Policy: guard.Policy{Allowed: egress.List{{Network: netip.PrefixFrom(host, host.BitLen())}}}, HelperArgs: []string{"sandbox-helper", strconv.Itoa(few)}})
	const begins = "read -r -u 3; " // when the server says so
	connect := "(exec 5<>/dev/tcp/" + host.String() + "/1)"
	many := sleeper("many")
	many.Owner, many.MemoryMiB, many.Processes = "many", 512, 512
	many.Argv = []string{"/usr/bin/bash", "-c", begins + "for i in {1..400}; do " + connect + " 2>/dev/null & done; sleep 1000"}
	s, err := m.Start(t.Context(), many)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Hold(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Control().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	const some = few / 20
	for end := time.Now().Add(2 * time.Minute); sandboxtest.Waiting(t, s) < some && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Second) // for all that it tries
	other := sleeper("other")
	other.Owner, other.Argv = "other", []string{"/usr/bin/bash", "-c", connect + " 2>&1"}
	o, err := m.Start(t.Context(), other)
	if err != nil {
		t.Fatalf("with %d calls that wait: %v", sandboxtest.Waiting(t, s), err)
	}
	<-o.Done()
	stdout, _ := o.Output()
	if got, _ := io.ReadAll(stdout); !strings.Contains(string(got), "Connection refused") {
		t.Errorf("with %d calls that wait another's connect: %s", sandboxtest.Waiting(t, s), got)
	}
}
