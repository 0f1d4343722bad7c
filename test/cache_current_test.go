package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

const cachePair = `
import os, redis
def main(args):
    a, b = redis.Redis.from_url(os.environ["REDIS_URL"]).mget("a", "b")
    return {"a": int(a), "b": int(b)}
`

// multiWriter writes two records in one transaction for each number that it is told, and repeats the number once that is acknowledged.
const multiWriter = `
import redis, sys
client = redis.Redis.from_url(sys.argv[1])
for line in sys.stdin:
    with client.pipeline(transaction=True) as p:
        p.set("a", int(line)).set("b", 1000 - int(line)).execute()
    print(line, end="", flush=True)
`

// staysCurrent reads two records with an annotated function, while redis-py writes both with MULTI. Their sum is constant. No answer is older than
// a write that was acknowledged before its request.
func staysCurrent(t *testing.T, s *server.Server, c *server.Client) {
	t.Helper()
	const writes = 40
	putCached(t, c, "pair", cachePair)
	python := exec.CommandContext(t.Context(), "python3", "-B", "-c", multiWriter, "redis://"+s.Auth+"@"+s.Redis)
	python.Env, python.Stderr = append(os.Environ(), "PYTHONPATH=../bin/runtimes/python/packages"), os.Stderr
	in, err := python.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := python.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := python.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = python.Wait() }()
	var begun, acknowledged atomic.Int64
	said := bufio.NewScanner(out)
	write := func(n int64) {
		begun.Store(n)
		if _, err := fmt.Fprintln(in, n); err != nil || !said.Scan() || said.Text() != strconv.FormatInt(n, 10) {
			t.Errorf("redis-py has not written %d: %v, %q", n, err, said.Text())
		}
		acknowledged.Store(n)
	}
	read := func() (cache string) {
		before := acknowledged.Load()
		cache, text, _ := asked(t, c, "pair")
		var is struct{ A, B int64 }
		if err := json.Unmarshal([]byte(text), &is); err != nil || is.A+is.B != 1000 || is.A < before || is.A > begun.Load() {
			t.Errorf("%s: %s (%v), when %d was acknowledged before, and %d had begun", cache, text, err, before, begun.Load())
		}
		return cache
	}
	write(0)
	over := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					read()
				}
			}
		})
	}
	for n := range int64(writes) {
		time.Sleep(rand.N(20 * time.Millisecond))
		write(n + 1)
	}
	close(over)
	readers.Wait()
	read()
	if cache := read(); cache != "hit" || !strings.HasPrefix(said.Text(), strconv.Itoa(writes)) {
		t.Errorf("after all writes it went %q", cache)
	}
}
