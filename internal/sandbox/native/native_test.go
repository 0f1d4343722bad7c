package native

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
)

// The test binary is also the helper and the first stage.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "sandbox-helper":
			os.Exit(HelperMain(HelperFD))
		case "sandbox-init":
			os.Exit(InitMain())
		}
	}
	os.Exit(m.Run())
}

func newMaker(t *testing.T, o sandboxtest.Options) sandbox.Maker {
	t.Helper()
	m, err := StartHelper(Config{DataDir: t.TempDir(), BindRoots: o.BindRoots, Egress: o.Egress})
	if err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	return m
}

func TestSuite(t *testing.T) { sandboxtest.Run(t, newMaker) }

// TestSuiteAsOrdinaryUser runs the suite again without root.
func TestSuiteAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("TestSuite runs as an ordinary user already")
	}
	const ordinary = 54321
	folder, err := os.MkdirTemp("", "ordinary")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chown(folder, ordinary, ordinary); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestSuite$", "-test.v", "-test.timeout=120s")
	cmd.Dir, cmd.Env = folder, []string{"TMPDIR=" + folder, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "---") || strings.Contains(line, "not enforced") || strings.Contains(line, "no sandbox") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
}
