package resp_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/test/history"
)

// node is a reply as a tree.
type node struct {
	head  string // the line that it begins with, and the text
	items []node
}

// tree makes a tree of a reply as a talker shows it.
func tree(reply string) node {
	parts := strings.Split(reply, "|")
	var next func() node
	next = func() node {
		n := node{head: parts[0]}
		parts = parts[1:]
		if strings.ContainsRune("*~%", rune(n.head[0])) {
			count, _ := strconv.Atoi(n.head[1:])
			if n.head[0] == '%' {
				count *= 2
			}
			for range count {
				n.items = append(n.items, next())
			}
		}
		return n
	}
	return next()
}

func (n node) String() string {
	if len(n.items) == 0 {
		return n.head
	}
	return n.head + fmt.Sprint(n.items)
}

// normal sorts what has no order in the reply to a command.
func normal(args []string, n node) node {
	group := map[string]int{"KEYS": 1}[strings.ToUpper(args[0])]
	if slices.Contains(args, "nosort") { // of sets
		group = 1
	}
	if group == 0 {
		group = unordered[strings.ToUpper(args[0])]
	}
	if strings.HasPrefix(strings.ToUpper(args[0]), "SORT") && !slices.Contains(args, "STORE") {
		n = cutAtZero(n) // texts that C takes for the same come in any order
	}
	if strings.HasPrefix(strings.TrimPrefix(strings.ToUpper(args[0]), "B"), "Z") {
		n = withoutSign(n)
	}
	if group == 0 || len(n.items) == 0 || len(n.items)%group != 0 {
		return n
	}
	groups := slices.Collect(slices.Chunk(n.items, group))
	slices.SortFunc(groups, func(a, b []node) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return node{n.head, slices.Concat(groups...)}
}

// withoutSign takes a score of -0 for 0: Redis keeps the sign only where it keeps a set as a skip list, as it does once
// the set was sorted.
func withoutSign(n node) node {
	head := map[string]string{`$2 "-0"`: `$1 "0"`, ",-0": ",0"}[n.head]
	if head == "" {
		head = n.head
	}
	var items []node
	for _, item := range n.items {
		items = append(items, withoutSign(item))
	}
	return node{head, items}
}

// cutAtZero ends the one value that has a zero byte where C does.
func cutAtZero(n node) node {
	items := slices.Clone(n.items)
	for i := range items {
		if items[i].head == `$2 "\x00\xff"` {
			items[i].head = `$0 ""`
		}
	}
	return node{n.head, items}
}

// pair is one client, connected to Redis and to us.
type pair struct{ redis, ours *talker }

// sequence replays commands of two clients on both.
type sequence struct {
	t       *testing.T
	rng     *rand.Rand
	clients [2]pair
	queue   [][]string // what the first client has queued since MULTI; nil: outside
	log     []string
	bad     bool
}

// say lets a client say a command to both, and demands equal replies.
func (s *sequence) say(who int, args ...string) node {
	s.t.Helper()
	if s.bad {
		return node{}
	}
	if args[0] == "DBSIZE" {
		s.clients[who].redis.say("SCAN", "0", "COUNT", "100000") // or Redis counts records that have expired
	}
	want, got := tree(s.clients[who].redis.say(args...)), tree(s.clients[who].ours.say(args...))
	s.log = append(s.log, fmt.Sprintf("%d: %.300q -> %.300s", who, args, want))
	if !s.equal(who, args, want, got) {
		s.bad = true
		s.t.Errorf("replies differ:\n%s\nForerun  %s", strings.Join(s.log, "\n"), got)
	}
	return want
}

func (s *sequence) equal(who int, args []string, want, got node) bool {
	if who != 0 || strings.ToUpper(args[0]) != "EXEC" || len(want.items) != len(s.queue) || len(got.items) != len(s.queue) {
		return alike(args, want, got)
	}
	for i, queued := range s.queue {
		if !alike(queued, want.items[i], got.items[i]) {
			return false
		}
	}
	return want.head == got.head
}

func alike(args []string, want, got node) bool {
	if strings.EqualFold(args[0], "SORT") && strings.HasPrefix(want.head, "-ERR One or more scores") {
		return true // Redis may find an errno of before, and think that a number is none
	}
	return same(strings.ToUpper(args[0]), normal(args, want).String(), normal(args, got).String())
}

// keyspace are commands on any keys, in the form of shapes; P is a pattern, l, c and u are keys of lists, of sets and of sorted sets.
var keyspace = []string{
	"KEYS P", "DBSIZE", "RENAME k k", "RENAMENX k k", "COPY k k", "COPY k k [REPLACE DB:i]", "COPY k k REPLACE", "TYPE k", "EXISTS k k", "PTTL k", "DEL k", "FLUSHDB |ASYNC|SYNC|x",
	"SORT l [ALPHA DESC ASC LIMIT:i]", "SORT c ALPHA [DESC]", "SORT u ALPHA LIMIT i i", "SORT l ALPHA LIMIT i i DESC", "SORT l BY string* GET # GET string*", "SORT c BY hash*->f GET hash*->g GET #",
	"SORT u BY nosort DESC", "SORT l BY nosort GET #", "SORT l ALPHA STORE k", "SORT c ALPHA STORE k", "SORT u BY nosort STORE k", "SORT k", "SORT_RO l ALPHA", "SORT_RO l STORE k",
	"OBJECT |REFCOUNT|IDLETIME|x missing", "OBJECT ENCODING", "RPUSH l i i i", "SADD c i i i", "ZADD u z i z i", "SET string1 i", "SET string2 i", "HSET hash1 f i", "HSET hash2 f v g i",
	"SCAN |y|x|-|1.5|0x1", "SCAN 0 COUNT |0|x|-1", "SCAN 0 TYPE", "HSCAN k |x|0 MATCH", "SSCAN missing 0 COUNT x", "ZSCAN u 0 NONSENSE x", "HSCAN hash0 0 NOVALUES",
	"BLPOP l 0.001", "BRPOP l u 0.001", "BLMOVE l l |LEFT|RIGHT |left|right 0.001", "BRPOPLPUSH l l 0.001", "BLMPOP 0.001 n l |LEFT|RIGHT [COUNT:i]", "BZPOPMIN u 0.001",
	"BZMPOP 0.001 n u u |MIN|MAX", "BLPOP l |x|-1|",
	"SET k v PXAT 1", "PEXPIRE k |0|-1", "EXPIREAT k 1", "GETEX k |EX|PX 0", "SET k v EX -1",
}

var patterns = []string{"*", "s*", "?ash*", "[hs]*[12]", "*[^1]", "list\\1", "*t*0", "", "[", "zset?", "[a-s]*", "*1*", "\\", "**"}

// keysSentence makes a random command of keyspace.
func keysSentence(rng *rand.Rand) []string {
	words := strings.Fields(keyspace[rng.IntN(len(keyspace))])
	if strings.HasPrefix(words[0], "FLUSH") && rng.IntN(3) > 0 {
		return []string{"DBSIZE"}
	}
	kinds := map[string]string{"l": "list", "c": "set", "u": "zset"}
	args := words[:1:1]
	for i, word := range words[1:] {
		switch {
		case strings.HasPrefix(word, "["):
			options := strings.Fields(strings.Trim(strings.Join(words[i+1:], " "), "[]"))
			for range rng.IntN(3) {
				args = append(args, option(rng, options)...)
			}
			return args
		case word == "P":
			args = append(args, patterns[rng.IntN(len(patterns))])
		case kinds[word] != "":
			args = append(args, argument(rng, kinds[word], "k"))
		case word == "k" || word[0] == '|' || len(word) == 1 && values[word[0]] != nil:
			args = append(args, argument(rng, "any", word))
		default:
			args = append(args, word)
		}
	}
	return args
}

// command makes a random command whose reply does not depend on chance, nor on how Redis keeps a set. A BITFIELD that
// overflows is no change in Redis.
func (s *sequence) command() []string {
	for {
		args := keysSentence(s.rng)
		if s.rng.IntN(3) > 0 {
			args = sentence(s.rng)
		}
		name := strings.ToUpper(args[0])
		if !isRandom(name) && !strings.HasPrefix(name, "PF") && !strings.HasPrefix(name, "BITFIELD") && !strings.Contains("QUIT MULTI EXEC DISCARD", name) {
			return args
		}
	}
}

// transaction queues commands while another client works, and executes or forgets them.
func (s *sequence) transaction() {
	for range s.rng.IntN(3) {
		s.say(0, "WATCH", argument(s.rng, "any", "k"), argument(s.rng, "any", "k"))
		if s.rng.IntN(3) == 0 {
			s.say(s.rng.IntN(2), s.command()...)
		}
	}
	s.say(0, "MULTI")
	s.queue = [][]string{}
	for range s.rng.IntN(6) {
		args := s.command()
		switch s.rng.IntN(30) {
		case 0:
			args = [][]string{{"NONSENSE"}, {"GET"}, {"MULTI"}, {"WATCH", "k"}, {"PING", "1", "2"}}[s.rng.IntN(5)]
		case 1:
			args = []string{"UNWATCH"}
		}
		if args[0] == "DBSIZE" {
			args = []string{"TIME", "x"}
		}
		if reply := s.say(0, args...); reply.head == "+QUEUED" {
			s.queue = append(s.queue, args)
		}
		if s.rng.IntN(5) == 0 {
			s.say(1, s.command()...)
		}
	}
	s.say(0, []string{"EXEC", "EXEC", "EXEC", "EXEC", "DISCARD"}[s.rng.IntN(5)])
	if s.queue = nil; s.rng.IntN(4) == 0 {
		s.say(0, "EXEC")
	}
	s.say(0, "UNWATCH")
	s.say(0, "DISCARD")
}

// scanAll goes through a SCAN, and demands that both show the same, at least once.
func (s *sequence) scanAll() {
	command := [][]string{{"SCAN"}, {"HSCAN", argument(s.rng, "hash", "k")}, {"SSCAN", argument(s.rng, "set", "k")}, {"ZSCAN", argument(s.rng, "zset", "k")}, {"SSCAN", "crowd0"}, {"ZSCAN", "board0"}}[s.rng.IntN(6)]
	var options []string
	if s.rng.IntN(2) == 0 {
		options = append(options, "MATCH", patterns[s.rng.IntN(len(patterns))])
	}
	if s.rng.IntN(2) == 0 {
		options = append(options, "COUNT", strconv.Itoa(1+s.rng.IntN(50)))
	}
	if len(command) == 1 && s.rng.IntN(3) == 0 {
		options = append(options, "TYPE", []string{"string", "HASH", "zset", "stream", "x"}[s.rng.IntN(5)])
	}
	if s.bad {
		return
	}
	want, got := s.clients[0].redis.scan(command, options), s.clients[0].ours.scan(command, options)
	s.log = append(s.log, fmt.Sprintf("%q %q -> %.300q", command, options, want))
	if !slices.Equal(want, got) {
		s.bad = true
		s.t.Errorf("%q %q differ:\n%s\nForerun  %q", command, options, strings.Join(s.log, "\n"), got)
	}
}

// scan follows the cursors of a SCAN to the end, and lists what was shown; or the error.
func (k *talker) scan(command, options []string) []string {
	k.t.Helper()
	found := make(map[string]bool)
	group := 1
	if command[0] == "HSCAN" || command[0] == "ZSCAN" {
		group = 2
	}
	for cursor := "0"; ; {
		reply := tree(k.say(slices.Concat(command, []string{cursor}, options)...))
		if len(reply.items) != 2 {
			return []string{reply.String()}
		}
		for items := range slices.Chunk(reply.items[1].items, group) {
			if command[0] == "ZSCAN" { // SORT leaves a set in the form in which Redis shows whole numbers with an exponent
				_, score, _ := strings.Cut(items[1].head, " ")
				score, _ = strconv.Unquote(score)
				f, _ := strconv.ParseFloat(score, 64)
				items[1].head = fmt.Sprint(f + 0)
			}
			found[fmt.Sprint(items)] = true
		}
		if _, cursor, _ = strings.Cut(reply.items[0].head, " "); cursor == `"0"` {
			return slices.Sorted(maps.Keys(found))
		}
		cursor, _ = strconv.Unquote(cursor)
	}
}

// TestSequencesAreThoseOfRedis replays random sequences of commands, transactions and scans of two clients.
func TestSequencesAreThoseOfRedis(t *testing.T) {
	socket := startRedis(t)
	for _, protocol := range []string{"2", "3"} {
		var clients [2]pair
		address := open(t).address
		for i := range clients {
			clients[i] = pair{talkTo(t, "unix", socket), talkTo(t, "tcp", address)}
			clients[i].redis.say("HELLO", protocol)
			clients[i].ours.say("HELLO", protocol)
		}
		for seed := range history.Rounds(t) {
			for n := range uint64(300) {
				s := &sequence{t: t, rng: rand.New(rand.NewPCG(seed, n)), clients: clients}
				if s.replay(); s.bad {
					t.Fatalf("RESP%s, seed %d, sequence %d", protocol, seed, n)
				}
			}
		}
	}
}

func (s *sequence) replay() {
	s.say(0, "FLUSHALL")
	for range 40 {
		switch s.rng.IntN(10) {
		case 0, 1:
			s.transaction()
		case 2:
			s.scanAll()
		default:
			s.say(0, s.command()...)
		}
	}
}
