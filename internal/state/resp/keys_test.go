package resp_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/test/history"
)

// TestKeysAreThoseOfRedis asks Redis which keys random commands have, and whether they write them.
func TestKeysAreThoseOfRedis(t *testing.T) {
	redis := talkTo(t, "unix", startRedis(t))
	redis.say("HELLO", "3")
	ours := talkTo(t, "tcp", open(t).address)
	ours.say("HELLO", "3")
	for _, args := range [][]string{
		{"SET", "k", "v", "PX", "94450000", "GET", "extra"},
		{"SET", "k", "get"},
		{"BITFIELD", "k", "GET", "u8"},
		{"SORT", "k", "BY", "STORE", "GET", "x"},
		{"SORT", "k", "STORE", "a", "STORE", "b"},
		{"MIGRATE", "h", "1", "", "0", "1", "AUTH", "KEYS", "KEYS", "a", "b"},
		{"GEORADIUSBYMEMBER", "k", "STORE", "1", "km"},
		{"EVALSHA_RO", "s", "3", "k"},
		{"ZUNIONSTORE", "d", "3", "a"},
	} {
		compareKeys(t, redis, ours, args)
	}
	for seed, rng := range history.Rounds(t) {
		for n := range 9000 {
			args := [](func(*rand.Rand) []string){sentence, keysSentence, optionsSentence}[n%3](rng)
			if compareKeys(t, redis, ours, args); t.Failed() {
				t.Fatalf("seed %d, command %d", seed, n)
			}
		}
	}
}

// compareKeys asks both for the keys of a command and what it does to them.
func compareKeys(t *testing.T, redis, ours *talker, args []string) {
	t.Helper()
	asked := append([]string{"COMMAND", "GETKEYSANDFLAGS"}, args...)
	reply := redis.say(asked...)
	if keysDiffer(args) {
		return
	}
	if got := ours.say(asked...); got != reply {
		t.Errorf("%q\nRedis    %s\nForerun  %s", args, reply, got)
	}
	if strings.HasPrefix(reply, "-") {
		return // no keys, or not the arguments that it wants
	}
	want, writes := keysAndWrites(reply)
	raw := make([][]byte, len(args))
	for i, arg := range args {
		raw[i] = []byte(arg)
	}
	spec := command.Known(raw[0])
	var got []string
	for i := range spec.KeyPositions(raw) {
		got = append(got, args[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q has the keys %q in Redis, %q here", args, want, got)
	}
	if spec.Name == "pfcount" || spec.Name == "xreadgroup" {
		return // Redis writes a number that it keeps for the next time; and counts what a group has read as read
	}
	if len(want) > 0 && (spec.Access(raw)&command.Write != 0) != writes {
		t.Errorf("%q writes in Redis: %v, here: %v", args, writes, !writes)
	}
}

// keysDiffer says whether Redis names other keys than Forerun, which names the keys that the command uses.
func keysDiffer(args []string) bool {
	stores := 0
	for i, arg := range args {
		if word := strings.ToUpper(arg); i > 1 && strings.HasPrefix(word, "STORE") {
			stores++
		}
	}
	switch strings.ToUpper(args[0]) {
	case "PFMERGE":
		return len(args) <= 2 // Redis 7.2 takes a name alone; without sources it finds no keys
	case "SORT", "GEORADIUS", "GEORADIUSBYMEMBER":
		return stores > 1 // Redis takes the value of a STORE for an option, and the first STORE of GEORADIUS
	}
	return len(args) == 1
}

// heads are the commands whose keys, or what they do to them, depend on options; optionsSentence lets any options follow.
var heads = []string{
	"SET k v", "BITFIELD k", "BITFIELD_RO k", "SORT k", "SORT_RO k", "GEORADIUS k 1 1 1 km", "GEORADIUS_RO k 1 1 1 km", "GEORADIUSBYMEMBER k m 1 km", "MIGRATE h 1 k 0 1", "MIGRATE h 1 - 0 1",
	"XREAD", "XREADGROUP GROUP g c", "EVAL s", "EVALSHA_RO s", "FCALL f", "ZUNIONSTORE d", "ZINTER", "ZDIFF", "ZINTERCARD", "SINTERCARD", "LMPOP", "ZMPOP", "BLMPOP 1", "BZMPOP 1", "GETEX k", "COPY a b",
}

var options = []string{
	"GET", "get", "SET", "set", "INCRBY", "OVERFLOW", "FAIL", "u8", "0", "1", "2", "3", "-1", "x", "", "k", "d", "BY", "LIMIT", "limit", "STORE", "store", "STOREDIST", "storeDist",
	"KEYS", "keys", "COPY", "REPLACE", "AUTH", "AUTH2", "STREAMS", "streams", "COUNT", "BLOCK", "EX", "PX", "NX", "XX", "KEEPTTL", "PERSIST", "DB", "WITHSCORES", "WEIGHTS", "AGGREGATE",
}

// optionsSentence makes a command with options that need not fit.
func optionsSentence(rng *rand.Rand) []string {
	args := strings.Fields(heads[rng.IntN(len(heads))])
	if i := slices.Index(args, "-"); i > 0 {
		args[i] = ""
	}
	few := rng.Perm(len(options))[:6]
	for range rng.IntN(8) {
		args = append(args, options[few[rng.IntN(len(few))]])
	}
	return args
}

// keysAndWrites reads a reply of COMMAND GETKEYSANDFLAGS: pairs of a key and a set of flags.
func keysAndWrites(reply string) (keys []string, writes bool) {
	for part := range strings.SplitSeq(reply, "|") {
		switch {
		case part[0] == '$':
			keys = append(keys, texts(part)...)
		case part == "+OW" || part == "+RW" || part == "+RM":
			writes = true
		}
	}
	return keys, writes
}
