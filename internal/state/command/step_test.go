package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// classes says of commands what they do: to each key, whether its value matters (r) and whether it is written (w), and then
// whether the command is held, and whether it is inexact. A class is followed by its commands.
const classes = `
a:r
GET a
STRLEN a
GETRANGE a 0 1
SUBSTR a 0 1
GETEX a
EXISTS a
TOUCH a
TYPE a
EXPIRETIME a
PEXPIRETIME a
SORT a ALPHA
SORT_RO a
BITCOUNT a
BITFIELD a GET u8 0
BITFIELD_RO a GET u8 0
BITPOS a 1
GETBIT a 1
PFCOUNT a
HGET a f
HMGET a f g
HGETALL a
HKEYS a
HVALS a
HLEN a
HEXISTS a f
HSTRLEN a f
LLEN a
LRANGE a 0 1
LINDEX a 0
LPOS a x
SMEMBERS a
SISMEMBER a x
SMISMEMBER a x y
SCARD a
ZCARD a
ZCOUNT a 0 1
ZLEXCOUNT a - +
ZMSCORE a x
ZRANGE a 0 1
ZRANGEBYLEX a - +
ZRANGEBYSCORE a 0 1
ZRANK a x
ZREVRANGE a 0 1
ZREVRANGEBYLEX a + -
ZREVRANGEBYSCORE a 1 0
ZREVRANK a x
ZSCORE a x
a:r b:r
MGET a b a
EXISTS a b
LCS a b
SDIFF a b
SINTER a b
SINTERCARD 2 a b
SUNION a b
ZDIFF 2 a b
ZINTER 2 a b
ZINTERCARD 2 a b
ZUNION 2 a b
a:w
SET a 1
SET a 1 PXAT 5
a:w inexact
SET a 1 EX 5
SETEX a 5 1
PSETEX a 5 1
a:w b:w
MSET a 1 b 2
a:rw
SET a 1 NX
SET a 1 GET
SET a 1 KEEPTTL
SETNX a 1
GETSET a 1
GETDEL a
APPEND a 1
SETRANGE a 0 x
INCR a
DECR a
INCRBY a 1
DECRBY a 1
INCRBYFLOAT a 1
DEL a
UNLINK a
EXPIREAT a 5
PEXPIREAT a 5
PERSIST a
BITFIELD a SET u8 0 1
SETBIT a 0 1
PFADD a x
HSET a f 1
HMSET a f 1
HSETNX a f 1
HDEL a f
HINCRBY a f 1
HINCRBYFLOAT a f 1
LPUSH a x
RPUSH a x
LPUSHX a x
RPUSHX a x
LPOP a
RPOP a
LINSERT a BEFORE x y
LSET a 0 x
LREM a 0 x
LTRIM a 0 1
LMOVE a a LEFT RIGHT
SADD a x
SREM a x
ZADD a 1 x
ZINCRBY a 1 x
ZPOPMAX a
ZPOPMIN a
ZREM a x
ZREMRANGEBYLEX a - +
ZREMRANGEBYRANK a 0 1
ZREMRANGEBYSCORE a 0 1
RENAME a a
SUNIONSTORE a a
a:rw inexact
EVAL x 1 a
EVALSHA x 1 a
EXPIRE a 5
PEXPIRE a 5
GETEX a EX 5
SET a 1 NX PX 5
a:r inexact
EVAL_RO x 1 a
EVALSHA_RO x 1 a
TTL a
PTTL a
a:rw b:rw
DEL a b
MSETNX a 1 b 2
RENAMENX a b
LMOVE a b LEFT RIGHT
LMPOP 2 a b LEFT
RPOPLPUSH a b
SMOVE a b x
ZMPOP 2 a b MIN
a:rw b:w
RENAME a b
a:r b:rw
COPY a b
COPY a b REPLACE
SORT a STORE b
a:rw b:r
PFMERGE a b
SINTERSTORE a a b
a:w b:r c:r
BITOP AND a b c
SDIFFSTORE a b c
SINTERSTORE a b c
SUNIONSTORE a b c
ZDIFFSTORE a 2 b c
ZINTERSTORE a 2 b c
ZUNIONSTORE a 2 b c
a:w b:r
ZRANGESTORE a b 0 1
a:r hold inexact
OBJECT ENCODING a
SORT a BY w_*
SORT a GET #
SORT_RO a BY w_*
HRANDFIELD a
HSCAN a 0
SRANDMEMBER a
SSCAN a 0
ZRANDMEMBER a
ZSCAN a 0
a:rw hold inexact
SPOP a
BLPOP a 0
BRPOP a 0
BLMPOP 0 1 a LEFT
BZPOPMIN a 0
BZPOPMAX a 0
BZMPOP 0 1 a MIN
a:r b:rw hold inexact
SORT a BY w_* STORE b
a:rw b:rw hold inexact
BLMOVE a b LEFT RIGHT 0
BRPOPLPUSH a b 0
hold inexact
EVAL x 0
KEYS *
SCAN 0
RANDOMKEY
DBSIZE
FLUSHDB
FLUSHALL

GET
NONSENSE a
`

// class says what a step does.
func (s *Step) class() string {
	roles := map[string]string{}
	for _, k := range s.Reads() {
		roles[k.Name] += "r"
	}
	for _, k := range s.Writes() {
		roles[k.Name] += "w"
	}
	var parts []string
	for name, role := range roles {
		parts = append(parts, name+":"+role)
	}
	slices.Sort(parts)
	if s.Holds() {
		parts = append(parts, "hold")
	}
	if s.Inexact() != "" {
		parts = append(parts, "inexact")
	}
	return strings.Join(parts, " ")
}

func TestEveryCommandHasAClass(t *testing.T) {
	named := map[string]bool{}
	class := ""
	for line := range strings.Lines(strings.TrimPrefix(classes, "\n")) {
		line = strings.TrimSuffix(line, "\n")
		if line != strings.ToUpper(line) && line[0] != strings.ToUpper(line)[0] || line == "" {
			class = line
			continue
		}
		args := bytes.Fields([]byte(line))
		named[strings.ToLower(string(args[0]))] = true
		if got := NewStep("space", time.UnixMilli(1000), args).class(); got != class {
			t.Errorf("%s: %s, want %s", line, got, class)
		}
	}
	for _, s := range All() {
		if s.Implemented() && !named[s.Name] {
			t.Errorf("%s has no class", s.Name)
		}
	}
}

func TestTransactionHasTheClassesOfItsCommands(t *testing.T) {
	var commands [][][]byte
	for _, line := range []string{"SET a 1", "GET b", "TTL c", "INCR b", "NONSENSE"} {
		commands = append(commands, bytes.Fields([]byte(line)))
	}
	s := NewTransaction("space", time.UnixMilli(1000), []state.Expect{{Key: forerun.Key{Space: "space", Name: "d"}}}, commands)
	if got := s.class(); got != "a:w b:rw c:r d:r inexact" {
		t.Error(got)
	}
}

func TestStepsOfManyKeysNameEachOnce(t *testing.T) {
	args := [][]byte{[]byte("MGET")}
	for i := range 300 {
		args = append(args, fmt.Append(nil, i%100))
	}
	s := NewStep("space", time.UnixMilli(1000), args)
	if len(s.Reads()) != 100 || s.Reads()[99].Name != "99" {
		t.Errorf("%d keys", len(s.Reads()))
	}
}

// TestStepOwnsItsArguments changes the arguments behind a step's back, as the buffer of a connection does.
func TestStepOwnsItsArguments(t *testing.T) {
	args := bytes.Fields([]byte("SET a value"))
	s := NewStep("space", time.UnixMilli(1000), args)
	for _, arg := range args {
		copy(arg, "xxxxx")
	}
	o, writes := new(Executor).Execute(s, nil)
	read := NewStep("space", time.UnixMilli(1000), bytes.Fields([]byte("GET a")))
	got, _ := new(Executor).Execute(read, writes)
	if o.Err != nil || string(got.Replies[0].Text) != "value" {
		t.Errorf("%v, %s", o.Err, show(got.Replies[0]))
	}
}

func TestRefusedStepsWriteNothing(t *testing.T) {
	for line, writes := range map[string]bool{"SET a 1 EX 0": false, "NONSENSE": false, "GET a": true, "SET a 1": true} {
		_, images := new(Executor).Execute(NewStep("space", time.UnixMilli(1000), bytes.Fields([]byte(line))), []state.Image{&Image{}})
		if (images != nil) != writes {
			t.Errorf("%s: %v", line, images)
		}
	}
}

// TestLongSteps: a step that does much is not executed on images, whether one command does, many do, or what it has made itself is large.
// What is found without a walk does not count, however large it is.
func TestLongSteps(t *testing.T) {
	const few, many, more = 1000, 12_000, 24_000
	images := map[string]state.Image{}
	for name, line := range map[string]string{
		"s": "SET s " + strings.Repeat("x", maxWork*3/5), "b": "SET b " + strings.Repeat("x", 24<<20), "t": "SET t " + strings.Repeat("x", 2000), "l": "RPUSH l" + numbered(" ", many),
		"h": "HSET h" + numbered(" f 1 g", few), "m": "SADD m" + numbered(" ", few), "z": "ZADD z" + numbered(" 1 m", few),
	} {
		_, images[name] = executed(images, line)
	}
	for n := few; n < more; n += few {
		_, images["z"] = executed(images, "ZADD z"+numbered(fmt.Sprintf(" 1 %d-", n), few))
		_, images["m"] = executed(images, "SADD m"+numbered(fmt.Sprintf(" %d-", n), few))
	}
	for _, c := range []struct{ line, long string }{
		{"GET s; GETRANGE s 0 1; STRLEN s; SET s x; GET s", ""},
		{"APPEND s x; APPEND s x", ""},
		{"BITCOUNT s", ""},
		{"BITCOUNT s 0 1; BITCOUNT s; BITCOUNT s 5 6", ""},
		{"BITCOUNT s; BITCOUNT s", "BITCOUNT"},
		{"BITCOUNT s; BITPOS s 0", "BITPOS"},
		{"BITOP AND d s s", "BITOP"},
		{"APPEND s x; APPEND s x; APPEND s x; APPEND s x; APPEND s x", "APPEND"},
		{"SETBIT b 0 1", "SETBIT"},
		{"BITFIELD b SET u8 0 1", "BITFIELD"},
		{"BITFIELD s GET u8 0", ""},
		{"SETRANGE d 30000000 x", "SETRANGE"},
		{"EXPIRE b 10; EXPIRE b 20", "EXPIRE"},
		{"LCS t t", "LCS"},
		{"APPEND u xx; LCS t u", ""},
		{"LRANGE l 0 -1", ""},
		{"LRANGE l 0 -1; LRANGE l 10 20; LPOP l", ""},
		{"LRANGE l 0 -1; LRANGE l 0 -1", "LRANGE"},
		{"LRANGE l 0 6000; LPOP l 12000", "LPOP"},
		{"LTRIM l 0 100; LPUSH l x", ""},
		{"HGETALL h; HVALS h", ""},
		{"SMEMBERS m", "SMEMBERS"},
		{"SISMEMBER m 1; SADD m x; SCARD m; DEL m", ""},
		{"ZPOPMIN z; ZRANGE z 5000 5010; ZRANK z 1000-1; ZREMRANGEBYRANK z 0 10", ""},
		{"ZUNIONSTORE d 1 z", "ZUNIONSTORE"},
		{"COPY z d", "COPY"},
		{"MSET" + numbered(" k v k", few), ""},
		{"MSET" + numbered(" k", 2*more), "MSET"},
		{"SADD m" + strings.Repeat(" 1", more), "SADD"},
		{"HMGET h" + strings.Repeat(" f", 14_000), ""},
		{"HMGET h" + strings.Repeat(" f", 15_500), "HMGET"},
		{"PFADD p " + strings.Repeat("x", maxWork+1), "PFADD"},
		{strings.Repeat("PFADD p x; ", maxWork/hllRegisters-100) + "PFCOUNT p", ""},
		{strings.Repeat("PFADD p x; ", maxWork/hllRegisters+1) + "PFCOUNT p", "PFADD"},
		{"BITFIELD t" + strings.Repeat(" GET u8 0", 30_000), ""},
		{"BITFIELD t" + strings.Repeat(" GET u8 0", 36_000), "BITFIELD"},
		{"MGET" + numbered(" ", 10_000), ""},
		{"MGET" + numbered(" ", 20_000), "MGET"},
		{"MSET" + numbered(" ", 20_000), ""},
		{"SET d " + strings.Repeat("x", 16<<20), ""},
	} {
		o, _ := executed(images, strings.Split(c.line, "; ")...)
		name := o.Long.Rest().Command
		if name != c.long || o.Err != nil || (o.Replies == nil) != (name != "") {
			t.Errorf("%.50s: %q, %v", c.line, name, o.Err)
		}
		if o.Long != nil && o.Long.Code != forerun.ReasonTakesLong {
			t.Errorf("%.50s: %v", c.line, o.Long)
		}
	}
}

// TestLargeStepsHold: a step that takes long whatever its records are waits before any of them is looked for, and names none.
func TestLargeStepsHold(t *testing.T) {
	for _, c := range []struct{ line, held string }{
		{"MGET" + numbered(" ", 10_000), ""},
		{"MGET" + numbered(" ", 20_000), tooLong("MGET").String()},
		{"DEL" + numbered(" ", 10_000), ""},
		{"DEL" + numbered(" ", 15_000), tooLong("DEL").String()},
		{"MSET" + numbered(" ", 20_000), ""},
		{"MSET" + numbered(" ", 24_000), tooLong("MSET").String()},
		{"SET a " + strings.Repeat("x", 16<<20), ""},
		{"SET a " + strings.Repeat("x", 5*maxWork), tooLong("SET").String()},
		{"ZADD z NX XX" + strings.Repeat(" 1 m", 70_000), tooLong("ZADD").String()},
		{"GET a; EXISTS" + numbered(" ", 20_000) + "; GET b", tooLong("EXISTS").String()},
		{"SPOP s; EXISTS" + numbered(" ", 20_000), Held("spop").String()},
	} {
		var commands [][][]byte
		for line := range strings.SplitSeq(c.line, "; ") {
			commands = append(commands, bytes.Fields([]byte(line)))
		}
		s := NewTransaction("", time.UnixMilli(1000), nil, commands)
		if s.Held().String() != c.held || s.Holds() && len(s.Reads())+len(s.Writes()) > 1 || len(s.Commands()) != len(commands) {
			t.Errorf("%.50s: %q, with %d and %d records", c.line, s.Held().String(), len(s.Reads()), len(s.Writes()))
		}
	}
}

// executed executes the commands of a step on images, where what is not among them is absent, and returns what it made of the first
// record that it writes.
func executed(images map[string]state.Image, lines ...string) (o Outcome, made state.Image) {
	var commands [][][]byte
	for _, line := range lines {
		commands = append(commands, bytes.Fields([]byte(line)))
	}
	s := NewTransaction("", time.UnixMilli(1000), nil, commands)
	if s.Holds() {
		return Outcome{Long: s.Held()}, nil
	}
	reads := make([]state.Image, len(s.Reads()))
	for i, k := range s.Reads() {
		if reads[i] = images[k.Name]; reads[i] == nil {
			reads[i] = &Image{}
		}
	}
	o, writes := new(Executor).Execute(s, reads)
	if len(writes) > 0 {
		made = writes[0]
	}
	return o, made
}
