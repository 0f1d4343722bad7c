package test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"forerun.dev/forerun/test/server"
)

// earlyMetrics are those of a request that ran early, one that was held, and a ticket that came again.
var earlyMetrics = regexp.MustCompile(`(?s)forerun_early_accepted_total 1\n.*forerun_early_held_total 1\n.*forerun_early_replayed_total 1\n`)

// TestQUICClients runs clients of HTTP/3 from PyPI, as they are: they find HTTP/3 by themselves, come back with early data, and lose or repeat no
// request when that is rejected.
func TestQUICClients(t *testing.T) {
	t.Parallel()
	const python = "../.forerun/quic/bin/python"
	if _, err := os.Stat(python); err != nil {
		t.Skip("the clients are not installed; make quic-clients installs them")
	}
	s := start(t, server.Options{Args: []string{"--tls", "on"}})
	out, err := exec.CommandContext(t.Context(), python, "-B", "python/quic/clients.py", s.URL, s.Auth, s.CA()).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, text := fetch(t, client(t, s), s.URL+"/metrics"); !earlyMetrics.MatchString(text) {
		t.Errorf("the metrics are %s", text)
	}
}
