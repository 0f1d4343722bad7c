package resp_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestWaitingIsThatOfRedis(t *testing.T) {
	socket := startRedis(t)
	for name, lines := range map[string]string{
		"at once":          "a RPUSH l 1 2 3 4\n a BLPOP none l 0\n a BRPOP l 1.5\n a BLMOVE l m LEFT RIGHT 0\n a BRPOPLPUSH l m 0\n a LRANGE m 0 -1\n a EXISTS l\n a ZADD z 1 a 2 b 3 c\n a BZPOPMIN z 0\n a BZPOPMAX z 0\n a BLMPOP 0 2 none m RIGHT COUNT 5\n a BZMPOP 0 1 z MIN",
		"at once, RESP3":   "a3 ZADD z 1 a 2.5 b\n a3 BZPOPMIN z 0\n a3 BZMPOP 0 1 z MAX\n a3 RPUSH l 1\n a3 BLPOP l 0",
		"time over":        "a BLPOP l 0.01\n a BRPOP l m 0.01\n a BLMOVE l m LEFT LEFT 0.01\n a BRPOPLPUSH l m 0.01\n a BLMPOP 0.01 1 l LEFT\n a BZPOPMIN z 0.01\n a BZMPOP 0.01 1 z MIN\n a3 BLPOP l 0.01\n a3 BLMOVE l m LEFT LEFT 0.01",
		"wrong":            "a BLPOP l x\n a BLPOP l -1\n  a BLPOP l nan\n a BLPOP l\n a SET s x\n a BLPOP l s 0\n a BLMOVE l m UP LEFT 0\n a BLMOVE s m LEFT LEFT 0\n a BLMPOP x 1 l LEFT\n a BLMPOP 0 0 l LEFT\n a BLMPOP 0 1 l UP\n a BLMPOP 0 1 l LEFT COUNT 0\n a BLMPOP x 0 l LEFT\n a BLMPOP x 1 l UP\n a BLMPOP -1 1 l LEFT COUNT x\n a BLMPOP x 2 l LEFT\n a BLMPOP x 1 s LEFT\n a BZMPOP x 0 z MIN\n a BZMPOP -1 1 z UP\n a BZMPOP x 1 s MIN\n a BZMPOP 0 1 s MIN\n a BRPOPLPUSH s m x\n a BLMOVE l m LEFT LEFT -1",
		"in a transaction": "a MULTI\n a BLPOP l 0\n a BLMOVE l m LEFT LEFT 0\n a BRPOPLPUSH l m 0\n a BLMPOP 0 1 l LEFT\n a BZPOPMIN z 0\n a RPUSH l 1\n a BLPOP l 0\n a EXEC",
		"pushed":           "a > BLPOP l 0\n b RPUSH l 1 2\n b LRANGE l 0 -1\n a <\n a BLPOP m l 0",
		"first come":       "a > BLPOP l 0\n b > BLPOP l 0\n c > BRPOP l m 0\n d RPUSH l 1 2 3 4\n a <\n b <\n c <\n d LRANGE l 0 -1",
		"one by one":       "a > BLPOP l 0\n b > BLPOP l 0\n d RPUSH l 1\n a <\n d EXISTS l\n d RPUSH l 2\n b <",
		"other types":      "a > BLPOP k 0\n b > BZPOPMIN k 0\n d SET k x\n d DEL k\n d ZADD k 1 m\n b <\n d EXISTS k\n d RPUSH k 1\n a <",
		"moved on":         "a > BLMOVE l m LEFT RIGHT 0\n d RPUSH l 1 2\n a <\n d LRANGE m 0 -1\n a > BRPOPLPUSH n m 0\n d RPUSH n 3\n a <\n d LRANGE m 0 -1",
		"moved to wrong":   "a > BLMOVE l s LEFT RIGHT 0\n b > BLPOP l 0\n d SET s x\n d RPUSH l 1\n a <\n b <",
		"many at once":     "a > BLMPOP 0 2 k l RIGHT COUNT 2\n d RPUSH l 1 2 3\n a <\n d LRANGE l 0 -1\n a > BZMPOP 0 2 y z MAX COUNT 2\n d ZADD z 1 a 2 b 3 c\n a <\n d ZCARD z",
		"transaction":      "a > BLPOP l 0\n d MULTI\n d RPUSH l 1\n d LPUSH l 2\n d LLEN l\n d EXEC\n a <\n d LRANGE l 0 -1",
		"come and gone":    "a > BLPOP l 0\n d MULTI\n d RPUSH l 1\n d DEL l\n d EXEC\n d RPUSH l 2\n a <",
		"renamed":          "a > BLPOP l 0\n d RPUSH m 1\n d RENAME m l\n a <\n d EXISTS l m",
		"sorted":           "a > BLPOP l 0\n d RPUSH m 2 1\n d SORT m STORE l\n a <",
		"scores":           "a > BZPOPMAX z 0\n b3 > BZPOPMIN z 0\n d ZADD z 1 a 2 b 3 c\n a <\n b3 <\n d ZRANGE z 0 -1",
		"named twice":      "a > BLPOP k k 0.3\n d SET k v\n a <\n a > BZPOPMIN z z 0.3\n d SET z v\n a <\n d DEL k\n a > BLMPOP 0.3 3 k l k LEFT\n d SET k w\n a <\n a > BLPOP l l 0\n d RPUSH l 1\n a <",
		"linked":           "a > BLMOVE l m RIGHT LEFT 0\n b > BLMOVE m n LEFT RIGHT 0\n d RPUSH l x\n d EXISTS l m\n d LRANGE n 0 -1\n a <\n b <",
		"circular":         "a > BRPOPLPUSH l m 0\n b > BRPOPLPUSH m l 0\n d RPUSH l x\n d LRANGE l 0 -1\n d EXISTS m\n a <\n b <",
		"to itself":        "a > BRPOPLPUSH l l 0\n d RPUSH l x\n d LRANGE l 0 -1\n a <",
		"chained":          "a > BRPOPLPUSH l m 0\n b > BLPOP m 0\n c > BRPOPLPUSH m n 0\n e > BLPOP n 0\n d RPUSH l 1 2\n d RPUSH l 3\n a <\n b <\n d RPUSH m 4\n c <\n e <\n d LRANGE l 0 -1\n d EXISTS m n",
		"chained order":    "a > BLMOVE l m LEFT RIGHT 0\n b > BLPOP n m 0\n c > BLPOP m 0\n d MULTI\n d RPUSH n 1\n d RPUSH l 2\n d EXEC\n b <\n c <\n a <\n d EXISTS l m n",
		"order of writes":  "a > BLMOVE l m LEFT RIGHT 0\n b > BLMOVE k m LEFT RIGHT 0\n d MULTI\n d RPUSH l 1\n d RPUSH k 2\n d EXEC\n a <\n b <\n d LRANGE m 0 -1",
		"served at once":   "a BLMOVE l m LEFT RIGHT 0.01\n b > BLPOP m 0\n a RPUSH l 1\n a BLMOVE l m LEFT RIGHT 0\n a EXISTS m\n b <",
		"many, blocked":    "a > BLMPOP 0 2 k l LEFT COUNT 1\n b > BLMPOP 0 2 k l RIGHT COUNT 3\n c > BLMPOP 0 1 l LEFT COUNT 2\n d RPUSH l 1 2 3 4 5\n a <\n b <\n c <\n d EXISTS l\n d RPUSH l 6 7 8\n d LRANGE l 0 -1",
		"over, then more":  "a > BLPOP l 0.05\n a <\n d RPUSH l 1\n d LLEN l",
		"pipelined":        "a > BLPOP l 0\n d RPUSH l 1\n a PING\n a <",
	} {
		t.Run(name, func(t *testing.T) { script(t, socket, lines) })
	}
}

// TestWaitingIsThatOfRedis72: a command that is served is executed as a whole, which Redis does since 7.2, and a timeout that is too
// large has an error of its own.
func TestWaitingIsThatOfRedis72(t *testing.T) {
	const wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	for name, c := range map[string]struct{ blocked, push, want string }{
		"the first that it names":  {"BLPOP k l 0", "RPUSH l 1|RPUSH k 2", `*2|$1 "k"|$1 "2"`},
		"another, of a wrong type": {"BLPOP k l 0", "SET k x|RPUSH l 1", wrong},
		"many, the first":          {"BLMPOP 0 2 k l LEFT COUNT 5", "RPUSH l 1|RPUSH k 2 3", `*2|$1 "k"|*2|$1 "2"|$1 "3"`},
		"scores, the first":        {"BZPOPMIN k l 0", "ZADD l 1 a|ZADD k 2 b", `*3|$1 "k"|$1 "b"|$1 "2"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			a, b := talkTo(t, "tcp", d.address), talkTo(t, "tcp", d.address)
			a.waits(b, strings.Fields(c.blocked))
			b.say("MULTI")
			for line := range strings.SplitSeq(c.push, "|") {
				b.say(strings.Fields(line)...)
			}
			b.say("EXEC")
			if got := a.reply(); got != c.want {
				t.Error(got)
			}
		})
	}
	k := talkTo(t, "tcp", open(t).address)
	for timeout, want := range map[string]string{
		"inf": "out of range", "1e400": "out of range", "1e17": "out of range", "0x7FFFFFFFFFFFFF": "out of range", "9223372036854775": "out of range",
		"-inf": "negative", "-1": "negative",
	} {
		if got := k.say("BLPOP", "l", timeout); got != "-ERR timeout is "+want {
			t.Errorf("%s: %s", timeout, got)
		}
	}
}

// TestNobodyWaitsForTheGone: what comes is not given to a client that has left, whatever it has sent before.
func TestNobodyWaitsForTheGone(t *testing.T) {
	for name, more := range map[string]string{"nothing": "", "much": strings.Repeat("PING\r\n", 20<<10)} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			gone, stays, other := talkTo(t, "tcp", d.address), talkTo(t, "tcp", d.address), talkTo(t, "tcp", d.address)
			gone.waits(other, []string{"BLPOP", "l", "0"})
			stays.waits(other, []string{"BLPOP", "l", "0"})
			if _, err := gone.conn.Write([]byte(more)); err != nil {
				t.Fatal(err)
			}
			gone.conn.Close()
			for strings.Contains(other.say("INFO", "clients"), "blocked_clients:2") {
			}
			other.say("RPUSH", "l", "1")
			if got := stays.reply(); got != `*2|$1 "l"|$1 "1"` {
				t.Error(got)
			}
		})
	}
}

// TestQueue has several clients take what others push: each item once.
func TestQueue(t *testing.T) {
	const items, takers = 300, 5
	d := open(t)
	taken := make(chan string, items)
	for range takers {
		k := talkTo(t, "tcp", d.address)
		go func() {
			for range items / takers {
				taken <- tree(k.say("BLPOP", "queue", "0")).items[1].head
			}
		}()
	}
	k := talkTo(t, "tcp", d.address)
	for i := range items {
		k.say("RPUSH", "queue", fmt.Sprint(i))
	}
	seen := map[string]bool{}
	for range items {
		item := <-taken
		if seen[item] {
			t.Errorf("%s was taken twice", item)
		}
		seen[item] = true
	}
}

// TestRankWithScore: ZRANK and ZREVRANK have Redis 7.2's option.
func TestRankWithScore(t *testing.T) {
	k := talkTo(t, "tcp", open(t).address)
	k.say("ZADD", "z", "1", "a", "2.5", "b")
	for line, want := range map[string]string{
		"ZRANK z b WITHSCORE":     `*2|:1|$3 "2.5"`,
		"ZREVRANK z b withscore":  `*2|:0|$3 "2.5"`,
		"ZRANK z none WITHSCORE":  "*-1",
		"ZRANK none b WITHSCORE":  "*-1",
		"ZRANK z none":            "$-1",
		"ZRANK z b SCORE":         "-ERR syntax error",
		"ZRANK z b WITHSCORE x":   "-ERR wrong number of arguments for 'zrank' command",
		"ZREVRANK z":              "-ERR wrong number of arguments for 'zrevrank' command",
		"ZREVRANK z none":         "$-1",
		"ZREVRANK z none unknown": "-ERR syntax error",
	} {
		if got := k.say(strings.Fields(line)...); got != want {
			t.Errorf("%s: %s; want %s", line, got, want)
		}
	}
}
