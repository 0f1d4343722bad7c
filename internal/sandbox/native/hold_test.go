package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// TestWeightOfWhatRunsAhead: a held sandbox weighs little. From its release on it weighs the same as before, in place.
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

// TestKernelWeighsWhatRunsAhead: the weight is set on the group in which the kernel has the sandbox's processes.
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

// TestWhatRunsAheadGetsLess: of a processor that both want, a sandbox that is held gets a fifth, and as much as the other once it is
// released.
func TestWhatRunsAheadGetsLess(t *testing.T) {
	m := startHelper(t, Config{})
	_, head := startBurner(t, m, "head")
	held, ahead := startBurner(t, m, "ahead")
	weightOf(t, ahead) // there is one
	times := func() float64 {
		head0, ahead0 := ran(t, head), ran(t, ahead)
		for ran(t, head)-head0 < 200*time.Millisecond {
			time.Sleep(time.Millisecond)
		}
		return float64(ran(t, head)-head0) / float64(ran(t, ahead)-ahead0)
	}
	if _, err := held.Hold(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := times(); got < 2 {
		t.Errorf("what does not run ahead got %.1f times the processor time of what does; want 4", got)
	}
	if _, err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := times(); got > 2 {
		t.Errorf("released, it still gets %.1f times as much; want 1", got)
	}
}

// startBurner starts a sandbox whose process always wants the first of the processors.
func startBurner(t *testing.T, m *Maker, id string) (sandbox.Sandbox, int) {
	t.Helper()
	before := sandboxed(m)
	spec := sleeper(id)
	spec.Argv = []string{"/bin/sh", "-c", "while :; do :; done"}
	s, err := m.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	pid := slices.DeleteFunc(sandboxed(m), func(pid int) bool { return slices.Contains(before, pid) })[0]
	var all, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !all.IsSet(cpu) {
		cpu++
	}
	first.Set(cpu)
	if err := unix.SchedSetaffinity(pid, &first); err != nil {
		t.Fatal(err)
	}
	return s, pid
}

// ran is how long a process has had a processor.
func ran(t *testing.T, pid int) time.Duration {
	t.Helper()
	var d time.Duration
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err == nil {
		_, err = fmt.Sscan(string(text), &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
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

// TestHoldOfALauncher: the helper is not asked what processes share if the sandbox's initializer only launches others.
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

// TestWritable: a file that was closed before the look belongs to no process any more.
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
