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
		"wrong":            "a BLPOP l x\n a BLPOP l -1\n a BLPOP l inf\n a BLPOP l nan\n a BLPOP l 1e400\n a BLPOP l 1e17\n a BLPOP l\n a SET s x\n a BLPOP l s 0\n a BLMOVE l m UP LEFT 0\n a BLMOVE s m LEFT LEFT 0\n a BLMPOP x 1 l LEFT\n a BLMPOP 0 0 l LEFT\n a BLMPOP 0 1 l UP\n a BLMPOP 0 1 l LEFT COUNT 0\n a BLMPOP x 0 l LEFT\n a BLMPOP x 1 l UP\n a BLMPOP -1 1 l LEFT COUNT x\n a BLMPOP x 2 l LEFT\n a BLMPOP x 1 s LEFT\n a BZMPOP x 0 z MIN\n a BZMPOP -1 1 z UP\n a BZMPOP x 1 s MIN\n a BZMPOP 0 1 s MIN\n a BRPOPLPUSH s m x\n a BLMOVE l m LEFT LEFT -1",
		"in a transaction": "a MULTI\n a BLPOP l 0\n a BLMOVE l m LEFT LEFT 0\n a BRPOPLPUSH l m 0\n a BLMPOP 0 1 l LEFT\n a BZPOPMIN z 0\n a RPUSH l 1\n a BLPOP l 0\n a EXEC",
		"pushed":           "a > BLPOP l 0\n b RPUSH l 1 2\n b LRANGE l 0 -1\n a <\n a BLPOP m l 0",
		"first come":       "a > BLPOP l 0\n b > BLPOP l 0\n c > BRPOP l m 0\n d RPUSH l 1 2 3 4\n a <\n b <\n c <\n d LRANGE l 0 -1",
		"one by one":       "a > BLPOP l 0\n b > BLPOP l 0\n d RPUSH l 1\n a <\n d EXISTS l\n d RPUSH l 2\n b <",
		"other types":      "a > BLPOP k 0\n b > BZPOPMIN k 0\n d SET k x\n d DEL k\n d ZADD k 1 m\n b <\n d EXISTS k\n d RPUSH k 1\n a <",
		"wrong beside":     "a > BLPOP k l 0\n d SET k x\n d RPUSH l 1\n a <",
		"moved on":         "a > BLMOVE l m LEFT RIGHT 0\n d RPUSH l 1 2\n a <\n d LRANGE m 0 -1\n a > BRPOPLPUSH n m 0\n d RPUSH n 3\n a <\n d LRANGE m 0 -1",
		"moved to wrong":   "a > BLMOVE l s LEFT RIGHT 0\n b > BLPOP l 0\n d SET s x\n d RPUSH l 1\n a <\n b <",
		"many at once":     "a > BLMPOP 0 2 k l RIGHT COUNT 2\n d RPUSH l 1 2 3\n a <\n d LRANGE l 0 -1\n a > BZMPOP 0 2 y z MAX COUNT 2\n d ZADD z 1 a 2 b 3 c\n a <\n d ZCARD z",
		"transaction":      "a > BLPOP l 0\n d MULTI\n d RPUSH l 1\n d LPUSH l 2\n d LLEN l\n d EXEC\n a <\n d LRANGE l 0 -1",
		"come and gone":    "a > BLPOP l 0\n d MULTI\n d RPUSH l 1\n d DEL l\n d EXEC\n d RPUSH l 2\n a <",
		"renamed":          "a > BLPOP l 0\n d RPUSH m 1\n d RENAME m l\n a <\n d EXISTS l m",
		"sorted":           "a > BLPOP l 0\n d RPUSH m 2 1\n d SORT m STORE l\n a <",
		"scores":           "a > BZPOPMAX z 0\n b3 > BZPOPMIN z 0\n d ZADD z 1 a 2 b 3 c\n a <\n b3 <\n d ZRANGE z 0 -1",
		"named twice":      "a > BLPOP k k 0.3\n d SET k v\n a <\n a > BZPOPMIN z z 0.3\n d SET z v\n a <\n d DEL k\n a > BLMPOP 0.3 3 k l k LEFT\n d SET k w\n a <\n a > BLPOP l l 0\n d RPUSH l 1\n a <",
		"pipelined":        "a > BLPOP l 0\n d RPUSH l 1\n a PING\n a <",
	} {
		t.Run(name, func(t *testing.T) { script(t, socket, lines) })
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
