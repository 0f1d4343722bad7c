package resp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/test/history"
)

// declaring makes a random script, with the keys that its commands name or, now and then, without the last.
func declaring(rng *rand.Rand) []string {
	var keys []string
	var b strings.Builder
	b.WriteString("local r={}\n")
	for range 1 + rng.IntN(4) {
		args := sentence(rng)
		spec, _ := command.Find(rawArgs(args))
		if spec == nil || len(args) > 60 || isRandom(strings.ToUpper(args[0])) || strings.HasPrefix(strings.ToUpper(args[0]), "B") {
			continue
		}
		for i := range spec.KeyPositions(rawArgs(args)) {
			if !slices.Contains(keys, args[i]) {
				keys = append(keys, args[i])
			}
		}
		quoted := make([]string, len(args))
		for i, arg := range args {
			quoted[i] = luaString(arg)
		}
		fmt.Fprintf(&b, "r[#r+1]=redis.%s(%s)\n", []string{"pcall", "pcall", "call"}[rng.IntN(3)], strings.Join(quoted, ","))
	}
	b.WriteString("return r")
	if len(keys) > 0 && rng.IntN(8) == 0 {
		keys = keys[1:]
	}
	return append([]string{"EVAL", b.String(), fmt.Sprint(len(keys))}, keys...)
}

// TestScriptsOnImagesAreRecords executes random scripts on a store, and ahead of another on images: replies are equal, and so are the records
// when the scripts have been replayed. One that reaches for what it has not declared is executed in its turn.
func TestScriptsOnImagesAreRecords(t *testing.T) {
	for seed, rng := range history.Rounds(t) {
		t.Logf("seed %d", seed)
		w := newTwins(t)
		beyond := 0
		for range 200 {
			args := rawArgs(declaring(rng))
			s := command.NewStep(imagesSpace, w.now, args)
			w.log = append(w.log, fmt.Sprintf("%q", args))
			o := w.onImages(s)
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			if o.Long != nil {
				beyond++
				w.promote()
				o.Replies = w.atOnce(w.ahead, s)
			}
			w.compare(s, o.Replies, w.atOnce(w.plain, s))
			if rng.IntN(20) == 0 {
				w.promote()
			}
		}
		if w.promote(); beyond == 0 || beyond > 100 {
			t.Errorf("%d scripts reached beyond", beyond)
		}
	}
}

// atOnce executes a step in a store.
func (w *twins) atOnce(store *embedded.Store, s *command.Step) []state.Reply {
	w.Helper()
	replies, _, err := store.Exec(context.Background(), nil, s.Commands())
	if err != nil {
		w.Fatal(err)
	}
	return replies
}

// TestScriptsThatWait: on images a script waits for its turn if it asks for what is not there.
func TestScriptsThatWait(t *testing.T) {
	w := newTwins(t)
	for source, want := range map[string]string{
		"return redis.call('get',KEYS[1])":                       "",
		"math.randomseed(1) return math.random()":                "",
		"return redis.call('ttl',KEYS[1])":                       "",
		"return redis.call('get','elsewhere')":                   "reads_unnamed(EVAL)",
		"return redis.call('keys','*')":                          "reads_unnamed(EVAL)",
		"pcall(redis.call,'set','elsewhere','x') return 1":       "reads_unnamed(EVAL)",
		"return redis.call('time')":                              "unversioned(TIME)",
		"return math.random()":                                   "chance(EVAL)",
		"return redis.call('spop',KEYS[1])":                      "chance(SPOP)",
		"return redis.call('publish','c','m')":                   "publishes(PUBLISH)",
		"while true do end":                                      "takes_long(EVAL)",
		"local s='x' while true do s=s..s end":                   "takes_long(EVAL)",
		"redis.call('set',KEYS[1],('x'):rep(64e6)) return 1":     "takes_long(EVAL)",
		"return redis.call('object','encoding',KEYS[1])":         "unversioned(OBJECT)",
		"redis.call('set',KEYS[1],'x') return redis.call('foo')": "",
	} {
		s := command.NewStep(imagesSpace, w.now, rawArgs([]string{"EVAL", source, "1", "k"}))
		if o := w.onImages(s); o.Err != nil || o.Long.String() != want {
			t.Errorf("%s: %v, %v", source, o.Long.String(), o.Err)
		}
	}
}

// TestAFailedScriptLeavesNothing: also in a transaction, whose other commands stay; what returns an error has ended well.
func TestAFailedScriptLeavesNothing(t *testing.T) {
	k := talkTo(t, "tcp", open(t).address)
	eval := func(source string) string { return k.say("EVAL", source, "2", "a", "b") }
	for _, source := range []string{
		"redis.call('set','a','1') redis.call('set','undeclared','1') error('x')", "redis.call('set','a','1') redis.call('foo')", "redis.call('rpush','b','1') while true do redis.call('set','a','1') end",
		"redis.call('set','a','1') return ('x'):rep(1e9)", "redis.call('setrange','a',1048575,'x') while true do redis.call('bitcount','a') end", "redis.call('flushall') redis.call('set','a','1') error()",
		"redis.call('set','a','1') local s=('x'):rep(1e6) for i=1,1000 do redis.error_reply(s) end", "redis.call('set','a','1') local s=('x'):rep(1e6) for i=1,1000 do redis.sha1hex(s) end", "redis.call('set','a','1') local t={} t[1]=t return t",
	} {
		k.say("SET", "kept", "1")
		if got := eval(source); !strings.HasPrefix(got, "-ERR ") {
			t.Errorf("%s: %s", source, got)
		}
		if got := k.say("EXISTS", "a", "b", "undeclared"); got != ":0" {
			t.Errorf("%s leaves %s records", source, got)
		}
		if got := k.say("GET", "kept"); got != `$1 "1"` {
			t.Errorf("%s leaves %s", source, got)
		}
	}
	for _, words := range [][]string{
		{"MULTI"}, {"SET", "before", "1"}, {"DEL", "kept"}, {"EVAL", "redis.call('set','before','2') redis.call('del','kept') redis.call('sadd','a','x') error('x')", "3", "a", "before", "kept"}, {"SET", "after", "1"},
	} {
		k.say(words...)
	}
	if got := k.say("EXEC"); !strings.Contains(got, "|-ERR ") {
		t.Error(got)
	}
	if got := k.say("MGET", "before", "after", "a", "kept"); got != `*4|$1 "1"|$1 "1"|$-1|$-1` {
		t.Error(got)
	}
	if got := eval("redis.call('set','a','1') return redis.error_reply('LIMIT reached')"); got != "-LIMIT reached" {
		t.Error(got)
	}
	if got := k.say("GET", "a"); got != `$1 "1"` {
		t.Errorf("what returned an error has left %s", got)
	}
}

// TestScriptsAreKept as in Redis, in transactions, too.
func TestScriptsAreKept(t *testing.T) {
	const sha = "cc9c6bd0c93c7f8dd48e6ba8b0e0b4fbcd1d7f1c" // of none
	script(t, startRedis(t), `
		a SCRIPT LOAD return(KEYS[1]..ARGV[1])
		a SCRIPT EXISTS `+sha+` x
		a EVALSHA `+sha+` 0
		a EVALSHA `+sha+`
		a EVAL return(7) 0
		b EVALSHA 7c3b1b3ee8aa5e5ad84b5b5f64b3a3a2f2e0cc6a 0
		a SCRIPT LOAD return(
		a SCRIPT LOAD
		a SCRIPT NONSENSE
		a SCRIPT FLUSH X
		a MULTI
		a SCRIPT LOAD return(8)
		a EVAL return(redis.call('set','k',KEYS[1])) 1 k
		a EVALSHA `+sha+` 0
		a EVAL return 0
		a GET k
		a EXEC
		a EVAL return(1) 2 k
		a EVAL return(1) -1
		a EVAL return(1) x
		a EVAL_RO return(redis.call('get','k')) 1 k
		a EVAL_RO return(redis.call('set','k','v')) 1 k
		s3 SUBSCRIBE news
		a EVAL redis.call('publish','news','x')return(redis.call('set','k','2')) 1 k
		s3 <
		a WATCH k
		b EVAL return(redis.call('incr','k')) 1 k
		a MULTI
		a GET k
		a EXEC
		b RPUSH l 1
		a EVAL return(redis.call('lmove','l','m','LEFT','LEFT')) 2 l m
		c > BLPOP n 0
		a EVAL return(redis.call('rpush',KEYS[1],'x')) 1 n
		c <
		a SCRIPT FLUSH
		a SCRIPT FLUSH ASYNC
	`)
	d := open(t)
	k, other := talkTo(t, "tcp", d.address), talkTo(t, "tcp", d.address)
	held := func(want int64, reply string, words ...string) {
		t.Helper()
		before := d.held.Load()
		if got := k.say(words...); got != reply || d.held.Load()-before != want {
			t.Errorf("%q: %s, held %d times for %s", words, got, d.held.Load()-before, d.why.Load())
		}
	}
	const text = "return 'x'"
	sum := command.ScriptSHA([]byte(text))
	missing := "-NOSCRIPT No matching script. Please use EVAL."
	held(1, missing, "EVALSHA", sum, "0")
	held(1, `$1 "x"`, "EVAL", text, "0")
	held(0, `$1 "x"`, "EVAL", text, "0")
	held(0, `$1 "x"`, "EVALSHA", strings.ToUpper(sum), "0")
	held(0, `$1 "x"`, "EVALSHA_RO", sum, "0")
	held(0, `$40 "`+sum+`"`, "SCRIPT", "LOAD", text)
	held(1, "*2|:1|:0", "SCRIPT", "EXISTS", sum, "x")
	if got := other.say("EVALSHA", sum, "0"); got != `$1 "x"` {
		t.Errorf("another client: %s", got)
	}
	held(0, "+OK", "SCRIPT", "FLUSH")
	held(1, missing, "EVALSHA", sum, "0")
	k.say("MULTI")
	k.say("SCRIPT", "LOAD", text)
	k.say("EVALSHA", sum, "0")
	held(1, `*2|$40 "`+sum+`"|$1 "x"`, "EXEC")
	for i := range 60 { // 12 MiB
		k.say("SCRIPT", "LOAD", fmt.Sprint("return ", i, " --", strings.Repeat("x", 200<<10)))
	}
	held(1, missing, "EVALSHA", sum, "0")
	if got := k.say("EVAL", "return 1 --"+strings.Repeat("x", 1<<20), "0"); !strings.HasPrefix(got, "-ERR the script is longer") {
		t.Errorf("%.100s", got)
	}
}

// TestUndeclaredRecordsAreExclusive: what a script does is one step also with records that it has not declared.
func TestUndeclaredRecordsAreExclusive(t *testing.T) {
	d := open(t)
	done := make(chan string)
	for range 4 {
		go func() {
			for range 50 {
				_, _, err := d.store.Do(context.Background(), state.Command{Space: "tests", Args: rawArgs([]string{"EVAL", "local n=redis.call('get','n'..ARGV[1]) or 0 redis.call('set','n'..ARGV[1],n+1)", "0", "x"})})
				if err != nil {
					done <- err.Error()
					return
				}
				if _, _, err := d.store.Do(context.Background(), state.Command{Space: "tests", Args: rawArgs([]string{"INCR", "nx"})}); err != nil {
					done <- err.Error()
					return
				}
			}
			done <- ""
		}()
	}
	for range 4 {
		if problem := <-done; problem != "" {
			t.Error(problem)
		}
	}
	if got := talkTo(t, "tcp", d.address).say("GET", "nx"); got != `$3 "400"` {
		t.Errorf("counted %s", got)
	}
	o, err := d.store.Observe(context.Background(), nil, []state.Command{{Space: "tests", Args: rawArgs([]string{"EVAL", "redis.call('set','u','1') return redis.call('get',KEYS[1])", "1", "d"})}})
	if err != nil || o.Exact || !slices.Equal(o.Wrote, []forerun.Key{{Space: "tests", Name: "u"}}) || len(o.Reads) != 1 || o.Reads[0].Key.Name != "d" {
		t.Errorf("%+v, %v", o, err)
	}
}
