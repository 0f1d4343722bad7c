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
	const settings = "all; depth=32; band=0.1; least=1ms; load=any\n"
	const isOn, isOff = "in effect: " + settings + "switch: on\n--speculate: " + settings, "in effect: off\nswitch: off\n--speculate: " + settings
	const off = "speculation is off because the operator has switched it off; to switch it on: forerun speculation on --operator "
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
		{"get", isOn, true, false, false},
		{"off", "", false, true, false},
		{"get", isOff, false, false, true},
		{"get", isOff, false, false, true},
		{"on", "", true, true, true},
		{"get", isOn, true, false, false},
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

// TestSwitchBehindTheFlag: on a server that was started with --speculate off the switch can be set, and is kept, and nothing runs ahead either
// way. Both are told.
func TestSwitchBehindTheFlag(t *testing.T) {
	t.Parallel()
	o := server.Options{Data: filepath.Join(t.TempDir(), "data"), Args: []string{"--speculate", "off"}}
	const settings = "--speculate: off; depth=32; band=0.1; least=1ms\n"
	s := start(t, o)
	for _, step := range []struct{ verb, out, words string }{
		{"off", "", "ok: turned off the switch of the server "},
		{"get", "in effect: off\nswitch: off\n" + settings, "until it is started with another --speculate, and `forerun speculation on`"},
	} {
		if out, words := speculation(t, s, s, step.verb); out != step.out || !strings.Contains(words, step.words) {
			t.Errorf("%s: %q, %q", step.verb, out, words)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	s = start(t, o)
	for _, step := range []struct{ verb, out, words string }{
		{"on", "", "speculation stays off, since the server was started with --speculate off: start it with --speculate all"},
		{"get", "in effect: off\nswitch: on\n" + settings, "until it is started with another --speculate:"},
	} {
		if out, words := speculation(t, s, s, step.verb); out != step.out || !strings.Contains(words, step.words) {
			t.Errorf("%s: %q, %q", step.verb, out, words)
		}
	}
	if err := s.Stop(); err != nil { // it answers before it has said all
		t.Error(err)
	}
	const said = "speculation is off because the operator has switched it off; to switch it on: another --speculate than off, and forerun speculation on --operator "
	if !strings.Contains(s.Log(), said+filepath.Join(o.Data, "operator")) {
		t.Errorf("the server says %s", s.Log())
	}
}
