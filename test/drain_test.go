package test

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// waiting tells over its door to the state that it runs, and waits there until it is told to go on.
const waiting = `
import socket

def main(args):
    s = socket.create_connection(('127.0.0.1', 6379))
    s.sendall(b'RPUSH began 1\r\nBLPOP go 0\r\n')
    seen = b''
    while b'go' not in seen:
        seen += s.recv(100)
    return {'went': 'on'}
`

// outside is a client of the state of a server's first tenant.
func outside(t *testing.T, s *server.Server) *redis.Client {
	t.Helper()
	user, key, _ := strings.Cut(s.Auth, ":")
	c := redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: key, ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	return c
}

// TestDraining: a server that was told to end answers what it had begun, and others that they shall come back.
func TestDraining(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	c, state := client(t, s), outside(t, s)
	putPython(t, c, map[string]string{"waiting": waiting})
	var began struct{ ActivationID string }
	ended := make(chan error, 1)
	var result map[string]string
	go func() { ended <- c.Result(t.Context(), "waiting", nil, &result) }()
	if err := state.BLPop(t.Context(), 0, "began").Err(); err != nil {
		t.Fatal(err)
	}
	if status, body, err := c.Do(t.Context(), http.MethodPost, "actions/waiting", nil); status != http.StatusAccepted {
		t.Fatalf("%d %s %v", status, body, err)
	} else {
		decode(t, body, &began)
	}
	if err := state.BLPop(t.Context(), 0, "began").Err(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	mustShutOut(t, c)
	if err := state.RPush(t.Context(), "go", 1, 2).Err(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || result["went"] != "on" {
		t.Errorf("what was under way ended with %v, %v", result, err)
	}
	<-s.Exited()
	if log := s.Log(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
		t.Errorf("it said %s", log)
	}
	again := start(t, server.Options{Data: s.Options.Data})
	equalJSON(t, stored(t, client(t, again), began.ActivationID).Response.Result, `{"went":"on"}`)
}

// TestNobodyReadsItsLog: a server whose log nobody reads any more, as who did has ended at the same Ctrl-C, answers what it had begun.
func TestNobodyReadsItsLog(t *testing.T) {
	t.Parallel()
	log, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--data", data)
	cmd.Stderr = end
	if err := errors.Join(cmd.Start(), end.Close()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()                                                              // it has ended by itself if the test goes well
	for lines := bufio.NewScanner(log); lines.Scan() && !strings.HasPrefix(lines.Text(), "  actions: "); { // the last that it says as it is ready
	}
	log.Close()
	c := ownerOf(t, data)
	putPython(t, c, map[string]string{"slow": "import time\n\ndef main(args):\n    time.sleep(1)\n    return {'went': 'on'}\n"})
	answered := make(chan error, 1)
	var result map[string]string
	go func() { answered <- c.Result(t.Context(), "slow", nil, &result) }()
	eventually(t, func() bool { return gauge(t, &server.Server{URL: c.URL}, "forerun_sandboxes_busy") == "1" })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil || result["went"] != "on" {
		t.Errorf("what was under way ended with %v, %v", result, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// ownerOf is a client with the key in a data folder.
func ownerOf(t *testing.T, data string) *server.Client {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "wskprops"))
	if err != nil {
		t.Fatal(err)
	}
	c := &server.Client{HTTP: new(http.Client)}
	for line := range strings.Lines(string(text)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "APIHOST":
			c.URL = value
		case "AUTH":
			c.Auth = value
		}
	}
	t.Cleanup(c.Close)
	return c
}

// TestStoppedTwice: a server that is told a second time to stop gives up what it had begun, with records and an answer, and leaves nothing.
func TestStoppedTwice(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	c, state := client(t, s), outside(t, s)
	putPython(t, c, map[string]string{"waiting": waiting})
	answered := make(chan []byte, 1)
	go func() {
		_, body, _ := c.Do(t.Context(), http.MethodPost, "actions/waiting?blocking=true", nil) // without an answer it is no JSON
		answered <- body
	}()
	if err := state.BLPop(t.Context(), 0, "began").Err(); err != nil {
		t.Fatal(err)
	}
	f := newFootprint(s.Options.Data)
	f.observe(s.PID())
	if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	mustShutOut(t, c)
	var exit *exec.ExitError
	if err := s.Stop(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(s.Log(), "told to stop a second time") {
		t.Errorf("it ended with %v: %s", err, s.Log())
	}
	f.mustVanish(t)
	var record server.Record
	decode(t, <-answered, &record)
	again := start(t, server.Options{Data: s.Options.Data})
	equalJSON(t, stored(t, client(t, again), record.ActivationID).Response.Result, string(record.Response.Result))
	if !strings.Contains(string(record.Response.Result), "shut down") {
		t.Errorf("who waited was answered %s", record.Response.Result)
	}
}

// mustShutOut asks until it is refused, and looks at how.
func mustShutOut(t *testing.T, c *server.Client) {
	t.Helper()
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/api/v1", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.HTTP.Do(r)
		if err != nil {
			t.Fatalf("while it ends the server answers %v", err)
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			continue // the signal has not come yet
		}
		if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Errorf("while it ends the server answers %d %v", answer.StatusCode, answer.Header)
		}
		return
	}
}
