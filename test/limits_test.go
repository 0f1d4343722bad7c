package test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// TestLimitsThatAreSet sets every limit of docs/reference/limits.md to less than usual, and goes beyond each.
func TestLimitsThatAreSet(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{Args: []string{
		"--max-timeout", "1m", "--max-memory", "256", "--max-payload", "1", "--max-code", "1", "--max-unpacked", "2", "--max-processes", "40", "--max-tmp", "8",
	}}))
	const mib = 1 << 20
	python := func(code string) map[string]any {
		return map[string]any{"exec": map[string]any{"kind": "python:3", "code": code}}
	}
	limited := func(name string, value int) map[string]any {
		action := python(echoes)
		action["limits"] = map[string]int{name: value}
		return action
	}
	putPython(t, c, map[string]string{"echo": echoes, "long": "def main(args):\n    return {'x': 'y' * (1 << 20)}\n"})
	for _, test := range []struct {
		what, method, path string
		body               any
		code               int
		says               string
	}{
		{"timeout", "PUT", "actions/x", limited("timeout", 60_001), 400, "duration 60001 milliseconds exceeds allowed threshold of 60000 milliseconds. The operator can raise it with the flag --max-timeout of forerun serve."},
		{"memory", "PUT", "actions/x", limited("memory", 257), 400, "memory size 257 MB exceeds allowed threshold of 256 MB. The operator can raise it with the flag --max-memory of forerun serve."},
		{"logs", "PUT", "actions/x", limited("logs", 11), 400, "log size 11 MB exceeds allowed threshold of 10 MB. The operator can raise it with the flag --max-logs of forerun serve."},
		{"code", "PUT", "actions/x", python("#" + strings.Repeat("x", mib)), 413, "exec larger than allowed: 1048577 > 1048576 bytes."},
		{"a body", "PUT", "actions/x", python(strings.Repeat("x", 6*mib)), 413, "larger than allowed"},
		{"payload", "POST", "actions/echo?blocking=true", map[string]string{"x": strings.Repeat("y", mib)}, 413, "larger than allowed"},
		{"result", "POST", "actions/long?blocking=true", nil, 502, "The action produced a response that exceeded the allowed length: 1048584 > 1048576 bytes."},
	} {
		if code, answer := status(t, c, test.method, test.path, test.body); code != test.code || !strings.Contains(answer, test.says) {
			t.Errorf("%s: %d %.300s; want %d, %q", test.what, code, answer, test.code, test.says)
		}
	}
	archive := zipped(t, file{name: "__main__.py", text: "def main(args):\n    return {}\n"}, file{name: "zeros", text: strings.Repeat("\x00", 3*mib)})
	put(t, c, "archive", python(archive))
	if r := invoke(t, c, "archive", nil); !strings.Contains(string(r.Response.Result), `error uncompressing the action archive: \"zeros\": no space left on device`) {
		t.Errorf("an archive of 3 MiB, where 2 are allowed: %s", r.Response.Result)
	}
}

// TestPayloadToTheByte: of an input and of a result as long as is allowed every byte arrives; one more is refused.
func TestPayloadToTheByte(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{}))
	putPython(t, c, map[string]string{"echo": echoes, "longer": "def main(args):\n    return {'a': args['a'] + 'b'}\n"})
	const limit = 6 << 20
	longest := `{"a":"` + strings.Repeat("a", limit-len(`{"a":""}`)) + `"}`
	for _, test := range []struct {
		what, action, body string
		code               int
		says               string
	}{
		{"the longest", "echo", longest, 200, longest},
		{"an input of one byte more", "echo", strings.Replace(longest, "a\"}", "aa\"}", 1), 413, "larger than allowed: 6291457 > 6291456 bytes"},
		{"a result of one byte more", "longer", longest, 502, "exceeded the allowed length: 6291457 > 6291456 bytes"},
	} {
		if code, body := raw(t, c, "POST", "actions/"+test.action+"?blocking=true&result=true", test.body); code != test.code || !strings.Contains(string(body), test.says) {
			t.Errorf("%s: %d, %d bytes: %.300s; want %d", test.what, code, len(body), body, test.code)
		}
	}
}

// TestLimitsInside: a function finds itself in the bounds that were set.
func TestLimitsInside(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--max-processes", "40", "--max-tmp", "8"}})
	if strings.Contains(s.Log(), "NOT enforced: process limit") {
		t.Skip("nothing limits processes here")
	}
	c := client(t, s)
	putPython(t, c, map[string]string{"inside": `import threading

def main(args):
    over, n, written = threading.Event(), 0, 0
    try:
        while n < 100:
            threading.Thread(target=over.wait).start()
            n += 1
    except RuntimeError as error:
        refusal = str(error)
    over.set()
    try:
        with open("/tmp/full", "wb", buffering=0) as file:
            while True:
                written += file.write(bytes(1 << 16))
    except OSError as error:
        return {"threads": n < 40, "refusal": refusal, "full": written >> 20, "why": error.strerror}
`})
	equalJSON(t, invoke(t, c, "inside", nil).Response.Result, `{"threads":true,"refusal":"can't start new thread","full":8,"why":"No space left on device"}`)
}

// gated is a function that ends when something is pushed onto the list "gate".
const gated = `import os, redis

def main(args):
    redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None).blpop("gate")
    return {}
`

// TestFullQueue fills the only sandbox of a server and its queue.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true, Args: append(room(1), "--queued-invocations", "2")})
	c := client(t, s)
	putPython(t, c, map[string]string{"gated": gated})
	for i, queued := range []string{"0", "1", "2"} {
		if code, answer := status(t, c, "POST", "actions/gated", nil); code != http.StatusAccepted {
			t.Fatalf("%d: %d %s", i, code, answer)
		}
		eventually(t, func() bool {
			return gauge(t, s, "forerun_sandboxes_busy") == "1" && gauge(t, s, "forerun_queued_activations") == queued
		})
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/api/v1/namespaces/_/actions/gated", nil)
	if err != nil {
		t.Fatal(err)
	}
	user, key, _ := strings.Cut(c.Auth, ":")
	r.SetBasicAuth(user, key)
	full, body := send(t, r)
	if full.StatusCode != 429 || full.Header.Get("Retry-After") != "1" || !strings.Contains(body, "Too many requests wait for a sandbox (count: 2, allowed: 2).") {
		t.Errorf("one more: %d %v %s", full.StatusCode, full.Header, body)
	}
	open(t, s, 3)
	eventually(t, func() bool { return gauge(t, s, "forerun_sandboxes_busy") == "0" })
	open(t, s, 1)
	invoke(t, c, "gated", nil)
}

// open lets so many gated functions end.
func open(t *testing.T, s *server.Server, n int) {
	t.Helper()
	r := redisClient(s)
	defer r.Close()
	for range n {
		if err := r.Do(t.Context(), "RPUSH", "gate", "x").Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// holdsTheSandbox begins an activation of gated, and reports whether it runs. On a busy machine its own sandbox may start too late.
func holdsTheSandbox(t *testing.T, s *server.Server, c *server.Client) bool {
	t.Helper()
	code, answer := status(t, c, "POST", "actions/gated", nil)
	if code != http.StatusAccepted {
		t.Fatalf("%d %s", code, answer)
	}
	var begun struct{ ActivationID string }
	decode(t, json.RawMessage(answer), &begun)
	for ; ; time.Sleep(10 * time.Millisecond) {
		if gauge(t, s, "forerun_sandboxes_busy") == "1" {
			return true
		}
		if code, _ := status(t, c, "GET", "activations/"+begun.ActivationID, nil); code == http.StatusOK {
			return false
		}
	}
}

// TestQueueTime: an activation that waits too long for a sandbox ends with an error that says so.
func TestQueueTime(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true, Args: append(room(1), "--queue-time", "3s")})
	c := client(t, s)
	putPython(t, c, map[string]string{"gated": gated})
	eventually(t, func() bool { return holdsTheSandbox(t, s, c) })
	code, answer := status(t, c, "POST", "actions/gated?blocking=true", nil)
	if code != http.StatusInternalServerError || !strings.Contains(answer, "The activation waited 3s for a sandbox") {
		t.Errorf("%d %s", code, answer)
	}
	open(t, s, 1)
}
