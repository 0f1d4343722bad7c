package test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

const dialing = `
import socket

def main(args):
    try:
        socket.create_connection((args["host"], args["port"]), 5).close()
        return {"reached": True}
    except OSError as e:
        return {"reached": False, "errno": e.errno}
`

// TestEgress: the lists of the server, the tenant and the action all hold, and what the operator changes holds at once.
func TestEgress(t *testing.T) {
	address := needOutside(t)
	t.Parallel()
	open, denied := accepting(t, address.String()), accepting(t, address.String())
	s := start(t, server.Options{Args: []string{"--egress-allow", address.String(), "--egress-deny", fmt.Sprintf("%v:%d", address, denied)}})
	ada := as(t, s, operate(t, s, "create", "ada", "--egress", fmt.Sprintf("%v, 192.0.2.0/24", address)))
	lists := map[string]any{
		"free": nil, "none": "none", "here": []string{fmt.Sprintf("%v:%d", address, open)}, "there": []string{"192.0.2.0/24"}, "both": []string{address.String(), "192.0.2.1"},
	}
	for name, list := range lists {
		action := map[string]any{"exec": map[string]any{"kind": "python:3", "code": dialing}, "annotations": []any{map[string]any{"key": "keep-process", "value": true}}}
		if list != nil {
			action["annotations"] = append(action["annotations"].([]any), map[string]any{"key": "egress", "value": list})
		}
		if err := ada.Put(t.Context(), name, action); err != nil {
			t.Fatal(err)
		}
	}
	reaches := func(want bool, name string, port int) {
		t.Helper()
		r, err := ada.Invoke(t.Context(), name, map[string]any{"host": address.String(), "port": port})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.Response.Result); strings.Contains(got, "true") != want {
			t.Errorf("%s to port %d: %s, %q; want reached = %v", name, port, got, r.Logs, want)
		}
	}
	for name, want := range map[string]bool{"free": true, "none": false, "here": true, "there": false, "both": true} {
		reaches(want, name, open)
		reaches(false, name, denied)
	}
	operate(t, s, "update", "ada", "--egress", "192.0.2.0/24")
	for name := range lists {
		reaches(false, name, open)
	}
	if list := operate(t, s, "get", "ada", "egress"); !strings.Contains(list, "192.0.2.0/24") {
		t.Errorf("the tenant is shown with %s", list)
	}
	operate(t, s, "update", "ada", "--egress", "any")
	reaches(true, "free", open)
	reaches(false, "none", open)
	for list, why := range map[string]string{`"10.0.0.0/33"`: "must be", `["10.0.0.0/33"]`: "is not a destination", `["*.example.org"]`: "Write a name"} {
		body := fmt.Sprintf(`{"exec":{"kind":"python:3","code":"x"},"annotations":[{"key":"egress","value":%s}]}`, list)
		if code, answer := ask(t, ada, http.MethodPut, "_/actions/bad", body); code != http.StatusBadRequest || !strings.Contains(answer, why) {
			t.Errorf("the list %s: %d %s", list, code, answer)
		}
	}
	if out, err := tenantCommand(t, s, "update", "ada", "--egress", "https://example.org"); err == nil || !strings.Contains(out, "--egress") {
		t.Errorf("a URL as a tenant's list: %s", out)
	}
}

// accepting serves on a fresh port of an address until the test ends.
func accepting(t *testing.T, address string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// TestEgressEndsWhatRuns: an operator's new list ends the tenant's running functions, whose connections it could not take back. Others' go on.
func TestEgressEndsWhatRuns(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	ada, bob := as(t, s, operate(t, s, "create", "ada")), as(t, s, operate(t, s, "create", "bob"))
	const waits = "import os, redis\ndef main(args):\n    r = redis.from_url(os.environ['REDIS_URL'], socket_timeout=None)\n    r.set('began', 1)\n    return {'got': r.blpop('go', 0)[1].decode()}\n"
	ids := map[*server.Client]string{}
	for _, c := range []*server.Client{ada, bob} {
		putPython(t, c, map[string]string{"waits": waits, "began": "import os, redis\ndef main(args):\n    return {'began': redis.from_url(os.environ['REDIS_URL'], socket_timeout=None).exists('began')}\n"})
		var started struct{ ActivationID string }
		if code, body := status(t, c, http.MethodPost, "actions/waits", map[string]any{}); code != http.StatusAccepted {
			t.Fatalf("%d %s", code, body)
		} else {
			decode(t, json.RawMessage(body), &started)
		}
		ids[c] = started.ActivationID
		eventually(t, func() bool {
			var r struct{ Began int }
			return c.Result(t.Context(), "began", nil, &r) == nil && r.Began == 1
		})
	}
	operate(t, s, "update", "ada", "--egress", "none")
	r, err := ada.Await(t.Context(), ids[ada])
	if err != nil || !strings.Contains(string(r.Response.Result), "has changed what functions of this tenant may reach") {
		t.Errorf("the running function ended with %+v, %v", r, err)
	}
	putPython(t, bob, map[string]string{"push": "import os, redis\ndef main(args):\n    redis.from_url(os.environ['REDIS_URL'], socket_timeout=None).rpush('go', 'on')\n    return {}\n"})
	if _, err := bob.Invoke(t.Context(), "push", nil); err != nil {
		t.Fatal(err)
	}
	if r, err := bob.Await(t.Context(), ids[bob]); err != nil || !strings.Contains(string(r.Response.Result), "on") {
		t.Errorf("another tenant's function ended with %+v, %v", r, err)
	}
}
