package test

import (
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestAheadListens: a function that waits on one connection for what it does on another is answered in the order in which it asked, as in its
// turn.
func TestAheadListens(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--speculate", "all; least=0s; load=any"}})
	c := s.Client(1)
	defer c.Close()
	putPython(t, c, map[string]string{
		"slow": "import time\n\ndef main(args):\n    time.sleep(0.5)\n    return {}\n",
		"f": `import os, threading, time, redis

sent = threading.Event()

class Connection(redis.Connection):
    def send_command(self, *args, **kwargs):
        super().send_command(*args, **kwargs)
        if args[0] == 'BLPOP':
            sent.set()

pool = redis.ConnectionPool.from_url(os.environ['REDIS_URL'], connection_class=Connection, decode_responses=True)
r = redis.Redis(connection_pool=pool)

def main(args):
    got = []
    sent.clear()
    waiter = threading.Thread(target=lambda: got.append(r.blpop('q', 60)))
    waiter.start()
    sent.wait()
    time.sleep(0.2)  # the server reads a connection on its own
    r.rpush('q', 'x')
    left = r.lpop('q')
    waiter.join()
    with r.pubsub(ignore_subscribe_messages=True) as p:
        p.subscribe('c')
        time.sleep(0.2)
        heard = r.publish('c', 'word')
    return {'got': got, 'left': left, 'heard': heard}
`,
	})
	if err := c.PutSequence(t.Context(), "seq", "slow", "f"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		equalJSON(t, invoke(t, c, "seq", map[string]int{}).Response.Result, `{"got":[["q","x"]],"left":null,"heard":1}`)
	}
}
