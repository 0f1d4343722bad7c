package test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/test/compare"
	"forerun.dev/forerun/test/server"
)

// posting is a function that sends something to the outside, has time for it, and does not wait for the answer.
const posting = `
import os, threading, time, urllib.request

def post(args):
    urllib.request.urlopen(args["url"], ("a!" + args["word"]).encode()).read()

def main(args):
    BEGIN
    time.sleep(1)
    return args
`

// TestUnheard: what a function sends to the outside and does not wait for goes out, also if the function ran ahead and has ended before
// its turn.
func TestUnheard(t *testing.T) {
	address := needOutside(t)
	t.Parallel()
	s := start(t, server.Options{Redis: true, Args: []string{"--speculate", "all; least=0s; load=any", "--egress-allow", address.String() + "/32"}})
	c := client(t, s)
	o, err := compare.NewOutside(address.String(), func(context.Context, []string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	ways := []string{"thread", "child"}
	putPython(t, c, map[string]string{
		"slow":   "import time\ndef main(args):\n    time.sleep(2.5)\n    return args\n",
		"thread": strings.Replace(posting, "BEGIN", "threading.Thread(target=post, args=(args,)).start()", 1),
		"child":  strings.Replace(posting, "BEGIN", "if os.fork() == 0:\n        post(args)\n        os._exit(0)", 1),
	})
	for _, way := range ways {
		if err := c.PutSequence(t.Context(), way+"s", "slow", way); err != nil {
			t.Fatal(err)
		}
		const times = 3
		for range times {
			code, body, err := c.Do(t.Context(), http.MethodPost, "actions/"+way+"s?blocking=true&result=true", map[string]any{"url": o.URL, "word": way})
			if err != nil || code != http.StatusOK {
				t.Fatalf("%s: %d %s %v", way, code, body, err)
			}
		}
		if sent := o.Take(""); len(sent) != times {
			t.Errorf("%s: of %d posts these arrived: %q", way, times, sent)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, metrics := send(t, r); strings.Contains(metrics, `forerun_squashes_total{cause="failure"} 0`) {
		t.Errorf("nothing ran ahead and had to run again:\n%s", metrics)
	}
}

// flooding is a function that sends more datagrams than are to wait for its turn, with the time to read each.
const flooding = `
import socket, time

def main(args):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for n in range(COUNT):
        s.sendto(args["word"].encode(), (args["host"], args["udp"]))
        time.sleep(0.0003)
    time.sleep(args["lasts"])
    return args
`

// TestFlood: each of many datagrams that a function sends goes out once, also if it ran ahead and has ended, or runs on, when its turn comes.
func TestFlood(t *testing.T) {
	address := needOutside(t)
	t.Parallel()
	s := start(t, server.Options{Redis: true, Args: []string{"--speculate", "all; least=0s; load=any", "--egress-allow", address.String() + "/32"}})
	c := client(t, s)
	e := newEar(t, address)
	const count, times = 300, 3
	putPython(t, c, map[string]string{
		"slow":  "import time\ndef main(args):\n    time.sleep(1.5)\n    return args\n",
		"flood": strings.Replace(flooding, "COUNT", strconv.Itoa(count), 1),
	})
	if err := c.PutSequence(t.Context(), "floods", "slow", "flood"); err != nil {
		t.Fatal(err)
	}
	for way, lasts := range map[string]float64{"ends": 0, "runs on": 0.5} {
		for range times {
			code, body, err := c.Do(t.Context(), http.MethodPost, "actions/floods?blocking=true&result=true", map[string]any{"host": e.host, "udp": e.udp, "word": way, "lasts": lasts})
			if err != nil || code != http.StatusOK {
				t.Fatalf("%s: %d %s %v", way, code, body, err)
			}
		}
		var sent []string
		for deadline := time.Now().Add(patience); len(sent) < count*times && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			sent = append(sent, e.take()...)
		}
		if len(sent) != count*times || slices.ContainsFunc(sent, func(word string) bool { return word != way }) {
			t.Errorf("%s: of %d datagrams %d arrived: %q", way, count*times, len(sent), slices.Compact(sent))
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, metrics := send(t, r); strings.Contains(metrics, `forerun_squashes_total{cause="failure"} 0`) {
		t.Errorf("nothing ran ahead and had to run again:\n%s", metrics)
	}
}
