package test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	offloadJar   = "../bin/runtimes/offload/forerun-offload.jar"
	offloadTests = "../bin/offload-build/test-classes"
)

// needOffload skips a test on a machine without a JDK, or where `make test` has not built the offload agent.
func needOffload(t *testing.T) {
	t.Helper()
	needJava(t)
	if _, err := os.Stat(offloadJar); err != nil {
		t.Skip("the offload agent is not built; make test builds it")
	}
}

// javas are the machine's Java programs by the versions that their homes name.
func javas(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	paths, err := filepath.Glob("/usr/lib/jvm/*/bin/java")
	if err != nil {
		t.Fatal(err)
	}
	if path, err := exec.LookPath("java"); err == nil {
		paths = append(paths, path)
	}
	for _, path := range paths {
		out, err := exec.Command(path, "-version").CombinedOutput()
		if _, rest, ok := strings.Cut(string(out), `version "`); err == nil && ok {
			version, _, _ := strings.Cut(rest, ".")
			found[version] = path
		}
	}
	return found
}

// TestOffloadPair runs a server and a function of the offload agent in one JVM, on each Java of the machine.
//
//   - Calls have the results and states that they have without it.
//   - A call that is not supported runs on the server, with the reason.
//   - Two threads of the application and two instances of its function lose no change of each other.
//   - A shadow changes nothing, and mode auto offloads what shadows have shown to be equal, while other calls run.
//   - Changed bytes do no harm.
//   - A function that is lost at any point leaves no effect twice.
//   - A silent gateway holds up one call at most.
func TestOffloadPair(t *testing.T) {
	needOffload(t)
	for version, java := range javas(t) {
		for _, program := range [][]string{{"sample.Pair"}, {"sample.Crowd"}, {"sample.Auto"}, {"sample.Fuzz"}, {"sample.Lost"}, {"sample.Vectors", "../offload/PROTOCOL.md"}, {"dev.forerun.offload.agent.Bounds"}} {
			t.Run(version+"/"+program[0], func(t *testing.T) {
				arguments := append([]string{
					"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
					"-cp", offloadJar + ":" + offloadTests,
				}, program...)
				out, err := exec.Command(java, arguments...).CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s", err, failures(out))
				}
				if passed := bytes.Count(out, []byte("ok ")); program[0] == "sample.Pair" && passed < 84 {
					t.Errorf("%d roots were compared, want 84", passed)
				}
			})
		}
	}
}

// failures are the lines of an output that tell what failed.
func failures(out []byte) string {
	var kept strings.Builder
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "ok ") && !strings.HasPrefix(line, "# ") {
			kept.WriteString(line + "\n")
		}
	}
	return kept.String()
}
