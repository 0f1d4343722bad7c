package resp_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/state/command"
)

// TestKeysAreThoseOfRedis asks Redis which keys random commands have, and whether they write them.
func TestKeysAreThoseOfRedis(t *testing.T) {
	redis := talkTo(t, "unix", startRedis(t))
	redis.say("HELLO", "3")
	ours := talkTo(t, "tcp", open(t).address)
	ours.say("HELLO", "3")
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		args := sentence(rng)
		asked := append([]string{"COMMAND", "GETKEYSANDFLAGS"}, args...)
		reply := redis.say(asked...)
		odd := len(args) == 1 || strings.EqualFold(args[0], "PFMERGE") && len(args) == 2 // Redis 7.2 takes a name alone; without sources it finds no keys
		if got := ours.say(asked...); got != reply && !odd {
			t.Errorf("seed %d: %q\nRedis    %s\nForerun  %s", seed, args, reply, got)
		}
		if strings.HasPrefix(reply, "-") {
			continue // no keys, or not the arguments that it wants
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
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("seed %d: %q has the keys %q in Redis, %q here", seed, args, want, got)
		}
		if spec.Name == "pfcount" {
			writes = false // what Redis writes is a number that it keeps for the next time
		}
		if (spec.Access(raw)&command.Write != 0) != writes {
			t.Errorf("seed %d: %q writes in Redis: %v, here: %v", seed, args, writes, !writes)
		}
	}
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
