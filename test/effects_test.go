package test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// effects are functions of which one writes its id to state, and one does not end while there is the key "hold".
var effects = map[string]string{
	"gate": "import time\n\ndef main(args):\n    time.sleep(0.1)\n    return {'open': True}\n",
	"write": `
import os, redis, time

state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)

def main(args):
    state.rpush("wrote", os.environ["__OW_ACTIVATION_ID"])
    return {"written": True}
`,
	"wait": `
import os, redis, time

state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)

def main(args):
    if state.get("hold"):
        time.sleep(600)
    return {}
`,
}

// TestEffectsHaveRecords kills the server once what a function wrote can be seen. The function has a record then, and so has
// each workflow that it is a part of: it says that the server was stopped. A single function has no such promise.
func TestEffectsHaveRecords(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{Redis: true, Args: []string{"--speculate", "all; load=any"}})
	c := client(t, s)
	putPython(t, c, effects)
	for _, components := range [][]string{{"first", "write", "wait"}, {"second", "gate", "write", "wait"}, {"outer", "gate", "second"}} {
		if err := c.PutSequence(t.Context(), components[0], components[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		action, mode string
		workflows    int // around the function
	}{
		{"first", "off", 1},
		{"first", "all", 1},
		{"second", "off", 1},
		{"second", "all", 1},
		{"outer", "all", 2},
	} {
		func() { // no test of its own: the server lasts for the next one
			r := redisClient(s)
			defer func() { _ = r.Close() }()
			if err := r.Del(t.Context(), "hold").Err(); err != nil {
				t.Fatal(err)
			}
			for range 2 { // then what comes behind the gate is speculative
				invokeAhead(t, c, x.action, "all", `{}`)
			}
			for _, command := range [][]any{{"SET", "hold", "yes"}, {"DEL", "wrote"}} {
				if err := r.Do(t.Context(), command...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				hang(c, x.action, x.mode)
			}()
			var id string
			for id == "" {
				select {
				case <-ended:
					t.Fatal("it has ended: " + s.Log())
				case <-time.After(time.Millisecond):
					id = r.LIndex(t.Context(), "wrote", 0).Val()
				}
			}
			s.Kill()
			<-ended
			s = start(t, server.Options{Data: s.Options.Data, Redis: true, Args: s.Options.Args})
			c.URL = s.URL
			for range x.workflows + 1 {
				var record server.Record
				if err := c.Get(t.Context(), "activations/"+id, &record); err != nil {
					t.Fatalf("%s, %s: %v", x.action, x.mode, err)
				}
				if !strings.Contains(string(record.Response.Result), "stopped before the activation ended") {
					t.Errorf("%s, %s: %s ended with %s", x.action, x.mode, record.Name, record.Response.Result)
				}
				id = record.Cause
			}
		}()
	}
}

// hang invokes an action that does not end before the server does.
func hang(c *server.Client, action, mode string) {
	r, err := http.NewRequest(http.MethodPost, c.URL+"/api/v1/namespaces/_/actions/"+action+"?blocking=true", strings.NewReader("{}"))
	if err != nil {
		return
	}
	user, key, _ := strings.Cut(c.Auth, ":")
	r.SetBasicAuth(user, key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forerun-Speculate", mode)
	if answer, err := http.DefaultClient.Do(r); err == nil {
		_ = answer.Body.Close()
	}
}
