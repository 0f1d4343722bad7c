package test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// refusal is what a client is told that asks for what cannot be.
type refusal struct{ Error, Code string }

// badRequests are requests as bytes, and how each is answered. The action /guest/echo is there.
var badRequests = []struct {
	name, method, path, body string
	status                   int
	says                     string
}{
	{"no JSON", "POST", "actions/echo", `{"a":`, 400, "not valid JSON"},
	{"more than one", "POST", "actions/echo", `{}{}`, 400, "not valid JSON"},
	{"a string", "POST", "actions/echo", `"a"`, 400, "must be a JSON object"},
	{"no UTF-8", "POST", "actions/echo", "{\"a\":\"\xff\"}", 400, "not valid JSON"},
	{"half a character", "POST", "actions/echo", `{"a":"\ud800"}`, 400, "not valid JSON"},
	{"deep", "POST", "actions/echo", `{"a":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`, 400, "more than 512 deep"},
	{"very deep", "POST", "actions/echo", strings.Repeat(`{"a":`, 1_000_000), 400, "more than 512 deep"},
	{"beyond a double", "POST", "actions/echo", `{"a":1e400}`, 400, "beyond the range of a double"},
	{"many digits", "POST", "actions/echo", `{"a":` + strings.Repeat("1", 5000) + `}`, 400, "5000 digits"},
	{"huge", "POST", "actions/echo", `{"a":"` + strings.Repeat("a", 6<<20) + `"}`, 413, "larger than allowed"},
	{"of no action", "POST", "actions/nothing", `{}`, 404, "does not exist"},
	{"of a name out of the namespace", "POST", "actions/%2e%2e%2f%2e%2e%2fwhisk.system%2fecho", `{}`, 400, ""},
	{"of a name with a zero", "POST", "actions/a%00b", `{}`, 400, ""},
	{"of an odd name", "PUT", "actions/a%0ab", `{"exec":{"kind":"python:3","code":"x"}}`, 400, ""},
	{"of a long name", "PUT", "actions/" + strings.Repeat("n", 257), `{"exec":{"kind":"python:3","code":"x"}}`, 400, ""},
	{"wrong types", "PUT", "actions/a", `{"exec":{"kind":3,"code":[]}}`, 400, "must be a string"},
	{"wrong limits", "PUT", "actions/a", `{"exec":{"kind":"python:3","code":"x"},"limits":{"memory":1e999}}`, 400, ""},
	{"unknown kind", "PUT", "actions/a", `{"exec":{"kind":"../../bin/sh","code":"x"}}`, 400, "not supported"},
	{"deep parameters", "PUT", "actions/a", `{"exec":{"kind":"python:3","code":"x"},"parameters":[{"key":"a","value":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}]}`, 400, "more than 512 deep"},
	{"a composition that is none", "PUT", "actions/a", `{"exec":{"kind":"nodejs:default","code":"x"},"annotations":[{"key":"conductor","value":{"type":"sequence","components":[{"type":"action","name":7}]}}]}`, 400, ""},
	{"a deep composition", "PUT", "actions/a", `{"exec":{"kind":"nodejs:default","code":"x"},"annotations":[{"key":"conductor","value":` + strings.Repeat(`{"type":"sequence","components":[`, 3000) + strings.Repeat("]}", 3000) + `}]}`, 400, "more than 512 deep"},
	{"a rule of nothing", "PUT", "rules/r", `{"trigger":"/_/none","action":"/_/echo"}`, 400, "does not exist"},
	{"a number that is none", "GET", "activations?limit=many", ``, 400, "limit"},
	{"an id that is none", "GET", "activations/..%2f..%2fetc", ``, 400, ""},
}

// TestBadRequests: each is answered with what is wrong with it, and the server serves on.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"echo": "def main(args):\n    return args\n"})
	for _, bad := range badRequests {
		t.Run(bad.name, func(t *testing.T) {
			status, body := raw(t, c, bad.method, bad.path, bad.body)
			var told refusal
			if err := json.Unmarshal(body, &told); err != nil || told.Code == "" || status != bad.status || !strings.Contains(told.Error, bad.says) {
				t.Errorf("answered %d %.1000s; want %d %q", status, body, bad.status, bad.says)
			}
			if len(body) > 2000 {
				t.Errorf("the answer has %d bytes", len(body))
			}
		})
	}
	equalJSON(t, invoke(t, c, "echo", map[string]int{"a": 1}).Response.Result, `{"a":1}`)
	if log := s.Log(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the server said %s", log)
	}
}

// raw sends bytes as a body.
func raw(t *testing.T, c *server.Client, method, path, body string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.URL+"/api/v1/namespaces/_/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	user, password, _ := strings.Cut(c.Auth, ":")
	r.SetBasicAuth(user, password)
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text
}

// TestBadBytes sends what is no HTTP, or breaks off.
func TestBadBytes(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"echo": "def main(args):\n    return args\n"})
	head := "POST /api/v1/namespaces/_/actions/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
		"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(s.Auth)) + "\r\n"
	for what, test := range map[string]struct{ sent, status string }{
		"no HTTP":        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
		"a long header":  {head + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", "431"},
		"a wrong length": {head + "Content-Length: -1\r\n\r\n", "400"},
		"a cut body":     {head + "Content-Length: 1000\r\n\r\n{\"a\":1", "400"},
		"a wrong chunk":  {head + "Transfer-Encoding: chunked\r\n\r\nnothing\r\n", "400"},
		"chunks without an end": {
			head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat(fmt.Sprintf("100000\r\n%s\r\n", strings.Repeat(" ", 1<<20)), 7), "413",
		},
	} {
		t.Run(what, func(t *testing.T) {
			answer := speak(t, s.URL, test.sent)
			if !strings.HasPrefix(answer, "HTTP/1.1 "+test.status+" ") {
				t.Errorf("the answer is %.200q; want %s", answer, test.status)
			}
		})
	}
	equalJSON(t, invoke(t, c, "echo", map[string]int{"a": 1}).Response.Result, `{"a":1}`)
}

// speak sends bytes to a server, ends its side of the connection, and returns the first line of the answer.
func speak(t *testing.T, url, text string) string {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, text) // the server may refuse it before its end
	if half, ok := c.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	line, _ := bufio.NewReader(c).ReadString('\n')
	return line
}

// TestClientGone: an invocation whose client has gone goes on to its end and has a record.
func TestClientGone(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	c, state := client(t, s), outside(t, s)
	putPython(t, c, map[string]string{"waiting": waiting})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := c.Invoke(ctx, "waiting", nil); left <- err }()
	if err := state.BLPop(t.Context(), 0, "began").Err(); err != nil {
		t.Fatal(err)
	}
	leave()
	if err := <-left; err == nil {
		t.Fatal("the client has an answer")
	}
	if err := state.RPush(t.Context(), "go", 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil { // which waits for what is under way
		t.Fatal(err)
	}
	again := start(t, server.Options{Data: s.Options.Data})
	var records []server.Record
	if err := client(t, again).Get(t.Context(), "activations?docs=true", &records); err != nil || len(records) != 1 {
		t.Fatalf("%v, %v", records, err)
	}
	equalJSON(t, records[0].Response.Result, `{"went":"on"}`)
}
