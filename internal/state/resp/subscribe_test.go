package resp_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/state/resp"
)

func TestListeningIsThatOfRedis(t *testing.T) {
	socket := startRedis(t)
	for name, lines := range map[string]string{
		"subscribe":      "a SUBSCRIBE c d c\n a <\n a <\n b PUBLISH c hello\n a <\n b PUBLISH e x\n b PUBLISH d y\n a <\n a UNSUBSCRIBE d\n b PUBLISH d z\n b PUBLISH c w\n a <\n a UNSUBSCRIBE\n a GET k\n a UNSUBSCRIBE\n a PUNSUBSCRIBE x",
		"RESP3":          "a3 SUBSCRIBE c\n b PUBLISH c hello\n a3 <\n a3 SET k v\n a3 GET k\n a3 PING\n a3 PSUBSCRIBE ?\n b PUBLISH c again\n a3 <\n a3 <\n a3 PUNSUBSCRIBE\n a3 UNSUBSCRIBE none\n a3 UNSUBSCRIBE c\n a3 UNSUBSCRIBE",
		"patterns":       "a PSUBSCRIBE news.* h[ae]llo\n a <\n b PUBLISH news.art x\n a <\n b PUBLISH hello y\n a <\n b PUBLISH hillo z\n a SUBSCRIBE hello\n b PUBLISH hello both\n a <\n a <\n a PUNSUBSCRIBE news.*\n a PUNSUBSCRIBE\n a UNSUBSCRIBE\n a PUNSUBSCRIBE",
		"not allowed":    "a SUBSCRIBE c\n a GET k\n a SET k v\n a MULTI\n a PUBLISH c x\n a PING\n a PING x\n a PING x y\n a NONSENSE\n a ECHO x\n a HELLO 3\n a RESET\n a GET k\n b PUBLISH c x\n b PUBSUB NUMPAT",
		"quit":           "a SUBSCRIBE c\n a QUIT",
		"who listens":    "a SUBSCRIBE c\n b3 SUBSCRIBE c\n b3 PSUBSCRIBE x*\n c PSUBSCRIBE x*\n d PUBSUB CHANNELS\n d PUBSUB CHANNELS d*\n d PUBSUB NUMSUB c d\n d PUBSUB NUMSUB\n d PUBSUB NUMPAT\n d PUBSUB NONSENSE\n d PUBSUB\n d PUBLISH c x\n b3 <\n d PUBLISH\n d SUBSCRIBE\n d PSUBSCRIBE\n b3 PUBSUB NUMSUB c",
		"a transaction":  "a SUBSCRIBE c\n b MULTI\n b PUBLISH c 1\n b SET k v\n b PUBLISH c 2\n b EXEC\n a <\n a <",
		"other commands": "a CONFIG GET maxmemory\n a3 CONFIG GET MAXMEMORY-P*\n a CONFIG GET nonsense\n a CONFIG\n a CONFIG NONSENSE\n a CONFIG GET\n a TIME x\n a WAIT 0 0\n a WAIT x 0\n a WAIT 0 -1\n a WAIT 0 x\n a CLIENT NO-EVICT on\n a DISCARD",
	} {
		t.Run(name, func(t *testing.T) { script(t, socket, lines) })
	}
}

// TestSpacesDoNotHearEachOther: a channel is one of its space, whoever has it open.
func TestSpacesDoNotHearEachOther(t *testing.T) {
	var d door
	d = openWith(t, resp.Options{Authenticate: func(_ context.Context, user, _ string) (resp.Session, error) {
		return session{d.store, user}, nil
	}}, vfs.NewMem())
	as := func(user string) *talker {
		k := talkTo(t, "tcp", d.address)
		k.say("AUTH", user, "x")
		return k
	}
	ada, bob := as("ada"), as("bob")
	ada.say("SUBSCRIBE", "c")
	ada.say("PSUBSCRIBE", "*")
	if got := bob.say("PUBLISH", "c", "x") + bob.say("PUBSUB", "CHANNELS") + bob.say("PUBSUB", "NUMPAT"); got != ":0*0:0" {
		t.Errorf("bob sees %s", got)
	}
	changes := as("ada")
	changes.say("HELLO", "3")
	changes.say("SUBSCRIBE", "d")
	changes.say("WATCH", "k")
	changes.say("AUTH", "bob", "x")
	if got := as("ada").say("PUBLISH", "d", "x"); got != ":1" { // the pattern of the first
		t.Errorf("%s listen to what one listened to who is another now", got)
	}
}

// TestMessagesKeepTheirOrder publishes much to one that reads late, and among replies of its own.
func TestMessagesKeepTheirOrder(t *testing.T) {
	const messages = 2000
	d := open(t)
	listener, other := talkTo(t, "tcp", d.address), talkTo(t, "tcp", d.address)
	listener.say("HELLO", "3")
	listener.say("SUBSCRIBE", "c")
	for i := range messages {
		if i%100 == 0 {
			listener.send("ECHO", "x")
		}
		if got := other.say("PUBLISH", "c", strconv.Itoa(i)); got != ":1" {
			t.Fatal(got)
		}
	}
	next, echoes := 0, 0
	for next < messages || echoes < messages/100 {
		got := listener.reply()
		if got == `$1 "x"` {
			echoes++
			continue
		}
		text := strconv.Itoa(next)
		if got != fmt.Sprintf(">3|$7 \"message\"|$1 \"c\"|$%d %q", len(text), text) {
			t.Fatalf("message %d is %s", next, got)
		}
		next++
	}
}

// TestSlowListenerIsCut: who does not read is not written to without end.
func TestSlowListenerIsCut(t *testing.T) {
	d := open(t)
	slow, other := talkTo(t, "tcp", d.address), talkTo(t, "tcp", d.address)
	slow.say("SUBSCRIBE", "c")
	text := strings.Repeat("x", 4<<20)
	for range 100 {
		if other.say("PUBLISH", "c", text) == ":0" {
			return
		}
	}
	t.Error("400 MB wait for a client that does not read")
}
