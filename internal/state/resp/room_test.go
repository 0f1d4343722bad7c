package resp_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/state/resp"
)

// TestHeldMemoryIsBounded has connections hold what they have begun: when it is too much for their namespace the next is
// refused, and when it is given back another one is served.
func TestHeldMemoryIsBounded(t *testing.T) {
	d := openWith(t, resp.Options{MaxBulk: 1 << 20, MaxHeld: 1 << 20}, vfs.NewMem())
	large := strings.Repeat("x", 600<<10)
	hold := func() (*talker, string) {
		k := talkTo(t, "tcp", d.address)
		k.say("MULTI")
		_, _ = k.conn.Write([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$614400\r\n" + large + "\r\n")) // which may be cut off
		return k, k.reply()
	}
	first, reply := hold()
	if reply != "+QUEUED" {
		t.Fatalf("the first holds 600 KiB: %.100s", reply)
	}
	second, reply := hold()
	if !strings.Contains(reply, "hold more than 1 MiB") && reply != "EOF" { // the kernel may drop the words with the rest
		t.Errorf("the second: %.100s", reply)
	}
	second.conn.Close()
	small := talkTo(t, "tcp", d.address)
	if got := small.say("SET", "a", "b"); got != "+OK" {
		t.Errorf("small commands: %s", got)
	}
	if got := first.say("DISCARD"); got != "+OK" {
		t.Errorf("DISCARD: %s", got)
	}
	third, reply := hold()
	if reply != "+QUEUED" {
		t.Errorf("when the first has given back what it held: %.100s", reply)
	}
	if got := third.say("EXEC"); got != "*1|+OK" {
		t.Errorf("EXEC: %.100s", got)
	}
	if got := small.say("STRLEN", "k"); got != ":614400" {
		t.Errorf("k has %s bytes", got)
	}
}
