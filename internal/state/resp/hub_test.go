package resp

import (
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
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
	other.channels.publish("c", "text")
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
	r, c := newRoom(1<<20), &newSpace().channels
	subscribers, cut := make([]*subscriber, 3), make([]int, 3)
	for i := range subscribers {
		subscribers[i] = &subscriber{wake: make(chan struct{}, 1), cut: func() { cut[i]++ }, name: "s", held: share{room: r}}
		c.add(subscribers[i], "c", false)
	}
	c.publish("c", strings.Repeat("x", 600<<10))
	if cut[0]+cut[1]+cut[2] != 2 {
		t.Errorf("of three with 600 KiB each %v are cut", cut)
	}
	for _, s := range subscribers {
		s.take()
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
