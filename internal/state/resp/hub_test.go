package resp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/command"
)

// TestHubOfAnotherSpace: whoever holds up what connections of one space share holds up none of another.
func TestHubOfAnotherSpace(t *testing.T) {
	h := &Hub{}
	busy, other := h.space("busy"), h.space("other")
	busy.mu.Lock()
	busy.channels.mu.Lock()
	busy.positions.mu.Lock()
	key := forerun.Key{Space: "other", Name: "a"}
	w := &watch{}
	other.watch(w, key)
	h.changed(key, 1)
	if !w.touched.Load() {
		t.Error("a watch was not told")
	}
	other.unwatch(w, key)
	if _, err := other.channels.publish(t.Context(), "c", "text"); err != nil {
		t.Error(err)
	}
	n := other.positions.keep("p")
	if other.positions.position(n) != "p" {
		t.Error("a position is lost")
	}
	if h.Erase("other"); other.positions.position(n) != "0" || other.positions.keep("q") == n {
		t.Error("a position stays of a space that was erased")
	}
}

// TestUnreadMessagesTakeRoom: messages that wait for subscribers are among what a space may hold, until they are sent, and those for whom
// there is no more room are cut.
func TestUnreadMessagesTakeRoom(t *testing.T) {
	r, c := newRoom(1<<20), &newSpace(nil).channels
	subscribers, cut := make([]*subscriber, 3), make([]int, 3)
	for i := range subscribers {
		subscribers[i] = &subscriber{wake: make(chan struct{}, 1), cut: func() { cut[i]++ }, name: "s", held: share{room: r}}
		c.add(subscribers[i], "c", false)
	}
	if n, err := c.publish(t.Context(), "c", strings.Repeat("x", 600<<10)); n != 3 || err != nil {
		t.Error(n, err)
	}
	if cut[0]+cut[1]+cut[2] != 2 {
		t.Errorf("of three with 600 KiB each %v are cut", cut)
	}
	for _, s := range subscribers {
		s.take(3)
	}
	if r.taken["s"] < 600<<10 {
		t.Errorf("while they are sent only %d bytes count", r.taken["s"])
	}
	for _, s := range subscribers {
		s.sent()
	}
	if len(r.taken) != 0 {
		t.Errorf("when all is read there are %v bytes", r.taken)
	}
}

// TestMatchingEnds: a pattern that takes long to match ends with who waits for that, holds up nobody else, and nobody gets a message of which
// it is not known who is to.
func TestMatchingEnds(t *testing.T) {
	pattern, name := "*"+strings.Repeat("a", 1<<20)+"b", strings.Repeat("a", 4<<20) // hours
	c := &newSpace(nil).channels
	s := &subscriber{wake: make(chan struct{}, 1), cut: func() {}}
	c.add(s, pattern, true)
	c.add(s, name, false)
	for what, match := range map[string]func(context.Context) error{
		"PUBLISH": func(ctx context.Context) error {
			_, err := c.publish(ctx, name, "text")
			return err
		},
		"PUBSUB CHANNELS": func(ctx context.Context) error {
			_, err := c.names(ctx, []byte(pattern))
			return err
		},
	} {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- match(ctx) }()
		c.add(s, "other", false)
		c.remove(s, "other", false)
		leave()
		if err := heard(t, ended, what+" goes on"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s ended with %v", what, err)
		}
	}
	if len(s.messages) != 0 {
		t.Errorf("it gets %d messages", len(s.messages))
	}
}

// TestListenersOfPatternsThatCameLate: who listens to a pattern, and then to the channel, since the patterns were listed gets both, unless it
// takes long to tell: then nobody gets anything yet.
func TestListenersOfPatternsThatCameLate(t *testing.T) {
	for pattern, want := range map[string]int{"p*": 2, "q*": 1, strings.Repeat("*p", matchedAtOnce/4): 0} {
		c := &newSpace(nil).channels
		s := &subscriber{wake: make(chan struct{}, 1), cut: func() {}}
		c.add(s, pattern, true)
		c.add(s, "p1", false)
		none := addressees{channel: "p1", matcher: command.NewMatcher(t.Context()), tried: make(map[string]bool)}
		if n, ok := c.deliver(&none, "text"); int(n) != want || len(s.messages) != want || ok != (want > 0) {
			t.Errorf("%.10s: %d, %t, with %d messages", pattern, n, ok, len(s.messages))
		}
		s.messages = nil
		want = max(1, want)
		if n, err := c.publish(t.Context(), "p1", "text"); err != nil || int(n) != want || len(s.messages) != want {
			t.Errorf("%.10s: %d, %v, with %d messages when all is known", pattern, n, err, len(s.messages))
		}
	}
}
