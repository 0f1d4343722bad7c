package apps

import (
	"fmt"
	"strings"
)

// The commands of functions: KEY and OTHER are records of the kind that the line begins with, V is a value, N a number.
const commandLines = `
n INCR KEY
n INCR KEY
n INCR KEY
n INCRBY KEY N
n DECR KEY
n GET KEY
n GET KEY
n SET KEY {k}
n SET KEY V
n SETNX KEY N
n GETSET KEY N
n SET KEY V NX GET
n SET KEY N XX
n GETDEL KEY
n INCRBYFLOAT KEY 0.1
n APPEND KEY N
n STRLEN KEY
n MGET KEY OTHER
n MSET KEY N OTHER V
n MSETNX KEY N OTHER V
n DEL KEY
n EXISTS KEY OTHER
n RENAME KEY OTHER
n COPY KEY OTHER REPLACE
n TYPE KEY
n SETEX KEY 1000 N
n EXPIRE KEY 1000
n EXPIRE KEY 1000 NX
n PERSIST KEY
n GETEX KEY PERSIST
n SETBIT KEY N 1
n BITCOUNT KEY
n GETRANGE KEY 0 2
n SETRANGE KEY 2 V
n LPUSH KEY V
l RPUSH KEY {k}
l RPUSH KEY V
l RPUSH KEY V N
l LPUSH KEY V
l LPOP KEY
l RPOP KEY 2
l LLEN KEY
l LRANGE KEY 0 -1
l LINDEX KEY 0
l LSET KEY 0 V
l LTRIM KEY -5 -1
l LREM KEY 1 {k}
l LMOVE KEY OTHER LEFT RIGHT
l LINSERT KEY BEFORE {k} V
l LPOS KEY V
l RPUSHX KEY V
l DEL KEY
l SORT KEY ALPHA
l INCR KEY
h HSET KEY a {k}
h HSET KEY b V c N
h HGET KEY a
h HGETALL KEY
h HINCRBY KEY n N
h HINCRBY KEY a 1
h HINCRBYFLOAT KEY f 0.1
h HDEL KEY a
h HKEYS KEY
h HVALS KEY
h HLEN KEY
h HMGET KEY a b x
h HSETNX KEY a V
h HEXISTS KEY a
h GET KEY
s SADD KEY {k}
s SADD KEY V N
s SREM KEY V
s SMEMBERS KEY
s SISMEMBER KEY V
s SCARD KEY
s SINTER KEY OTHER
s SUNIONSTORE KEY OTHER KEY
s SMOVE KEY OTHER V
s SDIFF KEY OTHER
s EXPIRE KEY 0
z ZADD KEY N V
z ZADD KEY {k} m
z ZADD KEY INCR 1 V
z ZINCRBY KEY N V
z ZRANGE KEY 0 -1 WITHSCORES
z ZRANGEBYSCORE KEY -inf 5
z ZRANK KEY V
z ZSCORE KEY V
z ZREM KEY V
z ZPOPMIN KEY
z ZCARD KEY
z ZCOUNT KEY 0 3
z ZUNIONSTORE KEY 2 KEY OTHER
z ZRANGESTORE KEY OTHER 0 -1
z PFADD KEY V
n NOSUCH KEY
n GET
`

var commandTable = strings.Split(strings.TrimSpace(commandLines), "\n")

// key is a record of a kind, of those that the prefix gives; now and then one of another kind.
func (g *generator) key(at, kind string) string {
	if g.chance(20) {
		kind = pick(g, "n", "l", "h", "s", "z")
	}
	return fmt.Sprint(at, ":", kind, g.IntN(2))
}

// command is a random command on records of a prefix.
func (g *generator) command(at string) []string {
	words := strings.Fields(pick(g, commandTable...))
	kind := words[0]
	words = words[1:]
	for i, word := range words {
		switch word {
		case "KEY", "OTHER":
			words[i] = g.key(at, kind)
		case "V":
			words[i] = pick(g, "a", "b", "{k}", "{p}", "é☃", "3")
		case "N":
			words[i] = fmt.Sprint(g.IntN(5))
		}
	}
	return words
}

func (g *generator) commands(n int) [][]string {
	var list [][]string
	for range n {
		list = append(list, g.command("{at}"))
	}
	return list
}

// write is a command of another client, which changes records that functions read.
func (g *generator) write(at string) []string {
	return pick(g,
		[]string{"INCR", g.key(at, "n")}, []string{"SET", g.key(at, "n"), fmt.Sprint(g.IntN(9))}, []string{"DEL", g.key(at, "n"), g.key(at, "l")}, []string{"RPUSH", g.key(at, "l"), "other"},
		[]string{"HSET", g.key(at, "h"), "a", "7"}, []string{"SADD", g.key(at, "s"), "other"}, []string{"ZADD", g.key(at, "z"), "2", "m"}, []string{"INCRBY", g.key(at, "n"), "2"},
	)
}

// global is a command on records that it does not name, or whose answer is by chance.
func (w *writer) global() script {
	out := w.out()
	switch w.IntN(9) {
	case 0:
		return script{{"redis", out, "KEYS", pick(w.generator, "*", "{at}*", "*n?")}}
	case 1:
		return script{{"redis", out, "DBSIZE"}}
	case 2:
		return script{{"redis", out, "SCAN", "0", "MATCH", "{at}:*", "COUNT", "1000"}}
	case 3:
		return script{ // the loops around it count their turns
			{"redis", "u", "INCRBY", "{at}:turn", "0"}, {"redis", out, pick(w.generator, "FLUSHDB", "FLUSHALL")}, {"redis", "u", "SET", "{at}:turn", "{u}"},
		}
	case 4:
		return script{{"redis", out, "TIME"}, {"forget", out}}
	case 5:
		return script{{"redis", out, "SET", "{at}:n0", "1"}, {"redis", out, "RANDOMKEY"}, {"forget", out}}
	case 6:
		key := w.key("{at}", "s")
		return script{{"redis", out, "DEL", key}, {"redis", out, "SADD", key, "only"}, {"redis", out, "SRANDMEMBER", key}, {"redis", w.out(), "SPOP", key}}
	case 7:
		key := w.key("{at}", "n")
		return script{{"redis", out, "SET", key, "{k}", "EX", "1000"}, {"redis", out, "TTL", key}, {"forget", out}}
	}
	return script{{"redis", out, "PUBLISH", "{at}:channel", "word"}}
}
