package test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// spied is what actions/spy.py was answered.
type spied struct {
	API      map[string]int
	Paths    map[string]string
	Commands map[string]any
	Connects map[string]string
	Key      string
}

func (s *spied) read(t *testing.T, c *server.Client, tries map[string]any) {
	t.Helper()
	decode(t, invoke(t, c, "spy", tries).Response.Result, s)
}

func putSpy(t *testing.T, c *server.Client) {
	t.Helper()
	needPackages(t)
	putRightful(t, c, "spy", source("actions/spy.py")(t))
}

// TestFunctionOfAnotherTenant: a function of bob's tries what is ada's: her actions, code, records, logs and state.
func TestFunctionOfAnotherTenant(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	ada, bob := as(t, s, operate(t, s, "create", "ada")), as(t, s, operate(t, s, "create", "bob"))
	putSpy(t, ada)
	putSpy(t, bob)
	const mine = "SET treasure gold"
	var hers, his spied
	hers.read(t, ada, map[string]any{"commands": []string{mine, "RPUSH queue job", "PUBLISH news a"}})
	if hers.Commands[mine] != true {
		t.Fatalf("ada's state answers %v", hers)
	}
	secret := invoke(t, ada, "spy", nil).ActivationID
	tries := [][2]string{
		{"GET", "/api/v1/namespaces/ada/actions/spy"},
		{"GET", "/api/v1/namespaces/ada/actions/spy?code=true"},
		{"PUT", "/api/v1/namespaces/ada/actions/spy?overwrite=true"},
		{"DELETE", "/api/v1/namespaces/ada/actions/spy"},
		{"POST", "/api/v1/namespaces/ada/actions/spy"},
		{"GET", "/api/v1/namespaces/ada/activations"},
		{"GET", "/api/v1/namespaces/ada/activations/" + secret},
		{"GET", "/api/v1/namespaces/ada/activations/" + secret + "/logs"},
		{"GET", "/api/v1/namespaces/_/activations/" + secret},
		{"GET", "/api/v1/namespaces/_/activations/" + secret + "/logs"},
		{"GET", "/metrics"},
		{"GET", "/admin/v1/tenants"},
		{"PUT", "/admin/v1/tenants/eve"},
	}
	adasUser, _, _ := strings.Cut(ada.Auth, ":")
	his.read(t, bob, map[string]any{"api": tries, "commands": []string{
		"GET treasure", "KEYS *", "SCAN 0", "DBSIZE", "LLEN queue", "EXISTS treasure", "TYPE treasure", "GET state/ada/treasure", "GET ../ada/treasure", "PUBSUB CHANNELS",
		"CLIENT LIST", "SELECT 1", "AUTH " + adasUser + " x", "FLUSHALL",
	}})
	for _, try := range tries {
		if got := his.API[try[1]]; got != 403 && got != 404 {
			t.Errorf("%v is answered %d", try, got)
		}
	}
	for command, want := range map[string]string{
		"GET treasure": "<nil>", "KEYS *": "[]", "DBSIZE": "0", "LLEN queue": "0", "GET state/ada/treasure": "<nil>", "GET ../ada/treasure": "<nil>", "PUBSUB CHANNELS": "[]",
	} {
		if got := fmt.Sprint(his.Commands[command]); got != want {
			t.Errorf("%s is answered %s, not %s", command, got, want)
		}
	}
	for command, reply := range his.Commands {
		if text := fmt.Sprint(reply); strings.Contains(text, "ada") || strings.Contains(text, "gold") {
			t.Errorf("%s is answered %s", command, text)
		}
	}
	hers.read(t, ada, map[string]any{"commands": []string{"GET treasure"}})
	if hers.Commands["GET treasure"] != "gold" {
		t.Errorf("after bob's FLUSHALL ada has %v", hers.Commands)
	}
}

// TestKeyOfAnotherActivation: the token of an activation that has ended is nobody's. In a function of the same tenant, which may
// be a process that made its client before, it speaks for the activation that runs there.
func TestKeyOfAnotherActivation(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	ada, bob := as(t, s, operate(t, s, "create", "ada")), as(t, s, operate(t, s, "create", "bob"))
	putSpy(t, ada)
	putSpy(t, bob)
	const path = "/api/v1/namespaces/_/actions"
	var first, again, other spied
	first.read(t, ada, map[string]any{"api": [][2]string{{"GET", path}}})
	again.read(t, ada, map[string]any{"api": [][2]string{{"GET", path}}, "key": first.Key})
	other.read(t, bob, map[string]any{"api": [][2]string{{"GET", path}}, "key": first.Key})
	if first.API[path] != 200 || again.API[path] != 200 || other.API[path] != 401 || again.Key == first.Key {
		t.Errorf("with its own token a function is answered %v, with an earlier activation's %v, another tenant's %v", first.API, again.API, other.API)
	}
}

// TestHostIsOutOfReach: a function reads nothing of the server's, and connects to none of the host's addresses.
func TestHostIsOutOfReach(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	c := client(t, s)
	putSpy(t, c)
	paths := []string{
		s.Options.Data, s.Props(), s.Options.Data + "/operator", s.Options.Data + "/store", s.Options.Binary, "/etc/shadow", "/root", "/home", "/sys", "/run", "/proc/1/mem",
		"/proc/1/environ", "/proc/1/fd", "/proc/1/maps", "/proc/1/root", "/proc/1/cwd", "/proc/kcore", "/proc/keys", fmt.Sprintf("/proc/%d/environ", s.PID()),
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	addresses := []string{s.Redis, "127.0.0.1:" + port, "localhost:" + port, "::ffff:127.0.0.1:" + port, "0.0.0.0:" + port, "169.254.169.254:80"}
	for _, own := range hostAddresses(t) {
		addresses = append(addresses, own+":"+port, own+":22")
	}
	var got spied
	got.read(t, c, map[string]any{"paths": paths, "connects": addresses})
	for path, answer := range got.Paths {
		if answer != "No such file or directory" && answer != "Permission denied" && answer != "has 0 bytes" {
			t.Errorf("a function that reads %s: %s", path, answer)
		}
	}
	for address, answer := range got.Connects {
		if answer != "Permission denied" && answer != "Connection refused" {
			t.Errorf("a function that connects to %s: %s", address, answer)
		}
	}
	if len(got.Paths) != len(paths) || len(got.Connects) < 6 {
		t.Errorf("it tried %v", got)
	}
	r := stored(t, c, invoke(t, c, "spy", map[string]any{"connects": []string{"169.254.169.254:80"}}).ActivationID)
	if log := strings.Join(r.Logs, "\n"); !strings.Contains(log, "169.254.169.254:80 was refused") || !strings.Contains(log, "metadata") {
		t.Errorf("the log does not say why: %q", log)
	}
}

// hostAddresses are those of this machine that are no loopback.
func hostAddresses(t *testing.T) []string {
	t.Helper()
	found, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			own = append(own, n.IP.String())
		}
	}
	return own
}

// TestServerOpensNothingToFunctions looks from inside at the descriptors that a function has: none is the server's.
func TestServerOpensNothingToFunctions(t *testing.T) {
	t.Parallel()
	needNode(t)
	c := client(t, start(t, server.Options{}))
	list := map[string]string{
		"python:3":  "import os\ndef main(args):\n    return {f: os.readlink('/proc/self/fd/' + f) for f in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + f)}\n",
		"nodejs:20": "const fs = require('fs')\nfunction main () { const o = {}; for (const f of fs.readdirSync('/proc/self/fd')) { try { o[f] = fs.readlinkSync('/proc/self/fd/' + f) } catch {} } return o }\n",
	}
	for kind, code := range list {
		put(t, c, "list", map[string]any{"exec": map[string]any{"kind": kind, "code": code}})
		var open map[string]string
		decode(t, invoke(t, c, "list", nil).Response.Result, &open)
		for number, leads := range open {
			if _, err := strconv.Atoi(number); err != nil || strings.HasPrefix(leads, "/") && leads != "/dev/null" && !strings.HasPrefix(leads, "/proc/") {
				t.Errorf("%s: descriptor %s leads to %s", kind, number, leads)
			}
		}
	}
}
