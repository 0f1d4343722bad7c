package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"forerun.dev/forerun/test/apps"
	"forerun.dev/forerun/test/server"
)

// connecting are functions that connect with the state while they are loaded, and would log that they had to do so again. Each counts, after
// some time, and gives what was said.
var connecting = map[string]string{
	"redis": `
const { createClient } = require('redis')
const ready = createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()
const count = async () => (await ready).incr('redis')
`,
	"ioredis": `
const Redis = require('ioredis')
const state = new Redis(process.env.REDIS_URL).on('close', () => console.error('closed'))
const count = () => state.incr('ioredis')
`,
}

const connected = `
exports.main = async ({ said }) => {
  await new Promise(resolve => setTimeout(resolve, 300))
  return { said, n: await count() }
}
`

// TestConnectedWhileLoadedAndSquashed: what a Node function connects with while its code is loaded serves it, whether or not what ran
// ahead in its process was squashed.
func TestConnectedWhileLoadedAndSquashed(t *testing.T) {
	needPackages(t)
	needNode(t)
	t.Parallel()
	s := differing(t, needOutside(t), []string{"--speculate", "all; least=0s; load=any"})
	// What comes after it runs ahead on what it gave before.
	putPython(t, s.Client, map[string]string{"first": wishing + `
def main(args):
    said = state.get("said") or b""
    time.sleep(0.15)
    return {"said": said.decode()}
`})
	for name, code := range connecting {
		put(t, s.Client, name, map[string]any{"exec": map[string]any{"kind": "nodejs:default", "code": code + connected}})
		if err := s.Client.PutSequence(t.Context(), "with"+name, "first", name); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 9; n++ {
			said := fmt.Sprint(n / 3)
			if err := s.State.Set(t.Context(), "said", said, 0).Err(); err != nil {
				t.Fatal(err)
			}
			answer, err := s.Do(t.Context(), apps.Step{Method: http.MethodPost, Path: "actions/with" + name + "?blocking=true", Body: "{}"})
			if err != nil {
				t.Fatal(err)
			}
			var r struct {
				Logs     []string
				Response struct{ Result json.RawMessage }
			}
			decode(t, answer.Body, &r)
			if want := fmt.Sprintf(`{"n":%d,"said":%q}`, n, said); string(r.Response.Result) != want {
				t.Errorf("%s gave %s; want %s", name, r.Response.Result, want)
			}
			if last := stored(t, s.Client, r.Logs[len(r.Logs)-1]); last.Name != name || len(last.Logs) > 0 {
				t.Errorf("%s logged %q", last.Name, last.Logs)
			}
		}
	}
	if _, _, squashed := s.Tally(); squashed == 0 {
		t.Error("nothing was squashed")
	}
}

// listening are a function that tells the news, after some time, and one whose process stays and hears them.
var listening = map[string]string{
	"teller": `
import os, redis, time
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)
def main(args):
    time.sleep(0.6)
    state.publish("news", state.incr("told"))
    return {}
`,
	"listener": `
import os, redis
news = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None).pubsub()
def main(args):
    if news.subscribed:
        heard = None
        patience = 30
        while told := news.get_message(timeout=patience):  # also what came while another process served
            heard, patience = int(told["data"]), 0.5
        return {"heard": heard}
    news.subscribe("news")
    news.get_message(timeout=30)
    return {"heard": "nothing yet"}
`,
}

// TestListenerHearsWhatWasToldBefore: a process that is kept, and listens to a channel, hears in each activation what the function before
// it published, although that is known to give nothing else than before.
func TestListenerHearsWhatWasToldBefore(t *testing.T) {
	needPackages(t)
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--speculate", "all; least=0s; load=any"}})
	c := client(t, s)
	for name, code := range listening {
		put(t, c, name, map[string]any{"exec": map[string]any{"kind": "python:3", "code": code}, "annotations": []any{map[string]any{"key": "keep-process", "value": true}}})
	}
	if err := c.PutSequence(t.Context(), "news", "teller", "listener"); err != nil {
		t.Fatal(err)
	}
	heard := 0
	for n := 1; n <= 6; n++ {
		answer, body := invokeAhead(t, c, "news", "all; least=0s; load=any", "{}")
		switch body {
		case fmt.Sprintf(`{"heard":%d}`, n):
			heard++
		case `{"heard":"nothing yet"}`: // another process
		default:
			t.Errorf("it gave %d %s, want %d", answer.StatusCode, body, n)
		}
	}
	if heard == 0 {
		t.Error("no process has served twice")
	}
}
