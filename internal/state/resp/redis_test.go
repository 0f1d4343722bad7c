package resp_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"forerun.dev/forerun/test/history"
)

// startRedis starts a real Redis on a socket of its own, and returns where.
func startRedis(t testing.TB) string {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not on PATH: the comparison with a real Redis is left out (apt-get install redis-server)")
	}
	socket := filepath.Join(t.TempDir(), "redis")
	cmd := exec.Command(binary, "--port", "0", "--unixsocket", socket, "--save", "", "--databases", "1", "--daemonize", "no")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return socket
		}
	}
	t.Fatal("Redis did not start")
	return ""
}

// talker sends commands and reads replies as text that can be compared.
type talker struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func talkTo(t *testing.T, network, address string) *talker {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return newTalker(t, conn)
}

func newTalker(t *testing.T, conn net.Conn) *talker { return &talker{t, conn, bufio.NewReader(conn)} }

func (k *talker) say(args ...string) string {
	k.t.Helper()
	k.send(args...)
	return k.reply()
}

// send sends a command.
func (k *talker) send(args ...string) {
	k.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(k.conn, b.String()); err != nil {
		k.t.Fatal(err)
	}
}

// raw sends bytes and reads one reply; "EOF" if the connection ends.
func (k *talker) raw(bytes string) string {
	k.t.Helper()
	if _, err := io.WriteString(k.conn, bytes); err != nil {
		k.t.Fatal(err)
	}
	return k.reply()
}

func (k *talker) reply() string {
	k.t.Helper()
	line, err := k.r.ReadString('\n')
	if line == "" && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		return "EOF"
	}
	if err != nil {
		k.t.Fatal(err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch line[0] {
	case '-':
		return strings.ReplaceAll(line, "|", "!") // which keeps items apart here
	case '$', '=':
		return line + k.text(line)
	case '*', '~', '%', '>':
		return k.items(line)
	}
	return line
}

func (k *talker) text(line string) string {
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 0 {
		return ""
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(k.r, text); err != nil {
		k.t.Fatal(err)
	}
	return " " + strconv.Quote(string(text[:n]))
}

func (k *talker) items(line string) string {
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		k.t.Fatalf("a reply begins with %q", line)
	}
	if line[0] == '%' {
		n *= 2
	}
	parts := []string{line}
	for range n {
		parts = append(parts, k.reply())
	}
	return strings.Join(parts, "|")
}

// unordered are the commands whose replies have no order, with the number of items that belong together.
var unordered = map[string]int{"HGETALL": 2, "HKEYS": 1, "HVALS": 1, "SMEMBERS": 1, "SINTER": 1, "SUNION": 1, "SDIFF": 1}

// canonical sorts a reply that has no order.
func canonical(name, reply string) string {
	group, ok := unordered[name]
	if !ok {
		return reply
	}
	parts := strings.Split(reply, "|")
	var groups []string
	for chunk := range slices.Chunk(parts[1:], group) {
		groups = append(groups, strings.Join(chunk, "="))
	}
	slices.Sort(groups)
	return parts[0] + "|" + strings.Join(groups, "|")
}

// same compares replies; remaining times, and moments counted from now, may differ by the time between the two calls.
func same(name, a, b string) bool {
	if a == b || !strings.HasSuffix(name, "TTL") && !strings.HasSuffix(name, "EXPIRETIME") {
		return a == b
	}
	m, err1 := strconv.Atoi(a[1:])
	n, err2 := strconv.Atoi(b[1:])
	fixed := m/1_000_000_000 == 4 || m/1_000_000_000_000 == 4 // what was set as a moment
	return err1 == nil && err2 == nil && m > 0 && n > 0 && max(m-n, n-m) < 2000 && !fixed
}

// shapes are the commands with the kinds of their arguments: k key, f field or member, v value, i integer, r a rank, d float,
// s or m a time to live in seconds or milliseconds, S or M a moment, z a score, b a bound of scores, L one of members, n a
// number of keys, A a way to aggregate, e one of many elements, q one of many small numbers, B a bit, o an offset of a bit,
// t a type of BITFIELD, w a value for it, |a|b one of some words; words in brackets are options of which any may follow,
// and words behind n* come n times. They stand by the type of the records that they want.
var shapes = map[string][]string{
	"string": {
		"GET k", "SET k v", "SET k v [EX:s PX:m EXAT:S PXAT:M NX XX KEEPTTL GET]", "SETNX k v", "SETEX k s v", "PSETEX k m v",
		"GETSET k v", "GETDEL k", "GETEX k [EX:s PX:m EXAT:S PXAT:M PERSIST]", "APPEND k v", "STRLEN k", "GETRANGE k i i",
		"SUBSTR k i i", "SETRANGE k i v", "INCR k", "DECR k", "INCRBY k i", "DECRBY k i", "INCRBYFLOAT k d", "MGET k k k",
		"MSET k v k v", "MSETNX k v k v",
		"LCS k k", "LCS k k [LEN IDX WITHMATCHLEN MINMATCHLEN:i]",
	},
	"bits": {
		"SET k v", "GET k", "SETBIT k o B", "SETBIT k o B", "SETBIT k o B", "GETBIT k o", "BITCOUNT k", "BITCOUNT k i i", "BITCOUNT k i i |BIT|byte|x", "BITCOUNT k i",
		"BITPOS k B", "BITPOS k B i", "BITPOS k B i i", "BITPOS k B i i |bit|BYTE|x", "BITOP |AND|OR|XOR|NOT|x k k", "BITOP |and|or|xor|NOT k k k k",
		"BITFIELD k GET t o", "BITFIELD k SET t o w", "BITFIELD k INCRBY t o w", "BITFIELD k OVERFLOW |WRAP|SAT|FAIL|x INCRBY t o w SET t o w GET t o",
		"BITFIELD k", "BITFIELD_RO k GET t o GET t o", "BITFIELD_RO k SET t o w",
	},
	"board": { // a large sorted set
		"ZADD k 100*qe", "ZADD k 300*qe", "ZADD k q e", "ZADD k |GT|LT q e", "ZREM k 30*e", "ZREM k 200*e", "ZINCRBY k q e", "ZRANK k e", "ZREVRANK k e", "ZCARD k",
		"ZCOUNT k q q", "ZRANGE k q q", "ZRANGE k q q REV WITHSCORES", "ZRANGE k 0 9 REV", "ZRANGE k -20 -5", "ZRANGE k q q BYSCORE LIMIT 20 30", "ZREMRANGEBYRANK k q q",
		"ZREMRANGEBYSCORE k q q", "ZPOPMAX k 100", "ZPOPMIN k 10", "ZRANGESTORE k k 0 200", "ZRANDMEMBER k 50 WITHSCORES", "ZRANDMEMBER k -50 WITHSCORES", "DEL k",
		"ZUNIONSTORE k 2 k k", "ZINTERSTORE k 2 k k", "ZDIFFSTORE k 2 k k", "ZRANGESTORE k k q q BYSCORE", "PEXPIRE k m", "ZSCORE k e", "SET k v",
	},
	"long": { // a long list
		"RPUSH k 100*q", "LPUSH k 200*q", "LTRIM k q q", "LTRIM k 10 -10", "LTRIM k 100 -1", "LINSERT k BEFORE q v", "LINSERT k AFTER q v", "LREM k 0 q", "LREM k 3 q", "LREM k -2 q",
		"LPOS k q", "LPOS k q COUNT 0 MAXLEN q", "LPOS k q RANK -2", "LRANGE k 0 -1", "LRANGE k q q", "LPOP k 80", "RPOP k 80", "LINDEX k q", "LSET k q v", "LMOVE k k LEFT RIGHT", "LLEN k", "DEL k",
	},
	"crowd": { // a large set
		"SADD k 100*q", "SADD k 300*q", "SREM k 100*q", "SPOP k 70", "SPOP k 3", "SRANDMEMBER k 50", "SRANDMEMBER k -50", "SINTER k k", "SINTERSTORE k k k", "SUNIONSTORE k k k", "SDIFFSTORE k k k",
		"SINTERCARD 2 k k LIMIT 20", "SCARD k", "SMEMBERS k", "SMOVE k k q", "ZUNIONSTORE k 2 k k", "DEL k",
	},
	"hll": {"PFADD k", "PFADD k e", "PFADD k e e e e e e", "PFADD k v v v", "PFCOUNT k", "PFCOUNT k k k", "PFMERGE k", "PFMERGE k k k"},
	"any": {
		"DEL k", "DEL k k k", "UNLINK k k", "EXISTS k k k", "TYPE k", "TOUCH k k", "EXPIRE k s [NX XX GT LT]",
		"PEXPIRE k m [NX XX GT LT]", "EXPIREAT k S [NX XX GT LT]", "PEXPIREAT k M [NX XX GT LT]", "TTL k", "PTTL k", "EXPIRETIME k",
		"PEXPIRETIME k", "PERSIST k", "ECHO v", "PING", "PING v", "SELECT i",
	},
	"hash": {
		"HSET k f v", "HSET k f v f v", "HMSET k f v f v", "HSETNX k f v", "HGET k f", "HMGET k f f f",
		"HGETALL k", "HKEYS k", "HVALS k", "HLEN k", "HEXISTS k f", "HDEL k f", "HDEL k f f f", "HINCRBY k f i", "HINCRBYFLOAT k f d",
		"HSTRLEN k f", "HRANDFIELD k", "HRANDFIELD k i", "HRANDFIELD k i WITHVALUES",
	},
	"list": {
		"LPUSH k v v", "RPUSH k v v", "LPUSHX k v", "RPUSHX k v v", "LPOP k", "LPOP k i", "RPOP k", "RPOP k i", "LLEN k", "LRANGE k i i",
		"LINDEX k i", "RPUSH k v v v v", "LINSERT k |BEFORE|after|x v v", "LSET k i v", "LREM k i v", "LTRIM k i i", "LPOS k v", "LPOS k v [RANK:r COUNT:i MAXLEN:i]",
		"LMOVE k k |LEFT|RIGHT|x |LEFT|right", "RPOPLPUSH k k", "LMPOP n k |LEFT|RIGHT", "LMPOP n k k |left|RIGHT|x [COUNT:i]",
	},
	"set": {
		"SADD k f f", "SREM k f f f", "SMEMBERS k", "SISMEMBER k f", "SMISMEMBER k f f", "SCARD k",
		"SADD k f f f f", "SMOVE k k f", "SPOP k", "SPOP k i", "SRANDMEMBER k", "SRANDMEMBER k i", "SINTER k", "SINTER k k", "SUNION k k k", "SDIFF k k k",
		"SINTERSTORE k k k", "SUNIONSTORE k k k", "SDIFFSTORE k k k", "SINTERCARD n k", "SINTERCARD n k k [LIMIT:i]", "SINTERCARD n k k k",
	},
	"zset": {
		"ZADD k z f", "ZADD k z f z f", "ZADD k |NX|XX|GT|LT z f", "ZADD k |NX|XX|GT|LT |CH|INCR|GT z f", "ZADD k |CH|INCR|nx z f z f", "ZREM k f", "ZREM k f f f",
		"ZSCORE k f", "ZMSCORE k f f", "ZCARD k", "ZINCRBY k z f", "ZRANK k f", "ZREVRANK k f", "ZCOUNT k b b", "ZLEXCOUNT k L L",
		"ZRANGE k i i", "ZRANGE k i i [WITHSCORES REV LIMIT:i BYLEX]", "ZRANGE k b b BYSCORE [WITHSCORES REV BYSCORE]",
		"ZRANGE k b b BYSCORE LIMIT i i [WITHSCORES REV]", "ZRANGE k L L BYLEX [REV WITHSCORES]", "ZRANGE k L L BYLEX LIMIT i i [REV]",
		"ZRANGESTORE k k i i [REV]", "ZRANGESTORE k k b b BYSCORE [REV LIMIT:i WITHSCORES]", "ZRANGESTORE k k L L BYLEX [REV]",
		"ZREVRANGE k i i [WITHSCORES REV]", "ZRANGEBYSCORE k b b [WITHSCORES]", "ZRANGEBYSCORE k b b LIMIT i i [WITHSCORES]",
		"ZREVRANGEBYSCORE k b b [WITHSCORES]", "ZREVRANGEBYSCORE k b b LIMIT i i", "ZRANGEBYLEX k L L", "ZRANGEBYLEX k L L LIMIT i i [WITHSCORES]",
		"ZREVRANGEBYLEX k L L", "ZPOPMIN k", "ZPOPMAX k", "ZPOPMIN k i", "ZPOPMAX k i", "ZREMRANGEBYRANK k i i", "ZREMRANGEBYSCORE k b b",
		"ZREMRANGEBYLEX k L L", "ZMPOP n k |MIN|max", "ZMPOP n k k |MIN|MAX|x [COUNT:i]", "ZRANDMEMBER k", "ZRANDMEMBER k i", "ZRANDMEMBER k i WITHSCORES",
		"ZUNION n k k [WITHSCORES]", "ZUNION n k k WEIGHTS z z [WITHSCORES AGGREGATE:A]", "ZINTER n k k [WITHSCORES AGGREGATE:A]", "ZINTER 3 k k k WEIGHTS z z z WITHSCORES",
		"ZDIFF n k k [WITHSCORES]", "ZUNIONSTORE k n k k [AGGREGATE:A WITHSCORES]", "ZUNIONSTORE k 2 k k WEIGHTS z z", "ZINTERSTORE k n k k [AGGREGATE:A]",
		"ZINTERSTORE k 2 k k WEIGHTS z z", "ZDIFFSTORE k n k k", "ZINTERCARD n k k [LIMIT:i]", "SADD k f f",
	},
}

var values = map[byte][]string{
	'f': {"f", "g", "h", "", "i", "fg", "j", "k"},
	'v': {"", "x", "hello world", "10", "-1", "3.5", "1e3", "007", " 1", "9223372036854775807", "two\r\nlines", "\x00\xff"},
	'i': {"0", "1", "-1", "2", "-2", "5", "-100", "100", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.5", "x", "", "+1", "01"},
	'd': {"0", "0.1", "-0.1", "1.5", "3e2", "1e-5", "-3.0", "0x10", "inf", "-inf", "nan", "x", "", "1e4000", "1e5000", ".5", "5.", "1 ", " 1", "12345678901234567", "0.00000000000000001"},
	'z': {"1", "2", "0", "1", "-1.5", "3", "0.1", "inf", "-inf", "1e2", "-0", "0x10", "1e-320", "123456789012345678", "nan", "", " 1", "x", "1e400", "+2"},
	'b': {"0", "-inf", "+inf", "1", "(1", "2", "(0", "(2", "-1.5", "3", "(inf", "", "(", " 1", "1 ", "x", "nan", "1e400", "-0", "+1", "((1", "[1"},
	'L': {"-", "+", "[f", "(f", "[g", "(g", "[h", "(", "[", "(h", "[zz", "", "f", "++", "-x"},
	'r': {"1", "-1", "2", "-2", "0", "9223372036854775807", "x"},
	'w': {"1", "-1", "127", "128", "-128", "-129", "255", "256", "9223372036854775807", "-4000000000000000000", "0", "x"},
	'n': {"2", "1", "2", "3", "0", "-1", "x", "99"},
	'A': {"SUM", "MIN", "MAX", "min", "x"},
	'B': {"1", "0", "1", "2", "-1", "x"},
	'o': {"0", "1", "7", "8", "12", "63", "#0", "#1", "#2", "100", "-1", "99999999999", "x", "#x", ""},
	't': {"u8", "i8", "u4", "i16", "u1", "i64", "u63", "i5", "u64", "i65", "i0", "x", "", "8"},
	's': {"", "", "", "0", "-1", "9223372036854775807", "9223372036854775", "x", "1.5"},
	'm': {"", "", "", "0", "-1", "9223372036854775807", "x"},
	'S': {"4000000000", "4000000010", "1", "0", "-1", "9223372036854775807", "x"},
	'M': {"4000000000123", "4000000010499", "4000000010500", "1", "0", "-5", "9223372036854775807", "x"},
}

// sentence makes a random command; the first of the values are the most frequent.
func sentence(rng *rand.Rand) []string {
	kinds := slices.Sorted(maps.Keys(shapes))
	kind := kinds[rng.IntN(len(kinds))]
	words := strings.Fields(shapes[kind][rng.IntN(len(shapes[kind]))])
	args := []string{words[0]}
	for i := 1; i < len(words); i++ {
		if strings.HasPrefix(words[i], "[") {
			options := strings.Fields(strings.Trim(strings.Join(words[i:], " "), "[]"))
			for range rng.IntN(3) {
				args = append(args, option(rng, options)...)
			}
			break
		}
		n, repeated, many := strings.Cut(words[i], "*")
		if times, _ := strconv.Atoi(n); many {
			for range times {
				for _, word := range strings.Split(repeated, "") {
					args = append(args, argument(rng, kind, word))
				}
			}
			continue
		}
		args = append(args, argument(rng, kind, words[i]))
	}
	switch rng.IntN(40) {
	case 0:
		if !strings.HasSuffix(args[0], "RANK") { // which takes one more since Redis 7.2
			args = append(args, "extra")
		}
	case 1:
		args = args[:1+rng.IntN(len(args))]
	case 2:
		args[0] = strings.ToLower(args[0])
	}
	return args
}

// argument makes the argument that a word of a shape stands for, of a command that wants records of a type.
func argument(rng *rand.Rand, kind, word string) string {
	switch {
	case strings.HasPrefix(word, "|"):
		words := strings.Split(word[1:], "|")
		return words[rng.IntN(len(words))]
	case len(word) > 1 || word < "A":
		return word
	case word != "k":
		return value(rng, word[0])
	case isolated(kind):
		return kind + strconv.Itoa(rng.IntN(3))
	case kind == "any" || rng.IntN(12) == 0:
		kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(shapes)), isolated)
		kind = kinds[rng.IntN(len(kinds))]
	}
	if rng.IntN(20) == 0 {
		return "" // is a key too, which all types share
	}
	return kind + strconv.Itoa(rng.IntN(3))
}

// isolated says whether only commands of their own see the records: Redis keeps small HyperLogLogs in another form, and
// shows ranges of names, and zeros with a sign, of large sorted sets (which large sets become) in another way than of small ones.
func isolated(kind string) bool { return slices.Contains([]string{"hll", "board", "crowd"}, kind) }

func option(rng *rand.Rand, options []string) []string {
	name, kind, timed := strings.Cut(options[rng.IntN(len(options))], ":")
	if rng.IntN(4) == 0 {
		name = strings.ToLower(name)
	}
	if !timed || rng.IntN(30) == 0 {
		return []string{name}
	}
	return []string{name, value(rng, kind[0])}
}

func value(rng *rand.Rand, kind byte) string {
	list := values[kind]
	switch kind {
	case 'e':
		return "e" + strconv.Itoa(rng.IntN(1000))
	case 'q':
		return strconv.Itoa(rng.IntN(600))
	}
	v := list[min(rng.IntN(len(list)), rng.IntN(len(list)))]
	if v == "" && (kind == 's' || kind == 'm') {
		return strconv.Itoa(1_000_000 + 10_000*rng.IntN(100_000)) // no two alike: which is later must not depend on the moment
	}
	return v
}

func TestRepliesAreThoseOfRedis(t *testing.T) {
	socket := startRedis(t)
	for _, protocol := range []string{"2", "3"} {
		t.Run("RESP"+protocol, func(t *testing.T) {
			redis := talkTo(t, "unix", socket)
			ours := talkTo(t, "tcp", open(t).address)
			redis.say("HELLO", protocol)
			ours.say("HELLO", protocol)
			for seed, rng := range history.Rounds(t) {
				redis.say("FLUSHALL")
				ours.say("FLUSHALL")
				compareReplies(t, redis, ours, seed, rng)
			}
		})
	}
}

func compareReplies(t *testing.T, redis, ours *talker, seed uint64, rng *rand.Rand) {
	t.Helper()
	for n := range 6000 {
		args := sentence(rng)
		name := strings.ToUpper(args[0])
		want, got := canonical(name, redis.say(args...)), canonical(name, ours.say(args...))
		if isRandom(name) {
			want = drawn(redis, args, want, got)
		}
		if !same(name, want, got) {
			t.Fatalf("seed %d, command %d: %q\nRedis    %s\nForerun  %s", seed, n, args, want, got)
		}
	}
}
