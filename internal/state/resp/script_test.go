package resp_test

import (
	"strings"
	"testing"
	"time"
)

// script says lines to Redis and to us, each line on the connection whose name it begins with (one that ends in 3 speaks
// RESP3), and demands equal replies. "a > BLPOP k 0" goes on when the command waits, "a <" reads its reply, or what else
// comes, and "a ! GET k" reads none.
func script(t *testing.T, socket, lines string) {
	t.Helper()
	address := open(t).address
	talkTo(t, "unix", socket).say("FLUSHALL")
	redis, ours := map[string]*talker{}, map[string]*talker{}
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		who, args := words[0], words[1:]
		if redis[who] == nil {
			redis[who], ours[who] = talkTo(t, "unix", socket), talkTo(t, "tcp", address)
			if strings.HasSuffix(who, "3") {
				redis[who].say("HELLO", "3")
				ours[who].say("HELLO", "3")
			}
		}
		var want, got string
		switch args[0] {
		case "<":
			want, got = redis[who].reply(), ours[who].reply()
		case ">":
			redis[who].waits(talkTo(t, "unix", socket), args[1:])
			ours[who].waits(talkTo(t, "tcp", address), args[1:])
		case "!":
			redis[who].send(args[1:]...)
			ours[who].send(args[1:]...)
		default:
			want, got = redis[who].say(args...), ours[who].say(args...)
		}
		if want != got {
			t.Errorf("%s\nRedis    %s\nForerun  %s", strings.TrimSpace(line), want, got)
		}
	}
}

// waits says a command and returns when the server has one more that waits, which another connection is told.
func (k *talker) waits(other *talker, args []string) {
	k.t.Helper()
	blocked := func() string {
		_, after, _ := strings.Cut(other.say("INFO", "clients"), "blocked_clients:")
		n, _, _ := strings.Cut(after, `\r`)
		return n
	}
	before := blocked()
	k.send(args...)
	for deadline := time.Now().Add(2 * time.Minute); blocked() == before; {
		if time.Now().After(deadline) {
			k.t.Fatalf("%q does not wait", args)
		}
	}
}
