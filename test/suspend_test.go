package test

import (
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// TestSuspendedTenant suspends a tenant whose function runs, tries each way in, also after a restart, and resumes it: all is as it was.
func TestSuspendedTenant(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	guest, ada := client(t, s), as(t, s, operate(t, s, "create", "ada"))
	putPython(t, guest, map[string]string{"hello": echoes})
	putPython(t, ada, map[string]string{"wait": "import time\n\ndef main(args):\n    time.sleep(600)\n    return {}\n", "hello": echoes})
	put(t, ada, "page", map[string]any{
		"exec":        map[string]string{"kind": "python:3", "code": "def main(args):\n    return {'body': 'a page'}\n"},
		"annotations": []map[string]any{{"key": "web-export", "value": true}},
	})
	for path, body := range map[string]any{
		"triggers/t": map[string]any{}, "triggers/timed": map[string]any{},
	} {
		if code, answer := status(t, ada, "PUT", path, body); code != http.StatusOK {
			t.Fatal(code, answer)
		}
	}
	for rule, trigger := range map[string]string{"r": "t", "each": "timed"} {
		if code, answer := status(t, ada, "PUT", "rules/"+rule, map[string]string{"trigger": "/_/" + trigger, "action": "/_/hello"}); code != http.StatusOK {
			t.Fatal(code, answer)
		}
	}
	state := redisAs(t, s, ada.Auth)
	if err := state.Set(t.Context(), "k", "ada's", 0).Err(); err != nil {
		t.Fatal(err)
	}
	old := invoke(t, ada, "hello", map[string]int{"n": 1})
	blocked := make(chan error, 1)
	go func() { blocked <- state.BLPop(t.Context(), 0, "nothing").Err() }()
	type ending struct {
		code   int
		answer []byte
		err    error
	}
	ended := make(chan ending, 1)
	go func() {
		code, answer, err := ada.Do(t.Context(), "POST", "actions/wait?blocking=true", nil)
		ended <- ending{code, answer, err}
	}()
	eventually(t, func() bool { return gauge(t, s, "forerun_sandboxes_busy") == "1" })
	timed(t, ada, "timed")

	operate(t, s, "suspend", "ada")
	end := <-ended
	if end.err != nil || end.code != http.StatusInternalServerError || !strings.Contains(string(end.answer), "The tenant was suspended") {
		t.Errorf("the running activation was answered %d %s, %v", end.code, end.answer, end.err)
	}
	if err := <-blocked; err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("the blocked client was answered %v", err)
	}
	if idle, busy := gauge(t, s, "forerun_sandboxes_idle"), gauge(t, s, "forerun_sandboxes_busy"); idle != "0" || busy != "0" {
		t.Errorf("%s sandboxes are idle and %s busy", idle, busy)
	}
	operate(t, s, "suspend", "ada") // again
	refusedEverywhere(t, s, ada)
	invoke(t, guest, "hello", nil)
	if list := operate(t, s, "list"); strings.Count(list, time.Now().Format("2006-")) < 3 { // guest's and ada's creation, and ada's suspension
		t.Errorf("the list does not say since when ada is suspended: %s", list)
	}

	s.Kill()
	again := start(t, server.Options{Data: s.Options.Data, Redis: true})
	ada.URL, guest.URL = again.URL, again.URL
	refusedEverywhere(t, again, ada)
	invoke(t, guest, "hello", nil)
	fired := time.Now()

	operate(t, again, "resume", "ada")
	equalJSON(t, invoke(t, ada, "hello", map[string]int{"n": 2}).Response.Result, `{"n":2}`)
	equalJSON(t, stored(t, ada, old.ActivationID).Response.Result, `{"n":1}`)
	if got, err := redisAs(t, again, ada.Auth).Get(t.Context(), "k").Result(); err != nil || got != "ada's" {
		t.Errorf("k is %q (%v)", got, err)
	}
	if _, answer := web(t, again, ada.Auth); answer != "a page" {
		t.Errorf("the web action answers %s", answer)
	}
	eventually(t, func() bool {
		return slices.ContainsFunc(recordsOf(t, ada, "timed"), func(r server.Record) bool { return time.UnixMilli(r.Start).After(fired) })
	})
	waited := recordsOf(t, ada, "wait")
	if len(waited) != 1 || !strings.Contains(string(waited[0].Response.Result), "The tenant was suspended") {
		t.Errorf("the records of the activation that was ended: %+v", waited)
	}
	if out, err := tenantCommand(t, again, "suspend", "nobody"); err == nil || !strings.Contains(out, "There is no tenant nobody.") {
		t.Errorf("suspend nobody: %s", out)
	}
	if out, err := tenantCommand(t, again, "suspend", "whisk.system"); err == nil || !strings.Contains(out, "server's own") {
		t.Errorf("suspend whisk.system: %s", out)
	}
}

// timed gives a trigger a timer that fires each second.
func timed(t *testing.T, c *server.Client, trigger string) {
	t.Helper()
	if code, answer := status(t, c, "PUT", "triggers/"+trigger+"/timer", map[string]string{"feed": "alarm", "cron": "* * * * * *"}); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	eventually(t, func() bool { return len(recordsOf(t, c, trigger)) > 0 })
}

// web asks for the page of ada.
func web(t *testing.T, s *server.Server, auth string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/web/ada/default/page.http", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if user, key, ok := strings.Cut(auth, ":"); ok {
		r.SetBasicAuth(user, key)
	}
	answer, text := send(t, r)
	return answer.StatusCode, text
}

// refusedEverywhere tries the ways in of ada, which is suspended.
func refusedEverywhere(t *testing.T, s *server.Server, ada *server.Client) {
	t.Helper()
	for _, request := range []string{
		"POST actions/hello?blocking=true", "POST actions/hello", "POST triggers/t", "GET actions", "GET activations", "GET feed",
		"PUT actions/new", "DELETE actions/hello", "DELETE triggers/timed", "POST rules/r",
	} {
		method, path, _ := strings.Cut(request, " ")
		if code, answer := status(t, ada, method, path, nil); code != http.StatusForbidden || !strings.Contains(answer, "The tenant ada is suspended: ask the operator of this server to resume it.") {
			t.Errorf("%s is answered %d %s", request, code, answer)
		}
	}
	if err := redisAs(t, s, ada.Auth).Get(t.Context(), "k").Err(); err == nil || !strings.Contains(err.Error(), "The tenant ada is suspended") {
		t.Errorf("the Redis door answers %v", err)
	}
	for _, auth := range []string{"", ada.Auth} {
		if code, answer := web(t, s, auth); code != http.StatusNotFound || strings.Contains(answer, "suspend") {
			t.Errorf("the web action is answered %d %s", code, answer)
		}
	}
	sh := newShell(t, s)
	got := sh.run(t, "invoke hello --auth "+ada.Auth)
	if got.code != 4 || !strings.Contains(got.stderr, "is suspended") || strings.Contains(got.stderr, "namespace list") {
		t.Errorf("the command says %+v", got)
	}
	sh.env = []string{"FORERUN_OPERATOR=" + filepath.Join(s.Options.Data, "operator")}
	if out := sh.run(t, "audit -o jsonl").stdout; !strings.Contains(out, "/tenants/ada/suspend") || !strings.Contains(out, `"status":403`) {
		t.Errorf("the audit log is without the suspension or its refusals: %s", out)
	}
}
