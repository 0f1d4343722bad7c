package test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestNodeClients runs the tests in node/, which use the npm clients as they are, each file against a server of its own.
func TestNodeClients(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed; make test installs it")
	}
	if _, err := os.Stat("../node_modules/openwhisk"); err != nil {
		t.Skip("the npm clients are not installed; make test installs them")
	}
	files, err := filepath.Glob("node/*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in node/: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".test.js"), func(t *testing.T) {
			t.Parallel()
			runNode(t, file)
		})
	}
}

// redisURL is where Redis clients find the server, with the key.
func redisURL(s *server.Server) string { return "redis://" + s.Auth + "@" + s.Redis }

// TestRedisPy runs the scenarios of redis-py, the one that functions have at hand.
func TestRedisPy(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; make test installs it")
	}
	const packages = "../bin/runtimes/python/packages"
	if _, err := os.Stat(packages + "/redis"); err != nil {
		t.Skip("redis-py is not installed; make build installs it")
	}
	s := start(t, server.Options{Redis: true})
	cmd := exec.CommandContext(t.Context(), python, "-B", "python/test_redis.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "REDIS_URL="+redisURL(s))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("redis-py: %v\n%s", err, out)
	}
}

// tapLine is how node reports a test: "ok 1 - name".
var tapLine = regexp.MustCompile(`^(not )?ok \d+ - (.*?)( # (SKIP|TODO).*)?$`)

func runNode(t *testing.T, file string) {
	s := start(t, server.Options{Redis: true})
	reportNode(t, file, "WSK_CONFIG_FILE="+s.Props(), "FORERUN="+binary, "REDIS_URL="+redisURL(s))
}

// reportNode runs a file of tests, each of which becomes a test here.
func reportNode(t *testing.T, file string, env ...string) {
	cmd := exec.CommandContext(t.Context(), "node", "--test-reporter=tap", file)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	var tests, failed int
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := tapLine.FindStringSubmatch(lines.Text()); m != nil {
			tests++
			t.Run(m[2], func(t *testing.T) {
				if m[1] != "" {
					failed++
					t.Error("failed; node's report is below")
				}
			})
		}
	}
	if err != nil || failed > 0 || tests == 0 {
		t.Errorf("node ran %d tests (%v):\n%s", tests, err, out)
	}
}
