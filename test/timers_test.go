package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// await waits however long it takes.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the test is over")
		}
	}
}

// TestTimedTrigger makes a timer with the command, which fires once and goes with its trigger and rule.
func TestTimedTrigger(t *testing.T) {
	t.Parallel()
	needNode(t)
	s := start(t, server.Options{})
	sh, c := newShell(t, s), client(t, s)
	sh.save(t, map[string]string{"echo.py": echoes})
	sh.follow(t, []step{
		{"action create echo echo.py", 0, "", ""},
		{"trigger create soon -T name Pat", 0, "", "ok: created trigger soon\n"},
		{"rule create greet soon echo", 0, "", "ok: "},
		{"trigger create never --feed /whisk.system/alarms/alarm -p cron '0 0 31 2 *'", 5, "", "cron pattern '0 0 31 2 *' is not valid: none of its months has one of its days. The trigger never was not created"},
		{"trigger create never --feed /whisk.system/alarms/alarm -p cron '0 25 * * *'", 5, "", "cron pattern '0 25 * * *' is not valid: the hour is '25': use 0 to 23, or *"},
		{"trigger create never --feed /whisk.system/alarms/interval -p minute 5", 5, "", "the feed interval has no parameter 'minute': its parameters are minutes, "},
		{"trigger get never", 4, "", "there is no trigger never"},
		{"trigger create nightly --feed /whisk.system/alarms/alarm -p cron '0 3 * * *' -p timezone Asia/Tokyo", 0, "", "ok: created trigger nightly\n"},
		{"trigger get nightly", 0, `T18:00:00.000Z"`, ""},
		{"trigger update nightly -F cron '0 4 * * *'", 0, "", "ok: updated"},
		{"trigger get nightly", 0, `T19:00:00.000Z"`, ""},
		{"trigger delete nightly", 0, "", "ok: deleted trigger nightly\n"},
	})
	for wait := time.Second; ; wait *= 2 { // a busy machine takes a while
		timer := map[string]any{"feed": "once", "date": time.Now().Add(wait).UnixMilli(), "trigger_payload": map[string]int{"n": 1}, "deleteAfterFire": "rules"}
		code, answer := status(t, c, http.MethodPut, "triggers/soon/timer", timer)
		if code == http.StatusOK {
			break
		}
		if !strings.Contains(answer, "must be in the future") {
			t.Fatal(code, answer)
		}
	}
	await(t, func() bool {
		code, _ := status(t, c, http.MethodGet, "triggers/soon", nil)
		return code == http.StatusNotFound
	})
	sh.follow(t, []step{{"rule get greet", 4, "", "there is no rule greet"}})
	await(t, func() bool { return len(recordsOf(t, c, "echo")) > 0 })
	if records := recordsOf(t, c, "echo"); len(records) != 1 {
		t.Errorf("the action was invoked %d times", len(records))
	} else {
		equalJSON(t, records[0].Response.Result, `{"n":1,"name":"Pat"}`)
	}
}

// recordsOf lists the records of an action or a trigger.
func recordsOf(t *testing.T, c *server.Client, name string) (list []server.Record) {
	t.Helper()
	if err := c.Get(t.Context(), "activations?limit=200&docs=true&name="+name, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestTimersSurviveKills kills a server again and again as soon as it has fired: no moment is fired twice, and each firing invokes
// each rule's action once.
func TestTimersSurviveKills(t *testing.T) {
	t.Parallel()
	const most = 9
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, server.Options{Data: data})
	c := client(t, s)
	putPython(t, c, map[string]string{"echo": echoes})
	if code, answer := status(t, c, http.MethodPut, "triggers/each", map[string]any{}); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	for _, rule := range []string{"one", "two"} {
		if code, answer := status(t, c, http.MethodPut, "rules/"+rule, map[string]string{"trigger": "/_/each", "action": "/_/echo"}); code != http.StatusOK {
			t.Fatal(code, answer)
		}
	}
	if code, answer := status(t, c, http.MethodPut, "triggers/each/timer", map[string]any{"feed": "alarm", "cron": "* * * * * *", "maxTriggers": most}); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	for {
		before, over := len(recordsOf(t, c, "each")), false
		await(t, func() bool {
			var timer struct{ Status struct{ Active bool } }
			if err := c.Get(t.Context(), "triggers/each/timer", &timer); err != nil {
				t.Fatal(err)
			}
			over = !timer.Status.Active
			return over || len(recordsOf(t, c, "each")) > before
		})
		if over {
			break
		}
		s.Kill()
		s = start(t, server.Options{Data: data})
		c = client(t, s)
	}
	moments, invoked := make(map[string]bool), make(map[string]bool)
	for _, firing := range recordsOf(t, c, "each") {
		if moment := string(firing.Annotation("scheduled")); moment == "" || moments[moment] {
			t.Errorf("the moment %q is fired a second time", moment)
		} else {
			moments[moment] = true
		}
		if len(firing.Logs) != 2 {
			t.Errorf("a firing logs %q", firing.Logs)
		}
		for _, line := range firing.Logs {
			var outcome struct{ ActivationID, Error string }
			if err := json.Unmarshal([]byte(line), &outcome); err != nil || outcome.Error != "" || invoked[outcome.ActivationID] {
				t.Errorf("%v: %s", err, line)
			}
			invoked[outcome.ActivationID] = true
		}
	}
	if len(moments) != most {
		t.Errorf("%d moments were fired, not %d", len(moments), most)
	}
	await(t, func() bool { return len(recordsOf(t, c, "echo")) >= len(invoked) })
	for _, record := range recordsOf(t, c, "echo") {
		if !invoked[record.ActivationID] {
			t.Errorf("no firing tells of the activation %s", record.ActivationID)
		}
		delete(invoked, record.ActivationID)
	}
	if len(invoked) > 0 {
		t.Errorf("there are no records of %s", fmt.Sprint(invoked))
	}
}
