package resp_test

import (
	"strings"
	"testing"
)

// script says lines to Redis and to us, each line on the connection whose name it begins with (one that ends in 3 speaks
// RESP3), and demands equal replies.
func script(t *testing.T, socket, lines string) {
	t.Helper()
	address := open(t).address
	redis, ours := map[string]*talker{}, map[string]*talker{}
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		who, args := words[0], words[1:]
		if redis[who] == nil {
			if len(redis) == 0 {
				talkTo(t, "unix", socket).say("FLUSHALL")
			}
			redis[who], ours[who] = talkTo(t, "unix", socket), talkTo(t, "tcp", address)
			if strings.HasSuffix(who, "3") {
				redis[who].say("HELLO", "3")
				ours[who].say("HELLO", "3")
			}
		}
		if want, got := redis[who].say(args...), ours[who].say(args...); want != got {
			t.Errorf("%s\nRedis    %s\nForerun  %s", strings.TrimSpace(line), want, got)
		}
	}
}

func TestTransactionsAreThoseOfRedis(t *testing.T) {
	socket := startRedis(t)
	for name, lines := range map[string]string{
		"plain":              "a MULTI\n a SET k 1\n a INCR k\n a GET k\n b GET k\n a EXEC\n b GET k\n a EXEC",
		"none":               "a MULTI\n a EXEC\n a DISCARD\n a EXEC",
		"discard":            "a WATCH k\n a MULTI\n a SET k 1\n a DISCARD\n a GET k\n b SET k 2\n a MULTI\n a GET k\n a EXEC",
		"nested":             "a MULTI\n a MULTI\n a SET k 1\n a EXEC\n a GET k",
		"watch inside":       "a MULTI\n a WATCH k\n a SET k 1\n a EXEC\n a GET k",
		"error inside":       "a MULTI\n a SET k x\n a INCR k\n a LPUSH k v\n a APPEND k y\n a EXEC\n a GET k",
		"unknown":            "a MULTI\n a SET k 1\n a NONSENSE x\n a EXEC\n a GET k\n a SET k 2\n a EXEC",
		"arity":              "a MULTI\n a GET\n a PING a b c\n a SELECT\n a EXEC",
		"arity of our own":   "a MULTI\n a PING a b c\n a ECHO x\n a EXEC",
		"watch has none":     "a MULTI\n a SET k 1\n a WATCH\n a EXEC",
		"exec has arguments": "a MULTI\n a SET k 1\n a EXEC x\n a EXEC\n a GET k",
		"conflict":           "a WATCH k l\n b SET l 1\n a MULTI\n a SET k 1\n a EXEC\n a GET k\n a MULTI\n a SET k 2\n a EXEC",
		"own conflict":       "a WATCH k\n a SET k 1\n a MULTI\n a SET k 2\n a EXEC\n a GET k",
		"to and fro":         "a WATCH k\n b SET k 1\n b DEL k\n a MULTI\n a SET k 2\n a EXEC",
		"no change":          "a SADD k x\n a WATCH k\n b SADD k x\n b EXPIRE missing 1\n b DEL missing\n a MULTI\n a SCARD k\n a EXEC",
		"reads do not touch": "a SET k 1\n a WATCH k\n b GET k\n b STRLEN k\n b SETNX k 2\n b INCRBY k x\n a MULTI\n a GET k\n a EXEC",
		"expiry touches":     "a SET k 1\n a WATCH k\n b EXPIRE k 100\n a MULTI\n a GET k\n a EXEC",
		"unwatch":            "a WATCH k\n b SET k 1\n a UNWATCH\n a MULTI\n a GET k\n a EXEC",
		"unwatch inside":     "a WATCH k\n b SET k 1\n a MULTI\n a UNWATCH\n a GET k\n a EXEC",
		"watch twice":        "a WATCH k\n b SET k 1\n a WATCH k\n a MULTI\n a GET k\n a EXEC",
		"watch again":        "a WATCH k\n a MULTI\n a SET k 1\n a EXEC\n b SET k 2\n a MULTI\n a GET k\n a EXEC",
		"reset":              "a WATCH k\n a MULTI\n a SET k 1\n a RESET\n a GET k\n a EXEC",
		"quit":               "a MULTI\n a SET k 1\n a QUIT\n b GET k",
		"door's inside":      "a MULTI\n a PING\n a ECHO x\n a SET k v\n a SELECT 0\n a CLIENT SETNAME bob\n a CLIENT GETNAME\n a GET k\n a EXEC",
		"error of the door":  "a MULTI\n a SELECT 77\n a SET k v\n a EXEC",
		"expired watch":      "a SET k v PXAT 1\n a WATCH k\n a MULTI\n a GET k\n a EXEC",
		"RESP3":              "a3 WATCH k\n b SET k 1\n a3 MULTI\n a3 GET k\n a3 EXEC\n a3 MULTI\n a3 HSET h f v\n a3 HGETALL h\n a3 HGET h none\n a3 EXEC",
	} {
		t.Run(name, func(t *testing.T) { script(t, socket, lines) })
	}
}
