package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/sandbox/sandboxtest"
	"forerun.dev/forerun/test/server"
)

// binary is the server under test, built once for all tests: TestMain sets it before the first.
var binary string

func TestMain(m *testing.M) {
	if code, done := sandboxtest.InNetwork(); done {
		os.Exit(code)
	}
	folder, code := os.TempDir(), 1
	defer func() { os.Exit(code) }()
	folder, err := os.MkdirTemp(folder, "forerun-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.RemoveAll(folder)
	if err := build(folder); err != nil {
		fmt.Fprintln(os.Stderr, "the server could not be built:", err)
		return
	}
	// Many servers run at once. With a processor's weight each, their functions would starve the clients, which are this process.
	if err := os.Setenv("FORERUN_CPU_WEIGHT", "100"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	code = m.Run()
}

// build makes folder/forerun, where any user can execute it, and beside it the packages that `make build` installed.
func build(folder string) error {
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	binary = filepath.Join(folder, "forerun")
	cmd := exec.Command("go", "build", "-trimpath", "-o", binary, "../cmd/forerun")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	packages, err := filepath.Abs("../bin/runtimes")
	if err != nil {
		return err
	}
	return os.Symlink(packages, filepath.Join(folder, "runtimes"))
}

// start starts a server on new data, which ends with the test.
func start(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	if o.Binary == "" {
		o.Binary = binary
	}
	if o.Data == "" {
		o.Data = filepath.Join(t.TempDir(), "data")
	}
	s, err := server.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-s.Exited(): // the test ended it
		default:
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		}
		if strings.Contains(s.Log(), "could not be removed") {
			t.Error("the server has not removed a sandbox")
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", s.Log())
		}
	})
	return s
}

// client is a client of a server, for the length of the test.
func client(t *testing.T, s *server.Server) *server.Client {
	t.Helper()
	c := s.Client(32)
	t.Cleanup(c.Close)
	return c
}

// putPython deploys actions by name.
func putPython(t *testing.T, c *server.Client, actions map[string]string) {
	t.Helper()
	for name, code := range actions {
		if err := c.PutPython(context.WithoutCancel(t.Context()), name, code); err != nil {
			t.Fatal(err)
		}
	}
}

// putRightful puts a Python action that may do at the API what its tenant may.
func putRightful(t *testing.T, c *server.Client, name, code string) {
	t.Helper()
	put(t, c, name, map[string]any{
		"exec":        map[string]any{"kind": "python:3", "code": code},
		"annotations": []any{map[string]any{"key": "provide-api-key", "value": true}},
	})
}

// invoke invokes an action and returns its record.
func invoke(t *testing.T, c *server.Client, name string, params any) *server.Record {
	t.Helper()
	r, err := c.Invoke(t.Context(), name, params)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stored fetches the record of an activation from the log.
func stored(t *testing.T, c *server.Client, id string) *server.Record {
	t.Helper()
	r, err := c.Activation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// decode reads JSON.
func decode(t *testing.T, data json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
}
