package test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestQUICClients runs unchanged clients of HTTP/3 from PyPI. They find HTTP/3 by themselves, and come back with early data. When that is rejected
// they lose or repeat no request. The library for Python does the same, and changes to TCP where UDP does not get through.
func TestQUICClients(t *testing.T) {
	t.Parallel()
	const python = "../.forerun/quic/bin/python"
	if _, err := os.Stat(python); err != nil {
		t.Skip("the clients are not installed: make test installs them")
	}
	s := start(t, server.Options{Args: []string{"--tls", "on"}})
	for _, program := range []string{"python/quic/clients.py", "python/quic/library.py"} {
		cmd := exec.CommandContext(t.Context(), python, "-B", program, s.URL, s.Auth, s.CA())
		cmd.Env = append(os.Environ(), "PYTHONPATH=../sdk/python")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
	if _, text := fetch(t, client(t, s), s.URL+"/metrics"); !strings.Contains(text, "forerun_early_replayed_total 1\n") {
		t.Errorf("the metrics do not have the ticket that came again: %s", text)
	}
}
