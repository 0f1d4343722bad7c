package test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// workers is a function that does what Redis users do beside single commands.
const workers = `
import os, redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None, decode_responses=True)

def book(p):
    left = int(p.get("seats"))
    p.multi()
    p.set("seats", left - 1)
    p.rpush("booked", left)

def main(args):
    with state.pipeline() as p:
        first = p.set("seats", 3).get("seats").execute()
    for _ in range(3):
        state.transaction(book, "seats")
    with state.pipeline() as p:
        p.watch("seats")
        state.set("seats", 10)
        p.multi()
        p.set("seats", 0)
        try:
            conflict = p.execute()
        except redis.WatchError:
            conflict = "conflict"
    state.publish("done", "yes")
    return {"first": first, "booked": state.lrange("booked", 0, -1), "conflict": conflict, "seats": state.get("seats"),
        "job": state.blpop("jobs", timeout=50)}
`

// TestTransactionsInFunctions: pipelines, locks, channels and queues, between a function and a program outside.
func TestTransactionsInFunctions(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{Redis: true})
	c := client(t, s)
	putPython(t, c, map[string]string{"workers": workers})
	r := redisClient(s)
	defer r.Close()
	listener := r.Subscribe(t.Context(), "done")
	defer listener.Close()
	if _, err := listener.Receive(t.Context()); err != nil { // that it listens
		t.Fatal(err)
	}
	go func() {
		if message, err := listener.ReceiveMessage(t.Context()); err == nil {
			r.RPush(t.Context(), "jobs", message.Payload)
		}
	}()
	const want = `{"first": [true, "3"], "booked": ["3", "2", "1"], "conflict": "conflict", "seats": "10", "job": ["jobs", "yes"]}`
	equalJSON(t, invoke(t, c, "workers", map[string]any{}).Response.Result, want)
}

// left is a function that waits for an item, and returns without it; the next activation of the same process learns
// what came of that.
const left = `
const { createClient } = require('redis')
let client, waiting
async function main (args) {
  if (args.wait) {
    client = await createClient({ url: process.env.REDIS_URL }).connect()
    waiting = client.blPop('queue', 0)
    const other = await client.duplicate().connect()
    while (!(await other.info('clients')).includes('blocked_clients:1'));
    other.destroy()
    return {}
  }
  return { got: waiting === undefined ? 'another process' : await waiting }
}
`

// TestWaitingEndsWithItsActivation: what comes after the end of an activation is not taken for it.
func TestWaitingEndsWithItsActivation(t *testing.T) {
	t.Parallel()
	needPackages(t)
	if _, err := os.Stat("../bin/runtimes/node/packages/node_modules/redis"); err != nil {
		t.Skip("the packages of Node functions are not installed; make build installs them")
	}
	s := start(t, server.Options{Redis: true})
	c := client(t, s)
	if err := c.Put(t.Context(), "left", map[string]any{"exec": map[string]any{"kind": "nodejs:20", "code": left}}); err != nil {
		t.Fatal(err)
	}
	invoke(t, c, "left", map[string]any{"wait": true})
	r := redisClient(s)
	defer r.Close()
	eventually(t, func() bool { return strings.Contains(r.Info(t.Context(), "clients").Val(), "blocked_clients:0") })
	if err := r.RPush(t.Context(), "queue", "job").Err(); err != nil {
		t.Fatal(err)
	}
	result := invoke(t, c, "left", map[string]any{}).Response.Result
	var got struct{ Got any }
	if err := json.Unmarshal(result, &got); err != nil || got.Got != nil {
		t.Errorf("the next activation got %s, %v", result, err)
	}
	if items := r.LRange(t.Context(), "queue", 0, -1).Val(); len(items) != 1 {
		t.Errorf("in the queue: %q", items)
	}
}
