package test

import (
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestAheadLives: what a function ahead was told of a record that lives for a while is what is in the store, also if the life has ended by its
// turn, and what wrote the record removed it then.
func TestAheadLives(t *testing.T) {
	t.Parallel()
	const redis = "import os, time, redis\n\nr = redis.Redis.from_url(os.environ['REDIS_URL'], socket_timeout=None)\n\n"
	s := start(t, server.Options{Args: []string{"--speculate", "all; least=0s; load=any"}})
	c := s.Client(1)
	defer c.Close()
	putPython(t, c, map[string]string{
		"slow": "import time\n\ndef main(args):\n    time.sleep(0.5)\n    return {}\n",
		"sets": redis + "def main(args):\n    r.set('c', 5, px=150)\n    time.sleep(0.25)\n    r.delete('c')\n    return {}\n",
		"adds": redis + "def main(args):\n    time.sleep(0.08)\n    return {'n': r.incr('c')}\n",
	})
	if err := c.PutSequence(t.Context(), "seq", "slow", "sets", "adds"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var result struct{ N int }
		r := invoke(t, c, "seq", map[string]int{})
		if decode(t, r.Response.Result, &result); result.N != 1 {
			t.Errorf("%s, and every execution in turn gives 1", r.Response.Result)
		}
	}
}
