package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// TestWeightOfWhatRunsAhead: a sandbox that is held weighs little, and what it did before from its release on, in place.
func TestWeightOfWhatRunsAhead(t *testing.T) {
	t.Run("v1", func(t *testing.T) { weighsLittle(t, "cpu", "cpu.shares", "256", "102", "409") })
	t.Run("v2", func(t *testing.T) { weighsLittle(t, "", "cpu.weight", "25", "10", "40") })
}

func weighsLittle(t *testing.T, hierarchy, file, held, little, usual string) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, file), []byte("1024\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := (&group{folders: map[string]string{hierarchy: folder}, v2: map[string]bool{"cpu": true}}).openWeight()
	if err != nil {
		t.Fatal(err)
	}
	o := outlet{gate: new(guard.Switch), weight: weight{file: opened, shares: hierarchy == "cpu"}, usual: 100}
	defer o.close()
	weighs := func(what, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(folder, file)); err != nil || firstLine(got) != want {
			t.Errorf("%s, it weighs %q (%v); want %s", what, got, err, want)
		}
	}
	for range 2 {
		if _, err := o.shut(); err != nil {
			t.Fatal(err)
		}
		weighs("held", held)
	}
	if err := o.weigh(40); err != nil {
		t.Fatal(err)
	}
	weighs("limited while it is held", little)
	if err := o.hurry(); err != nil {
		t.Fatal(err)
	}
	weighs("about to be killed", usual)
	if _, err := o.shut(); err != nil {
		t.Fatal(err)
	}
	weighs("held again", little)
	if _, err := o.lift(); err != nil {
		t.Fatal(err)
	}
	weighs("released", usual)
}

// TestKernelWeighsWhatRunsAhead: the weight is that of the group that the kernel has the sandbox's processes in.
func TestKernelWeighsWhatRunsAhead(t *testing.T) {
	m := startHelper(t, Config{})
	s := startSleeper(t, m, "weighed")
	file := weightOf(t, sandboxed(m)[0])
	weighs := func(when string, want float64) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := strconv.ParseFloat(firstLine(text), 64); err != nil || got != want {
			t.Errorf("%s, it weighs %q (%v); want %g", when, text, err, want)
		}
	}
	usual := map[string]float64{"cpu.shares": 1024, "cpu.weight": 100}[filepath.Base(file)]
	weighs("started", usual)
	if _, err := s.Hold(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	weighs("held", usual/4)
	if _, err := s.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	weighs("released", usual)
}

// weightOf is the file with the weight of a process.
func weightOf(t *testing.T, pid int) string {
	t.Helper()
	lines, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) { // 4:cpu,cpuacct:/forerun/..., 0::/forerun/...
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		hierarchy, name := "", "cpu.weight"
		if slices.Contains(strings.Split(fields[1], ","), "cpu") {
			hierarchy, name = "cpu", "cpu.shares"
		} else if fields[1] != "" {
			continue
		}
		file := filepath.Join(cgroupMounts()[hierarchy], fields[2], name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	t.Skip("this machine lets no sandbox have a weight")
	return ""
}

// TestHoldOfALauncher: of a sandbox whose initializer only launches the helper is not asked what its processes share.
func TestHoldOfALauncher(t *testing.T) {
	m := startHelper(t, Config{})
	for launcher, asked := range map[bool]uint64{true: 0, false: 1} {
		spec := sleeper(fmt.Sprintf("launcher-%t", launcher))
		spec.Launcher = launcher
		s, err := m.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		before := m.next
		if held, err := s.Hold(t.Context(), nil); err != nil || held != (sandbox.Held{}) || m.next != before+asked {
			t.Errorf("of a launcher, %t: %+v, %v; %d requests, want %d", launcher, held, err, m.next-before, asked)
		}
	}
}

// TestWritable: a file that was closed before it could be looked at is nobody's any more.
func TestWritable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for name, c := range map[string]struct {
		flags  int
		closed bool
		want   bool
	}{
		"to be written":         {flags: os.O_CREATE | os.O_WRONLY, want: true},
		"to be read":            {flags: os.O_CREATE | os.O_RDONLY},
		"closed, to be written": {flags: os.O_CREATE | os.O_WRONLY, closed: true},
	} {
		f, err := os.OpenFile(path, c.flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fd := int(f.Fd())
		if c.closed {
			_ = f.Close()
		}
		if got := writable(os.Getpid(), fd); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		_ = f.Close()
	}
}
