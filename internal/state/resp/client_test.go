package resp_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/resp"
)

// TestClientIsThatOfRedis: what CLIENT, COMMAND and others with subcommands refuse, they refuse in Redis's words.
func TestClientIsThatOfRedis(t *testing.T) {
	socket := startRedis(t)
	for name, lines := range map[string]string{
		"kill": "a CLIENT KILL\n a CLIENT KILL 1.2.3.4:5\n a CLIENT KILL ID x\n a CLIENT KILL ID 0\n a CLIENT KILL ID -1 TYPE x\n a CLIENT KILL TYPE x\n" +
			" a CLIENT KILL ID 99999\n a CLIENT KILL USER none\n a CLIENT KILL USER default ID 99999\n a CLIENT KILL SKIPME maybe\n a CLIENT KILL SKIPME yes ID\n" +
			" a CLIENT KILL NONSENSE 1\n a CLIENT KILL TYPE master\n a CLIENT KILL TYPE replica\n a CLIENT KILL TYPE slave SKIPME no\n a CLIENT KILL ADDR 1.2.3.4:5\n" +
			" a CLIENT KILL LADDR 1.2.3.4:5\n a CLIENT KILL TYPE pubsub\n a PING",
		"unblock": "a CLIENT UNBLOCK\n a CLIENT UNBLOCK x\n a CLIENT UNBLOCK 99999\n a CLIENT UNBLOCK 1 MAYBE\n a CLIENT UNBLOCK 1 TIMEOUT x\n a CLIENT UNBLOCK x ERROR\n" +
			" a CLIENT UNBLOCK 99999 error",
		"list": "a CLIENT LIST NONSENSE\n a CLIENT LIST TYPE\n a CLIENT LIST TYPE x\n a CLIENT LIST ID\n a CLIENT LIST ID x\n a CLIENT LIST ID 99999\n a CLIENT LIST TYPE master\n" +
			" a CLIENT LIST ID 99999 98989\n a3 CLIENT LIST TYPE replica\n a CLIENT LIST TYPE normal x",
		"others": "a CLIENT NO-EVICT on\n a CLIENT NO-EVICT x\n a CLIENT NO-EVICT\n a CLIENT REPLY\n a CLIENT REPLY x\n a CLIENT REPLY on\n a CLIENT ID x\n a CLIENT GETNAME x\n a CLIENT SETNAME\n" +
			" a CLIENT INFO x\n a CLIENT HELP x\n a CLIENT PAUSE\n a CLIENT UNPAUSE x\n a CLIENT NONSENSE x y\n a CLIENT kILL",
		"arity": "a OBJECT\n a OBJECT HELP x\n a OBJECT NONSENSE\n a OBJECT FREQ\n a MEMORY\n a MEMORY NONSENSE\n a MEMORY USAGE\n a MEMORY DOCTOR x\n a LATENCY\n a LATENCY NONSENSE\n a LATENCY HISTORY\n" +
			" a LATENCY GRAPH\n a SLOWLOG\n a SLOWLOG NONSENSE\n a SLOWLOG LEN x\n a PUBSUB\n a PUBSUB NONSENSE\n a PUBSUB NUMPAT x\n a XGROUP\n a XGROUP NONSENSE\n a XGROUP CREATE k\n a XGROUP DESTROY k\n" +
			" a XINFO\n a XINFO NONSENSE\n a XINFO STREAM\n a XINFO GROUPS\n a ACL\n a ACL NONSENSE\n a ACL WHOAMI x\n a CLUSTER\n a SCRIPT\n a SCRIPT NONSENSE\n a SCRIPT LOAD\n" +
			" a FUNCTION\n a FUNCTION NONSENSE\n a FUNCTION LOAD\n a MODULE\n a MODULE NONSENSE\n a MODULE LOAD\n a COMMAND NONSENSE\n a COMMAND COUNT x\n a COMMAND GETKEYS\n a CONFIG RESETSTAT x",
		"keys": "a COMMAND GETKEYS NONSENSE x y\n a COMMAND GETKEYS PING x y\n a COMMAND GETKEYS GET x y\n a COMMAND GETKEYS ZUNION 0 a\n a COMMAND GETKEYS ZUNION 2 a\n a COMMAND GETKEYS EVAL x 0\n a COMMAND GETKEYS EVAL x 1 k\n" +
			" a COMMAND GETKEYS OBJECT NONSENSE\n a COMMAND GETKEYS OBJECT HELP\n a COMMAND GETKEYS OBJECT FREQ k\n a COMMAND GETKEYS OBJECT FREQ\n a COMMAND GETKEYS MEMORY USAGE k SAMPLES 5\n a COMMAND GETKEYS MEMORY DOCTOR\n" +
			" a COMMAND GETKEYSANDFLAGS XGROUP CREATE k g $\n a COMMAND GETKEYSANDFLAGS XGROUP DESTROY k g\n a COMMAND GETKEYSANDFLAGS XREAD STREAMS a b 0 0\n a COMMAND GETKEYS XREAD COUNT 1 x y\n a COMMAND GETKEYSANDFLAGS SET k v\n" +
			" a COMMAND GETKEYSANDFLAGS SET k v GET\n a COMMAND GETKEYSANDFLAGS SET k v EX 1 NX\n a COMMAND GETKEYSANDFLAGS BITFIELD k GET u8 0\n a COMMAND GETKEYSANDFLAGS BITFIELD k INCRBY u8 0 1\n a COMMAND GETKEYSANDFLAGS SORT k STORE d\n" +
			" a COMMAND GETKEYSANDFLAGS SORT k BY x GET y\n a COMMAND GETKEYSANDFLAGS LMOVE a b LEFT LEFT\n a COMMAND GETKEYSANDFLAGS ZUNIONSTORE d 2 a b\n a COMMAND GETKEYSANDFLAGS BITOP AND d a b\n a COMMAND GETKEYS MIGRATE h 1 k 0 1\n" +
			" a COMMAND GETKEYS MSET a 1 b 2\n a COMMAND GETKEYS CLIENT ID\n a COMMAND GETKEYS CONFIG GET x\n a COMMAND GETKEYSANDFLAGS RENAME a b\n a COMMAND GETKEYSANDFLAGS GEORADIUS k 1 1 1 km STORE d\n a COMMAND GETKEYSANDFLAGS SUBSCRIBE c\n a COMMAND GETKEYS WATCH a b\n a COMMAND LIST FILTERBY\n a COMMAND LIST FILTERBY PATTERN\n a COMMAND LIST FILTERBY NONSENSE x",
		"without replies": "a CLIENT REPLY ON\n a ! CLIENT REPLY SKIP\n a ! SET k 1\n a GET k\n a ! CLIENT REPLY OFF\n a ! SET k 2\n a ! CLIENT REPLY SKIP\n a ! GET k\n a CLIENT REPLY ON\n a GET k",
	} {
		t.Run(name, func(t *testing.T) { script(t, socket, lines) })
	}
}

// TestAbsentSubcommands: a subcommand that only Redis has is refused by its own name.
func TestAbsentSubcommands(t *testing.T) {
	k := talkTo(t, "tcp", open(t).address)
	for line, want := range map[string]string{
		"CLIENT PAUSE 10":            "-ERR unknown subcommand 'PAUSE'. Try CLIENT HELP. (Redis has this subcommand, Forerun's embedded store does not have it yet)",
		"client unpause":             "-ERR unknown subcommand 'unpause'. Try CLIENT HELP. (Redis has this subcommand, Forerun's embedded store does not have it yet)",
		"XGROUP CREATE k g $":        "-ERR unknown subcommand 'CREATE'. Try XGROUP HELP. (Redis has this subcommand, Forerun's embedded store does not have it yet)",
		"MEMORY USAGE k":             "-ERR unknown subcommand 'USAGE'. Try MEMORY HELP. (Redis has this subcommand, Forerun's embedded store does not have it yet)",
		"PUBSUB SHARDCHANNELS":       "-ERR unknown subcommand 'SHARDCHANNELS'. Try PUBSUB HELP. (Redis has this subcommand, Forerun's embedded store does not have it yet)",
		"SCRIPT DEBUG YES":           "-ERR unknown subcommand 'DEBUG'. Try SCRIPT HELP. (Redis has this subcommand, Forerun's embedded store does not have it yet)",
		"SLOWLOG HELP":               "*3|+SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:|+HELP|+    Print this help.",
		"DEBUG SLEEP 0":              "-ERR unknown command 'DEBUG', with args beginning with: 'SLEEP' '0' (Redis has this command, Forerun's embedded store does not have it yet)",
		"CLIENT no\r\nsuch\r\nthing": "-ERR unknown subcommand 'no'. Try CLIENT HELP.",
	} {
		if got := k.say(strings.Fields(line)...); got != want {
			t.Errorf("%s: %s", line, got)
		}
	}
	for _, name := range []string{"ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "FUNCTION", "LATENCY", "MEMORY", "MODULE", "OBJECT", "PUBSUB", "SCRIPT", "SLOWLOG", "XGROUP", "XINFO"} {
		if got := k.say(name, "help"); !strings.HasPrefix(got, "*") || !strings.HasSuffix(got, "|+HELP|+    Print this help.") {
			t.Errorf("%s HELP: %s", name, got)
		}
	}
}

// numbered connects, and demands an id: ids are in the order in which connections are served.
func (d door) numbered(t *testing.T, id int) *talker {
	t.Helper()
	k := talkTo(t, "tcp", d.address)
	if got := k.say("CLIENT", "ID"); got != ":"+strconv.Itoa(id) {
		t.Fatalf("connection %d has the id %s", id, got)
	}
	return k
}

// TestClientList: a connection tells of itself and of the others of its space.
func TestClientList(t *testing.T) {
	d := open(t)
	a, b, c := d.numbered(t, 1), d.numbered(t, 2), d.numbered(t, 3)
	for _, line := range []string{"HELLO 3", "CLIENT SETNAME ann", "CLIENT SETINFO LIB-NAME lib", "CLIENT SETINFO LIB-VER 1.5", "CLIENT NO-EVICT on", "CLIENT NO-TOUCH on"} {
		a.say(strings.Fields(line)...)
	}
	b.say("SUBSCRIBE", "x")
	c.say("MULTI")
	c.say("GET", "k")
	want := regexp.MustCompile(`^id=1 addr=127\.0\.0\.1:\d+ laddr=127\.0\.0\.1:\d+ fd=0 name=ann age=\d+ idle=\d+ flags=eT db=0 sub=0 psub=0 ssub=0 multi=-1 .* cmd=client\|list user=default redir=-1 resp=3 lib-name=lib lib-ver=1\.5\\n` +
		`id=2 .* flags=P db=0 sub=1 .* cmd=subscribe .*\\nid=3 .* flags=x db=0 .* multi=1 .* cmd=get .*\\n$`)
	list := func(words ...string) string {
		_, text, _ := strings.Cut(a.say(append([]string{"CLIENT", "LIST"}, words...)...), "txt:")
		return strings.TrimSuffix(text, `"`)
	}
	if got := list(); !want.MatchString(got) {
		t.Errorf("%s does not match %s", got, want)
	}
	for words, want := range map[string]string{"TYPE pubsub": "2", "TYPE normal": "1 3", "ID 3 1 9": "3 1", "TYPE master": ""} {
		var ids []string
		for _, m := range regexp.MustCompile(`(?:^|\\n)id=(\d+)`).FindAllStringSubmatch(list(strings.Fields(words)...), -1) {
			ids = append(ids, m[1])
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s; want %s", words, got, want)
		}
	}
}

// TestClientUnblock: a client that another unblocks goes on, and takes nothing that comes afterwards.
func TestClientUnblock(t *testing.T) {
	for how, want := range map[string]string{"": "*-1", " TIMEOUT": "*-1", " ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK"} {
		d := open(t)
		a, b := d.numbered(t, 1), d.numbered(t, 2)
		unblock := strings.Fields("CLIENT UNBLOCK 1" + how)
		if got := b.say(unblock...); got != ":0" {
			t.Errorf("one that is not blocked: %s", got)
		}
		a.waits(b, []string{"BLPOP", "l", "0"})
		if got := b.say("CLIENT", "LIST", "ID", "1"); !strings.Contains(got, "flags=b ") || !strings.Contains(got, "cmd=blpop ") {
			t.Errorf("a blocked client is listed as %s", got)
		}
		if got := b.say(unblock...) + b.say("INFO", "clients") + b.say("RPUSH", "l", "x") + b.say("LLEN", "l"); !regexp.MustCompile(`^:1.*blocked_clients:0.*:1:1$`).MatchString(got) {
			t.Errorf("CLIENT UNBLOCK%s: %s", how, got)
		}
		if got := a.reply() + a.say("BLPOP", "l", "0"); got != want+`*2|$1 "l"|$1 "x"` {
			t.Errorf("CLIENT UNBLOCK%s: the client is told %s", how, got)
		}
	}
}

// TestClientKill: what was killed is gone at once, for those that write what it waited for, too.
func TestClientKill(t *testing.T) {
	addressOf := func(k *talker) string { return k.conn.LocalAddr().String() }
	for name, words := range map[string]func(victim *talker) []string{
		"by id":                   func(*talker) []string { return []string{"ID", "1"} },
		"by address":              func(k *talker) []string { return []string{"ADDR", addressOf(k)} },
		"in the old form":         func(k *talker) []string { return []string{addressOf(k)} },
		"by type":                 func(*talker) []string { return []string{"TYPE", "normal", "SKIPME", "yes"} },
		"by user":                 func(*talker) []string { return []string{"USER", "default"} },
		"by the server's address": func(k *talker) []string { return []string{"LADDR", k.conn.RemoteAddr().String(), "SKIPME", "YES"} },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			a, b := d.numbered(t, 1), d.numbered(t, 2)
			a.waits(b, []string{"BLPOP", "l", "0"})
			w := words(a)
			want := ":1"
			if len(w) == 1 {
				want = "+OK"
			}
			if got := b.say(append([]string{"CLIENT", "KILL"}, w...)...); got != want {
				t.Errorf("CLIENT KILL: %s", got)
			}
			if got := b.say("RPUSH", "l", "x") + b.say("LLEN", "l") + b.say("CLIENT", "LIST", "ID", "1"); got != `:1:1$0 ""` {
				t.Errorf("afterwards: %s", got)
			}
			if got := a.reply(); got != "EOF" {
				t.Errorf("the killed client is told %s", got)
			}
		})
	}
	k := talkTo(t, "tcp", open(t).address)
	if got := k.say("CLIENT", "KILL", "MAXAGE", "100000", "SKIPME", "no") + k.say("CLIENT", "KILL", "ID", "1", "SKIPME", "no") + k.reply(); got != ":0:1EOF" {
		t.Errorf("a client that kills itself is told %s", got)
	}
}

// openForBoth opens a door at which each name has a space of its own.
func openForBoth(t *testing.T) door {
	var store state.Store
	d := openWith(t, resp.Options{Authenticate: func(_ context.Context, user, _ string) (resp.Session, error) {
		return session{store, user}, nil
	}}, vfs.NewMem())
	store = d.store
	return d
}

// TestClientsSeeTheirOwnSpace: connections of another tenant are not listed, killed, unblocked or named.
func TestClientsSeeTheirOwnSpace(t *testing.T) {
	d := openForBoth(t)
	ann, _ := d.enter(t, "ann")
	bob, _ := d.enter(t, "bob")
	other, _ := d.enter(t, "bob")
	bob.waits(other, []string{"BLPOP", "l", "0"})
	for _, line := range []string{
		"CLIENT UNBLOCK 1", "CLIENT UNBLOCK 2", "CLIENT KILL ID 2", "CLIENT KILL TYPE normal", "CLIENT KILL ADDR " + bob.conn.LocalAddr().String(),
		"CLIENT KILL USER ann",
	} {
		if got := ann.say(strings.Fields(line)...); got != ":0" {
			t.Errorf("%s: %s", line, got)
		}
	}
	if got, want := ann.say("CLIENT", "KILL", "USER", "bob"), "-ERR No such user 'bob'"; got != want {
		t.Errorf("CLIENT KILL USER: %s", got)
	}
	if got := ann.say("CLIENT", "LIST"); strings.Count(got, "id=") != 1 || strings.Contains(got, "bob") {
		t.Errorf("ann sees %s", got)
	}
	if got := other.say("CLIENT", "LIST"); strings.Count(got, `id=`) != 2 {
		t.Errorf("bob sees %s", got)
	}
	other.say("RPUSH", "l", "x")
	if got := bob.reply(); got != `*2|$1 "l"|$1 "x"` {
		t.Errorf("bob is told %s", got)
	}
}
