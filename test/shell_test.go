package test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// shell types commands, in a home and a folder of its own.
type shell struct {
	home, folder string
	env          []string // beside PATH and HOME
}

// typed is what came of a command.
type typed struct {
	code           int
	stdout, stderr string
}

// newShell has the settings of a server in its home.
func newShell(t *testing.T, s *server.Server) *shell {
	t.Helper()
	sh := &shell{home: t.TempDir(), folder: t.TempDir()}
	if s != nil {
		props, err := os.ReadFile(s.Props())
		if err != nil {
			t.Fatal(err)
		}
		sh.write(t, sh.home, map[string]string{".wskprops": string(props)})
	}
	return sh
}

// save writes files of the shell's folder.
func (sh *shell) save(t *testing.T, files map[string]string) {
	t.Helper()
	sh.write(t, sh.folder, files)
}

func (sh *shell) write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// command is a command line of forerun, not started yet.
func (sh *shell) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, words(line)...)
	cmd.Dir = sh.folder
	cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + sh.home, "TZ=UTC"}, goCaches(), sh.env)
	return cmd
}

// goCaches are the settings that let a shell use the caches of Go of the user who runs the tests. Its own home has none, and
// each build there would compile the standard library first.
var goCaches = sync.OnceValue(func() (settings []string) {
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		if value, err := exec.Command("go", "env", name).Output(); err == nil {
			settings = append(settings, name+"="+strings.TrimSpace(string(value)))
		}
	}
	return settings
})

// run types a command line and waits for its end.
func (sh *shell) run(t *testing.T, line string) typed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := sh.command(ctx, line)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Stdin = strings.NewReader("")
	if err := cmd.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatal(err)
		}
	}
	return typed{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// words takes a line apart at its spaces; what is between single quotes stays together.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// step is a command line and what must come of it.
type step struct {
	line   string
	code   int
	stdout string // all of it after "=" or if it is empty; else a part
	stderr string // a part
}

// follow types steps, one after the other; the first that goes wrong ends the test.
func (sh *shell) follow(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		got := sh.run(t, s.line)
		if got.code != s.code || !s.shows(got.stdout) || !strings.Contains(got.stderr, s.stderr) {
			t.Fatalf("forerun %s\nended with %d, stdout %q, stderr %q\nwant       %d, stdout %q, stderr %q",
				s.line, got.code, got.stdout, got.stderr, s.code, s.stdout, s.stderr)
		}
	}
}

func (s *step) shows(stdout string) bool {
	if want, whole := strings.CutPrefix(s.stdout, "="); whole || want == "" {
		return stdout == want
	}
	return strings.Contains(stdout, s.stdout)
}

// running is a command that goes on until it is interrupted.
type running struct {
	cmd   *exec.Cmd
	lines chan string // what it writes to stdout and stderr
}

// begin starts a command line. It may take five minutes.
func (sh *shell) begin(t *testing.T, line string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	r := &running{cmd: sh.command(ctx, line), lines: make(chan string)}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdout, r.cmd.Stderr = out, out
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	go func() {
		defer close(r.lines)
		defer in.Close()
		text := bufio.NewScanner(in)
		text.Buffer(nil, 16<<20)
		for text.Scan() {
			select {
			case r.lines <- text.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return r
}

// await reads until each of the texts has stood in a line, in any order: logs come when they are there.
func (r *running) await(t *testing.T, texts ...string) {
	t.Helper()
	missing := make(map[string]bool)
	for _, text := range texts {
		missing[text] = true
	}
	var seen []string
	for line := range r.lines {
		seen = append(seen, line)
		for text := range missing {
			if strings.Contains(line, text) {
				delete(missing, text)
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	t.Fatalf("it ended, or took too long, without %v; it wrote:\n%s", missing, strings.Join(seen, "\n"))
}

// interrupt is Ctrl-C; it returns the exit code.
func (r *running) interrupt(t *testing.T) int {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for range r.lines { // what it still writes
	}
	_ = r.cmd.Wait() // it is the code that counts
	return r.cmd.ProcessState.ExitCode()
}
