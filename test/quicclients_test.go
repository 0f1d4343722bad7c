package test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestQUICClients runs clients of HTTP/3 from PyPI, as they are: they find HTTP/3 by themselves, come back with early data, and lose or repeat no
// request when that is rejected.
func TestQUICClients(t *testing.T) {
	t.Parallel()
	const python = "../.forerun/quic/bin/python"
	if _, err := os.Stat(python); err != nil {
		t.Skip("the clients are not installed: make test installs them")
	}
	s := start(t, server.Options{Args: []string{"--tls", "on"}})
	out, err := exec.CommandContext(t.Context(), python, "-B", "python/quic/clients.py", s.URL, s.Auth, s.CA()).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, text := fetch(t, client(t, s), s.URL+"/metrics"); !strings.Contains(text, "forerun_early_replayed_total 1\n") {
		t.Errorf("the metrics do not have the ticket that came again: %s", text)
	}
}
