package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
)

// The test binary is also the helper and the first stage.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "sandbox-helper":
			if len(os.Args) > 2 {
				limitDescriptors(os.Args[2])
			}
			os.Exit(HelperMain(HelperFD))
		case "sandbox-init":
			os.Exit(InitMain())
		}
	}
	if code, done := sandboxtest.InNetwork(); done {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func newMaker(t *testing.T, o sandboxtest.Options) sandbox.Maker {
	t.Helper()
	c := Config{DataDir: t.TempDir(), BindRoots: o.BindRoots, Policy: guard.Policy{Allowed: o.Egress}}
	if o.Names.IsValid() {
		c.ResolvConf = sandboxtest.ResolvConf(t, o.Names)
	}
	m, err := StartHelper(c)
	if err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	return m
}

func TestSuite(t *testing.T) { sandboxtest.Run(t, newMaker) }

// TestSuiteAsOrdinaryUser runs the suite again without root.
func TestSuiteAsOrdinaryUser(t *testing.T) { runAsOrdinary(t, nil) }

// TestSuiteInDelegatedCgroup runs the suite as an ordinary user with a folder of the v2 hierarchy, as systemd gives it to a service.
func TestSuiteInDelegatedCgroup(t *testing.T) {
	mount, ok := cgroupMounts()[""]
	if !ok || os.Geteuid() != 0 {
		t.Skip("only root can delegate a folder of a v2 hierarchy, where there is one")
	}
	folder, err := os.MkdirTemp(mount, "delegated")
	if err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	t.Cleanup(func() {
		for _, path := range append(glob(folder, "*"), folder) {
			if err := removeGroup(path); err != nil {
				t.Errorf("the suite has left a process in its cgroup: %v", err)
			}
		}
	})
	for _, path := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if err := os.Chown(filepath.Join(folder, path), ordinaryUser, ordinaryUser); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	runAsOrdinary(t, dir)
}

const ordinaryUser = 54321

// runAsOrdinary runs TestSuite in a process of an ordinary user, born in cgroup if that is not nil.
func runAsOrdinary(t *testing.T, cgroup *os.File) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("TestSuite runs as an ordinary user already")
	}
	folder, err := os.MkdirTemp("", "ordinary")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chown(folder, ordinaryUser, ordinaryUser); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestSuite$", "-test.v", "-test.timeout=20m")
	cmd.Dir, cmd.Env = folder, []string{"TMPDIR=" + folder, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	if cgroup != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(cgroup.Fd())
	}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if err != nil { // what passed would hide what failed
			if !strings.HasPrefix(line, "=== ") && !strings.Contains(line, "--- PASS") {
				t.Error(strings.TrimRight(line, "\n"))
			}
		} else if strings.Contains(line, "---") || strings.Contains(line, "not enforced") || strings.Contains(line, "no sandbox") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
