package resp_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
		"move to a member":   "a SADD s x y\n a SADD d x\n a WATCH d\n b SMOVE s d x\n a MULTI\n a SCARD d\n a EXEC\n a WATCH d\n b SMOVE s d y\n a MULTI\n a SCARD d\n a EXEC",
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

func TestKeySpaceIsThatOfRedis(t *testing.T) {
	socket := startRedis(t)
	for name, lines := range map[string]string{
		"sort":            "a RPUSH l 3 1 2 10\n a SORT l\n a SORT l DESC\n a SORT l ALPHA\n a SORT l LIMIT 1 2\n a SORT l LIMIT -1 2\n a SORT l LIMIT 2 -1\n a SORT l LIMIT 9 1\n a SORT l LIMIT 0 0\n a SORT l LIMIT x 1",
		"sort by":         "a RPUSH l a b c\n a MSET w_a 3 w_b 1 w_c 2 v_a A v_b B\n a SORT l BY w_* GET v_* GET #\n a SORT l BY w_* DESC GET w_* STORE d\n a LRANGE d 0 -1\n a SORT l BY v_* ALPHA\n a SORT l BY v_*",
		"sort by field":   "a RPUSH l 1 2\n a HSET h1 f 5 g x\n a HSET h2 f 4\n a SORT l BY h*->f GET h*->g GET h*->\n a SORT l BY x->*->f GET *h->f",
		"sort unsorted":   "a RPUSH l 3 1 2\n a SORT l BY nosort\n a SORT l BY nosort DESC\n a ZADD z 1 c 2 b 3 a\n a SORT z BY nosort DESC LIMIT 0 2\n a SADD s c a b\n a SORT s BY nosort DESC STORE d\n a LRANGE d 0 -1",
		"sort numbers":    "a RPUSH l 1e2 0x10 inf -inf 5\n a SORT l\n a RPUSH l x\n a SORT l\n a SORT l STORE d\n a EXISTS d\n a SORT missing STORE l\n a EXISTS l\n a SORT missing\n a RPUSH tiny 1 1e-310\n a SORT tiny",
		"object":          "a SET i 12\n a SET e hello\n a SET r 123456789012345678901234567890123456789012345\n a RPUSH l 1\n a SADD s 1 2\n a SADD t a\n a HSET h f v\n a ZADD z 1 a\n a OBJECT ENCODING i\n a OBJECT ENCODING e\n a OBJECT ENCODING r\n a OBJECT ENCODING l\n a OBJECT ENCODING s\n a OBJECT ENCODING t\n a OBJECT ENCODING h\n a OBJECT ENCODING z\n a OBJECT ENCODING none\n a OBJECT FREQ e\n a OBJECT REFCOUNT e\n a OBJECT IDLETIME e\n a OBJECT NONSENSE\n a OBJECT ENCODING",
		"rename":          "a SET a 1 PXAT 4000000000000\n a RENAME a b\n a PEXPIRETIME b\n a GET a\n a RENAME a b\n a RENAME b b\n a SET c 2\n a RENAMENX b c\n a RENAMENX b d\n a RENAME d c\n a MGET c d\n a PEXPIRETIME c",
		"copy":            "a HSET h f v\n a COPY h i\n a HGETALL i\n a HSET i f w\n a HGETALL h\n a COPY h i\n a COPY h i REPLACE\n a HGETALL i\n a COPY h h\n a COPY h j DB 0\n a COPY h j DB 1\n a COPY h j DB x\n a COPY none j",
		"flush":           "a MSET a 1 b 2\n a HSET h f v\n a WATCH a none\n b FLUSHDB\n a DBSIZE\n a HGETALL h\n a MULTI\n a GET a\n a EXEC\n a WATCH none\n b FLUSHALL SYNC\n a MULTI\n a DBSIZE\n a SET a 1\n a DBSIZE\n a FLUSHDB\n a DBSIZE\n a SET b 1\n a KEYS *\n a EXEC\n a RANDOMKEY",
		"cursors":         "a SCAN x\n a SCAN 99999999999999999999\n a SCAN 0\n a SCAN 0 COUNT\n a HSCAN none x\n a HSCAN none 0 COUNT x\n a SET k v\n a HSCAN k 0\n a SCAN 0 MATCH k* TYPE string COUNT 5\n a3 SCAN 0\n a3 ZADD z 1.5 a\n a3 ZSCAN z 0",
		"empty name":      "a SET \"\" v\n a KEYS *\n a SCAN 0 MATCH **",
		"unknown":         "a CLIENT\n a CLIENT NONSENSE\n a MULTI\n a CLIENT NONSENSE\n a EXEC",
		"own writes":      "a MULTI\n a RPUSH l 2 1\n a SORT l\n a KEYS *\n a HSET h f v\n a HSCAN h 0\n a DBSIZE\n a RENAME l m\n a LRANGE m 0 -1\n a EXEC",
		"flush and again": "a SET k v PXAT 4000000000000\n a FLUSHDB\n a SET k w\n a PEXPIRETIME k\n a PEXPIREAT k 4000000000000\n a DEL k\n a GET k",
	} {
		t.Run(name, func(t *testing.T) { script(t, socket, lines) })
	}
}

// TestLargeSteps: what one step answers or writes is bounded, however little asks for it, and then nothing is done.
func TestLargeSteps(t *testing.T) {
	k := talkTo(t, "tcp", open(t).address)
	k.say("SET", "v", strings.Repeat("x", 1<<20))
	k.say("HSET", "h", "f", strings.Repeat("x", 1<<20))
	many := func(words []string, word string) []string {
		return append(words, slices.Repeat([]string{word}, 300)...)
	}
	for _, words := range [][]string{many([]string{"MGET"}, "v"), many([]string{"HMGET", "h"}, "f")} {
		if got := k.say(words...); !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, "256 MiB") {
			t.Errorf("%s: %.100s", words[0], got)
		}
	}
	for _, words := range [][]string{{"GET", "v"}, {"COPY", "v", "w"}} {
		k.say("MULTI")
		for i := range 300 {
			if words[0] == "COPY" {
				words[2] = "w" + strconv.Itoa(i)
			}
			k.say(words...)
		}
		if got := k.say("EXEC"); !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, "256 MiB") {
			t.Errorf("EXEC of %s: %.100s", words[0], got)
		}
	}
	if got := k.say("DBSIZE"); got != ":2" {
		t.Errorf("a step that was refused left something: %s", got)
	}
}
