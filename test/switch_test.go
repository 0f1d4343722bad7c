package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// speculation runs `forerun speculation` on a server, and returns what it printed and what it said. A tenant's settings name another.
func speculation(t *testing.T, s, other *server.Server, verb string) (out, words string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "speculation", verb, "--operator", filepath.Join(s.Options.Data, "operator"))
	cmd.Env = append(os.Environ(), "WSK_CONFIG_FILE="+other.Props())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", verb, err, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// TestSwitch: what the operator has switched off stays off over a crash and a restart until it is on again. The server says so, and the
// command says of which server it is.
func TestSwitch(t *testing.T) {
	t.Parallel()
	other := start(t, server.Options{})
	o := server.Options{Data: filepath.Join(t.TempDir(), "data"), Args: []string{"--speculate", "all; load=any"}}
	const off = "nothing runs ahead, as the operator has switched that off: forerun speculation on --operator "
	s := start(t, o)
	putPython(t, client(t, s), map[string]string{"one": echoes, "two": echoes})
	if err := client(t, s).PutSequence(t.Context(), "both", "one", "two"); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		verb, out string
		on, kill  bool // afterwards; then the server is killed
		says      bool // the server does, at its start
	}{
		{"get", "on: all\n", true, false, false},
		{"off", "", false, true, false},
		{"get", "off\n", false, false, true},
		{"get", "off\n", false, false, true},
		{"on", "", true, true, true},
		{"get", "on: all\n", true, false, false},
	} {
		out, words := speculation(t, s, other, step.verb)
		if out != step.out || !strings.Contains(words, s.URL) {
			t.Errorf("%d, %s: %q, %q", i, step.verb, out, words)
		}
		answer, body := invokeAhead(t, client(t, s), "both", "all", `{}`)
		if ahead := answer.Header.Get("X-Forerun-Speculation") != ""; ahead != step.on {
			t.Errorf("%d, %s: anything may run ahead: %v (%d %s)", i, step.verb, ahead, answer.StatusCode, body)
		}
		if says := strings.Contains(s.Log(), off+filepath.Join(o.Data, "operator")); says != step.says {
			t.Errorf("%d: the server says that nothing runs ahead: %v", i, says)
		}
		if step.kill {
			s.Kill()
		} else if err := s.Stop(); err != nil {
			t.Error(err)
		}
		s = start(t, o)
	}
}
