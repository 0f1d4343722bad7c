package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, test := range []struct {
		stamped string
		info    *debug.BuildInfo
		want    string
	}{
		{"0.1.0", nil, "0.1.0"},
		{"", nil, "0.1.0-dev"},
		{"", &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}, "0.1.0"},
		{"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "0.1.0-dev"},
		{"", &debug.BuildInfo{Settings: []debug.BuildSetting{revision}}, "0.1.0-dev+0123456789ab"},
		{"", &debug.BuildInfo{Settings: []debug.BuildSetting{revision, modified}}, "0.1.0-dev+0123456789ab.dirty"},
	} {
		if got := versionOf(test.stamped, "0.1.0", test.info); got != test.want {
			t.Errorf("%q %v: %s, not %s", test.stamped, test.info, got, test.want)
		}
	}
}

// TestVersionScript asks for the version of a tree with a commit, with changes, with a tag, and without a history.
func TestVersionScript(t *testing.T) {
	folder := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder),
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for from, to := range map[string]string{"../../tools/version.sh": "tools/version.sh", "VERSION": "cmd/forerun/VERSION"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(folder, to)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, to), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(pattern string) {
		t.Helper()
		if got := run("tools/version.sh"); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
			t.Errorf("the version is %q, not %s", got, pattern)
		}
	}
	want(`0\.1\.0-dev`)
	run("git", "init", "-q")
	run("git", "add", "-A")
	run("git", "commit", "-qm", "first")
	want(`0\.1\.0-dev\+[0-9a-f]{12}`)
	if err := os.WriteFile(filepath.Join(folder, "more"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	want(`0\.1\.0-dev\+[0-9a-f]{12}\.dirty`)
	run("git", "add", "-A")
	run("git", "commit", "-qm", "second")
	run("git", "tag", "v0.1.0")
	want(`0\.1\.0`)
	if err := os.Remove(filepath.Join(folder, "more")); err != nil {
		t.Fatal(err)
	}
	want(`0\.1\.0\+dirty`)
}
