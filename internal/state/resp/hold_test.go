package resp_test

import (
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/command"
)

// TestWhatIsHeld: what others see at once, who listens and who waits, is done in an activation's turn.
func TestWhatIsHeld(t *testing.T) {
	d := open(t)
	k, other := talkTo(t, "tcp", d.address), talkTo(t, "tcp", d.address)
	held := func(words ...string) int64 {
		before := d.held.Load()
		k.say(words...)
		return d.held.Load() - before
	}
	for i, c := range []struct {
		words []string
		want  int64
	}{
		{[]string{"RPUSH", "l", "1"}, 0},
		{[]string{"UNSUBSCRIBE", "c"}, 0},
		{[]string{"RESET"}, 0},
		{[]string{"SUBSCRIBE", "c"}, 1},
		{[]string{"UNSUBSCRIBE", "c"}, 1},
		{[]string{"PUNSUBSCRIBE"}, 0},
		{[]string{"PSUBSCRIBE", "c*"}, 1},
		{[]string{"RESET"}, 1},
		{[]string{"DEL", "l"}, 0},
	} {
		if got := held(c.words...); got != c.want {
			t.Errorf("%d: %v was held %d times; want %d", i, c.words, got, c.want)
		}
	}
	other.waits(k, []string{"BLPOP", "l", "0"})
	for name, want := range map[string]bool{"l": true, "m": false} {
		if got := d.hub.IsAwaited([]forerun.Key{{Space: "tests", Name: name}}); got != want {
			t.Errorf("%s is awaited: %v", name, got)
		}
	}
	for i, c := range []struct {
		words []string
		want  int64
	}{
		{[]string{"LLEN", "l"}, 0},
		{[]string{"RPUSH", "m", "1"}, 0},
		{[]string{"MULTI"}, 0},
		{[]string{"GET", "l"}, 0},
		{[]string{"SADD", "l", "1"}, 0},
		{[]string{"EXEC"}, 1},
		{[]string{"DEL", "l"}, 1},
		{[]string{"RPUSH", "l", "1"}, 1},
	} {
		if got := held(c.words...); got != c.want {
			t.Errorf("while somebody waits, %d: %v was held %d times; want %d", i, c.words, got, c.want)
		}
	}
	if got := other.reply(); got != `*2|$1 "l"|$1 "1"` {
		t.Error(got)
	}
	if why := d.why.Load(); why != "waiter_first(RPUSH)" {
		t.Errorf("the last one was held as %v", why)
	}
	if got := held("RPUSH", "l", "1"); got != 0 {
		t.Errorf("it was held %d times that nobody waits for", got)
	}
}

// TestWhyIsHeld: what the door itself holds is named, with a reason of its own.
func TestWhyIsHeld(t *testing.T) {
	d := open(t)
	k := talkTo(t, "tcp", d.address)
	for _, words := range [][]string{
		{"WATCH", "k"},
		{"PUBLISH", "c", "m"},
		{"PUBSUB", "NUMPAT"},
		{"CLIENT", "KILL", "ID", "99"},
		{"CLIENT", "UNBLOCK", "99"},
		{"CLIENT", "TRACKING", "ON"},
		{"CLIENT", "TRACKING", "OFF"},
		{"SUBSCRIBE", "c"},
		{"PSUBSCRIBE", "c*"},
		{"UNSUBSCRIBE", "c"},
		{"PUNSUBSCRIBE", "c*"},
		{"SUBSCRIBE", "c"},
		{"RESET"},
	} {
		k.say(words...)
		name := strings.ToLower(words[0])
		if name == "client" {
			name += " " + strings.ToLower(words[1])
		}
		want := command.Held(name)
		if why := d.why.Load(); why != want.String() || want.Code == forerun.ReasonIrreversible {
			t.Errorf("%v is held since %v", words, why)
		}
	}
}
