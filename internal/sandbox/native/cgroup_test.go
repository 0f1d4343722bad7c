package native

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestReadMountLine(t *testing.T) {
	mounts := map[string]string{}
	for line := range strings.Lines(`35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw shared:4 master:2 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
nonsense - x
`) {
		readMountLine(line, mounts)
	}
	want := map[string]string{"memory": "/sys/fs/cgroup/memory", "cpu": "/sys/fs/cgroup/cpu,cpuacct", "": "/sys/fs/cgroup/unified"}
	if !reflect.DeepEqual(mounts, want) {
		t.Errorf("%v; want %v", mounts, want)
	}
}

// TestUnifiedLimits builds, in a plain folder, the files of a machine with only the v2 hierarchy.
func TestUnifiedLimits(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte("cpuset cpu io memory pids\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cgroups{instance: "i-1", weight: 400, roots: map[string]string{}, v2: map[string]bool{}}
	reasons := map[string]string{"memory": "no v1", "pids": "no v1", "cpu": "no v1"}
	c.openUnified(root, "i-", reasons)
	if len(reasons) > 0 || !c.limits("memory") || !c.limits("pids") || !c.limits("cpu") {
		t.Fatalf("limits %v, reasons %v", c.v2, reasons)
	}
	for _, folder := range []string{root, filepath.Join(root, "forerun"), filepath.Join(root, "forerun", "i-1")} {
		if b, _ := os.ReadFile(filepath.Join(folder, "cgroup.subtree_control")); string(b) == "" {
			t.Errorf("the controllers are not passed on by %s", folder)
		}
	}
	for _, folder := range []string{"forerun", "forerun/i-1"} {
		if b, err := os.ReadFile(filepath.Join(root, folder, "cpu.weight")); err != nil || string(b) != "400" {
			t.Errorf("%s has the weight %q, %v; want 400", folder, b, err)
		}
	}
	folder := filepath.Join(root, "forerun", "i-1", "box")
	g := &group{folders: map[string]string{}, v2: c.v2}
	// The kernel would have made the list of processes.
	if err := c.fillUnified(g, "box", startRequest{memoryMiB: 64, cpuWeight: 100, processes: 9}); !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "67108864", "memory.swap.max": "0", "pids.max": "9", "cpu.weight": "100"} {
		if b, err := os.ReadFile(filepath.Join(folder, file)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %s", file, b, err, want)
		}
	}
	if err := g.resize(128); err != nil {
		t.Fatal(err)
	}
	opened, err := g.openWeight()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := (weight{file: opened, shares: c.scaled()}).set(25); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "134217728", "cpu.weight": "25"} {
		if b, err := os.ReadFile(filepath.Join(folder, file)); err != nil || firstLine(b) != want {
			t.Errorf("%s: %q, %v; want %s", file, b, err, want)
		}
	}
	for file, text := range map[string]string{"memory.current": "4096\n", "memory.events": "low 0\noom 3\noom_kill 2\n", "cpu.stat": "usage_usec 1500\nuser_usec 1\n"} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := g.openMeters()
	if err != nil {
		t.Fatal(err)
	}
	m := newMeters(files)
	defer m.close()
	b := &serverSandbox{meters: m}
	if bytes, err := b.Memory(); err != nil || bytes != 4096 {
		t.Errorf("%d bytes, %v", bytes, err)
	}
	if kills, err := b.OOMKills(); err != nil || kills != 2 {
		t.Errorf("%d processes were killed, %v", kills, err)
	}
	if d, err := m.spent(); err != nil || d.Microseconds() != 1500 {
		t.Errorf("%v, %v", d, err)
	}
}

// TestLargestWeightCounts begins and ends instances in a plain folder. All weigh as much as the one with the largest weight.
func TestLargestWeightCounts(t *testing.T) {
	for name, form := range map[string]func(int) limit{"v1": v1Weight, "v2": v2Weight} {
		t.Run(name, func(t *testing.T) {
			root, file := t.TempDir(), form(0).file
			for _, step := range []struct {
				instance     string
				weight, want int // the instance begins with weight, or ends if that is 0
			}{{"i-1", 100, 100}, {"i-2", 3200, 3200}, {"i-3", 200, 3200}, {"i-2", 0, 200}, {"i-3", 0, 100}} {
				c := &cgroups{instance: step.instance, weight: step.weight, roots: map[string]string{}, v2: map[string]bool{"cpu": name == "v2"}}
				if name == "v1" {
					c.roots["cpu"] = root
				} else {
					c.unified = root
				}
				if step.weight > 0 {
					if err := errors.Join(c.claim(root, "none-"), c.weigh(root, form)); err != nil {
						t.Fatal(err)
					}
				} else {
					_ = os.Remove(filepath.Join(c.folder(root), file)) // the kernel's go with the folder
					c.close()
				}
				b, err := os.ReadFile(filepath.Join(root, "forerun", file))
				if err != nil || string(b) != form(step.want).value {
					t.Errorf("%s with %d: forerun/ weighs %s, %v; want %s", step.instance, step.weight, b, err, form(step.want).value)
				}
			}
		})
	}
}

// TestInstanceWeighs looks at the kernel's folders of a helper, beside which other servers of this machine may run.
func TestInstanceWeighs(t *testing.T) {
	mounts, dir := cgroupMounts(), t.TempDir()
	at, form := mounts["cpu"], v1Weight
	if at == "" {
		at, form = mounts[""], v2Weight
	}
	m := startHelper(t, Config{DataDir: dir, CPUWeight: 10_000})
	top := filepath.Join(at, "forerun")
	own := glob(top, instancePrefix(dir)+"*")
	if len(own) != 1 || readWeight(filepath.Join(own[0], form(0).file)) == 0 {
		t.Skip("the processors cannot be shared by weight here")
	}
	for _, folder := range []string{own[0], top} {
		if got := readWeight(filepath.Join(folder, form(0).file)); strconv.Itoa(got) != form(10_000).value {
			t.Errorf("%s weighs %d; want %s", folder, got, form(10_000).value)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	others := glob(top, "*")
	for _, other := range others {
		if strconv.Itoa(readWeight(filepath.Join(other, form(0).file))) == form(10_000).value {
			t.Skip("another instance has the largest weight")
		}
	}
	if got := readWeight(filepath.Join(top, form(0).file)); strconv.Itoa(got) == form(10_000).value {
		t.Errorf("forerun/ keeps the weight of an instance that has ended, beside %v", others)
	}
}

func TestMemoryGrowsAndShrinksInOrder(t *testing.T) {
	grow, shrink := v1Memory(128, true), v1Memory(64, false)
	if grow[0].file != "memory.memsw.limit_in_bytes" || shrink[0].file != "memory.limit_in_bytes" {
		t.Errorf("to grow: %v; to shrink: %v", grow, shrink)
	}
}

func TestReadPIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "procs")
	long := strings.Repeat("1234567\n", 2000)
	if err := os.WriteFile(path, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 2 {
		if pids, err := readPIDsOf(f); err != nil || len(pids) != 2000 || pids[1999] != 1234567 {
			t.Errorf("%d pids, %v", len(pids), err)
		}
	}
	if _, err := appendPIDs(nil, "1\nx\n"); err == nil {
		t.Error("a list with a word is read")
	}
	folder, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if pids, err := readPIDsOf(folder); err == nil {
		t.Errorf("a list that cannot be read holds %v", pids)
	}
}

// firstLine leaves out the rest of a longer old value, which a plain file keeps and a control file does not.
func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
