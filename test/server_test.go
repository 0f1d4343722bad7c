package test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestFirstStartMakesATenant looks at what a first start leaves for clients, and that a second one keeps it.
func TestFirstStartMakesATenant(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	first := start(t, server.Options{Data: data})
	info, err := os.Stat(first.Props())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("wskprops: %v, %v", info, err)
	}
	eventually(t, func() bool { return strings.Contains(first.Log(), "wskprops") }) // it says how to use it
	c := client(t, first)
	putPython(t, c, map[string]string{"kept": "def main(args):\n    return {'kept': True}\n"})
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, server.Options{Data: data})
	if second.Auth != first.Auth {
		t.Error("the second start made another key")
	}
	equalJSON(t, invoke(t, client(t, second), "kept", nil).Response.Result, `{"kept":true}`)
}

// TestSecondServerOnTheSameDataStops starts one beside a running one.
func TestSecondServerOnTheSameDataStops(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	out, err := exec.CommandContext(t.Context(), binary, "serve", "--listen", "127.0.0.1:0", "--data", s.Options.Data).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the second server ended with %v: %s", err, out)
	}
	for _, want := range []string{s.Options.Data, strconv.Itoa(s.PID()), "--data"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the second server does not name %q: %s", want, out)
		}
	}
	if _, err := client(t, s).Invoke(t.Context(), "none", nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the first server does not serve any more: %v", err)
	}
}

// TestCPUProfile has a server leave a profile where it can, and names a folder that is not there.
func TestCPUProfile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := start(t, server.Options{Args: []string{"--cpu-profile", folder}})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(folder, "*.pprof"))
	if err != nil || len(left) != 1 {
		t.Fatalf("it left %v, %v", left, err)
	}
	profile, err := os.ReadFile(left[0])
	if gzip := []byte{0x1f, 0x8b}; err != nil || !bytes.HasPrefix(profile, gzip) {
		t.Errorf("no profile, but %.20q, %v", profile, err)
	}
	missing := filepath.Join(folder, "missing")
	out, err := exec.CommandContext(t.Context(), binary, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"), "--cpu-profile", missing).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "--cpu-profile") || !strings.Contains(string(out), missing) {
		t.Errorf("it ended with %v: %s", err, out)
	}
}

// TestHealthAndMetrics asks the two pages that need no key.
func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	for path, want := range map[string]string{"/healthz": "", "/metrics": "go_goroutines"} {
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s answered %d without %q (%v)", path, resp.StatusCode, want, err)
		}
	}
}

// TestMetricsAreDocumented: api.md, speculation.md and cache.md of docs/reference name what there is, and nothing else.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"hello": "def main(args):\n    return {}\n"})
	invoke(t, c, "hello", nil) // for those with a status
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, text := send(t, r)
	served, documented := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (forerun_\w+)`).FindAllStringSubmatch(text, -1) {
		served[m[1]] = true
	}
	for _, file := range []string{"api.md", "speculation.md", "cache.md"} {
		page, err := os.ReadFile(filepath.Join("..", "docs", "reference", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`(forerun_\\w+)(?:\\{([a-z,]+)\\}(\\w*))?`").FindAllStringSubmatch(string(page), -1) {
			if strings.HasSuffix(m[1], "_") { // one name for each of the words
				for _, word := range strings.Split(m[2], ",") {
					documented[m[1]+word+m[3]] = true
				}
				continue
			}
			documented[m[1]] = true // the words are labels
		}
	}
	if !maps.Equal(served, documented) {
		t.Errorf("served: %q\ndocumented: %q", slices.Sorted(maps.Keys(served)), slices.Sorted(maps.Keys(documented)))
	}
}

// TestEndLeavesNothing ends a server that has sandboxes, as a service manager does.
func TestEndLeavesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"hello": "def main(args):\n    return {}\n"})
	invoke(t, c, "hello", nil)
	f := newFootprint(s.Options.Data)
	f.observe(s.PID())
	if len(f.processes) < 3 {
		t.Fatalf("the server has only the processes %v: is there no sandbox?", f.processes)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	f.mustVanish(t)
}

// nobody is a user without any right.
const nobody = 65534

// TestOrdinaryUser starts the server as a user without rights.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("these tests run as an ordinary user already")
	}
	home, err := os.MkdirTemp("", "forerun-nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Options{Data: filepath.Join(home, "data"), User: nobody})
	c := client(t, s)
	putPython(t, c, map[string]string{"who": "import os\n\ndef main(args):\n    print('here')\n    return {'pid': os.getpid() > 1, 'args': args}\n"})
	r := invoke(t, c, "who", map[string]int{"x": 1})
	equalJSON(t, r.Response.Result, `{"pid":true,"args":{"x":1}}`)
	if !strings.Contains(strings.ToLower(s.Log()), "not enforced") {
		t.Errorf("the start does not say what is not enforced: %s", s.Log())
	}
	f := newFootprint(s.Options.Data)
	f.observe(s.PID())
	s.Kill()
	f.mustVanish(t)
}

// TestRootDropsPrivileges looks at the user of the process that serves.
func TestRootDropsPrivileges(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("these tests do not run as root")
	}
	s := start(t, server.Options{})
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.PID()) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(value)
		bad := false
		switch name {
		case "Uid", "Gid":
			bad = strings.Contains(" "+strings.Join(fields, " ")+" ", " 0 ")
		case "CapEff", "CapPrm", "CapAmb":
			bad = strings.Trim(fields[0], "0") != ""
		case "Groups":
			bad = len(fields) > 0
		case "NoNewPrivs":
			bad = fields[0] != "1"
		}
		if bad {
			t.Errorf("the process that serves has %s", strings.TrimSpace(line))
		}
	}
}
