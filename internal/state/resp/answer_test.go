package resp

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/internal/state/places"
)

// nobody is a session that has no records.
type nobody struct{ Session }

func (nobody) Space() string { return "s" }

func (nobody) Exec(context.Context, []state.Expect, [][][]byte) ([]state.Reply, forerun.Version, error) {
	return nil, 0, nil
}

func (nobody) Hold(_ context.Context, _ *forerun.Reason, begin func()) error {
	if begin != nil {
		begin()
	}
	return nil
}

func connWithRoom(bytes int) *conn {
	s := &Server{options: Options{MaxBulk: bytes}, room: newRoom(bytes)}
	return &conn{server: s, session: nobody{}, space: newSpace(nil), protocol: 2, held: share{room: s.room}}
}

// TestLargeRepliesTakeRoomFirst: a reply for which there is no room is not written among those to send.
func TestLargeRepliesTakeRoomFirst(t *testing.T) {
	c := connWithRoom(1 << 20)
	c.answer(bulk(strings.Repeat("x", 600<<10)))
	if c.leaving || len(c.out) < 600<<10 {
		t.Fatalf("%d bytes of a reply for which there is room", len(c.out))
	}
	before := len(c.out)
	c.answer(bulk(strings.Repeat("x", 600<<10)))
	if added := string(c.out[before:]); !c.leaving || !strings.HasPrefix(added, "-ERR ") || !strings.Contains(added, "hold more") {
		t.Errorf("one for which there is none: %.100s", added)
	}
}

// patient is a session of an activation that is ahead: by its turn others have given back what they held.
type patient struct {
	nobody
	held  int
	turns func()
}

func (p *patient) IsAhead() bool { return p.held == 0 }

func (p *patient) Hold(ctx context.Context, why *forerun.Reason, begin func()) error {
	p.held++
	p.turns()
	return p.nobody.Hold(ctx, why, begin)
}

func (*patient) Do(context.Context, [][]byte) (state.Reply, forerun.Version, error) {
	return bulk(strings.Repeat("x", 600<<10)), 0, nil
}

func (*patient) Exec(context.Context, []state.Expect, [][][]byte) ([]state.Reply, forerun.Version, error) {
	return []state.Reply{bulk(strings.Repeat("x", 600<<10))}, 0, nil
}

// TestNoRoomAhead: where an activation that is ahead finds no room, for a command, a reply or a transaction's, it waits for its turn; it is refused
// what there is no room for then.
func TestNoRoomAhead(t *testing.T) {
	get := [][]byte{[]byte("GET"), []byte("k")}
	for name, asks := range map[string]func(c *conn) bool{
		"a command": func(c *conn) bool {
			c.parser.buf = make([]byte, 600<<10, 700<<10)
			return c.takeRoom(t.Context())
		},
		"a reply": func(c *conn) bool {
			c.execute(t.Context(), get)
			return !c.leaving
		},
		"what the door answers itself": func(c *conn) bool {
			c.out = make([]byte, 0, 500<<10)
			c.execute(t.Context(), [][]byte{[]byte("COMMAND")})
			return !c.leaving
		},
		"a transaction": func(c *conn) bool {
			c.begin()
			c.enqueue(command.Known(get[0]), get)
			c.execute(t.Context(), [][]byte{[]byte("EXEC")})
			return !c.leaving
		},
	} {
		for _, gives := range []bool{true, false} {
			c := connWithRoom(1 << 20)
			other := share{room: c.held.room}
			if !other.change("s", 500<<10) { // more would have no room in any case
				t.Fatal("there is no room at all")
			}
			session := &patient{turns: func() {
				if gives {
					other.change("s", 0)
				}
			}}
			c.session, c.net = session, nowhere{}
			if served := asks(c); served != gives || session.held == 0 {
				t.Errorf("%s, others give theirs back: %v: it is served: %v, and was held %d times", name, gives, served, session.held)
			}
		}
	}
}

// nowhere is a connection that nobody reads from.
type nowhere struct{ net.Conn }

func (nowhere) SetWriteDeadline(time.Time) error { return nil }

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// TestTransactionTakesRoomAsItAnswers: what the door itself answers in a transaction is not made beyond what there is room for.
func TestTransactionTakesRoomAsItAnswers(t *testing.T) {
	for words, fits := range map[string]bool{"PING": true, "COMMAND": false} {
		c := connWithRoom(1 << 20)
		c.begin()
		for range 1000 {
			c.enqueue(command.Known([]byte(words)), [][]byte{[]byte(words)})
		}
		if got := c.exec(t.Context()); (got.Kind == state.Array) != fits || c.leaving == fits {
			t.Errorf("1000 times %s: %.100s", words, got.Text)
		}
	}
}

// TestSpoiledTransactionTakesNoRoom: of one that EXEC will refuse nothing is kept, neither what was queued nor what follows.
func TestSpoiledTransactionTakesNoRoom(t *testing.T) {
	c := connWithRoom(1 << 20)
	set := [][]byte{[]byte("SET"), []byte("k"), make([]byte, 600<<10)}
	enqueue := func() state.Reply { return c.enqueue(command.Known(set[0]), set) }
	c.begin()
	if enqueue(); !c.hasRoom() || c.held.bytes < 600<<10 {
		t.Fatalf("what is queued takes %d bytes", c.held.bytes)
	}
	c.enqueue(nil, [][]byte{[]byte("NONSENSE")})
	for range 2 {
		if got := enqueue(); string(got.Text) != "QUEUED" || !c.hasRoom() || c.held.bytes != 0 || c.multi.queue != nil {
			t.Errorf("%.100s; %d commands are kept, %d bytes", got.Text, len(c.multi.queue), c.held.bytes)
		}
	}
	if got := c.exec(t.Context()); !strings.HasPrefix(string(got.Text), "EXECABORT") {
		t.Errorf("EXEC: %.100s", got.Text)
	}
}

// TestDescriptionsAreShared: a command that is asked for many times is described once.
func TestDescriptionsAreShared(t *testing.T) {
	names := make([][]byte, 2)
	for i := range names {
		names[i] = []byte("get")
	}
	got := describeNamed(names).Items
	if &got[0].Items[0] != &got[1].Items[0] {
		t.Error("each time it is described anew")
	}
}

// TestEmptyArgumentsTakeRoom: so do the places of arguments that are empty.
func TestEmptyArgumentsTakeRoom(t *testing.T) {
	c := connWithRoom(1 << 20)
	if c.parser.maxBulk = 1 << 20; !c.hasRoom() {
		t.Fatal("no room for nothing")
	}
	c.parser.buf = []byte("*100000\r\n" + strings.Repeat("$0\r\n\r\n", 60_000))
	if _, complete, err := c.parser.next(); complete || err != nil {
		t.Fatal(complete, err)
	}
	if c.hasRoom() {
		t.Errorf("%d arguments in %d bytes take less than a MiB", len(c.parser.args), len(c.parser.buf))
	}
}

// TestOwnNamesTakeRoom: so do the names that a connection gives itself, of which it keeps as much as it likes.
func TestOwnNamesTakeRoom(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 400<<10)
	for _, names := range [][][]byte{
		{[]byte("CLIENT"), []byte("SETNAME"), large}, {[]byte("CLIENT"), []byte("SETINFO"), []byte("lib-name"), large}, {[]byte("HELLO"), []byte("3"), []byte("SETNAME"), large},
	} {
		c := connWithRoom(1 << 20)
		other := share{room: c.held.room}
		other.change("s", 700<<10)
		c.execute(t.Context(), names)
		if c.leaving || c.hasRoom() {
			t.Errorf("%s %s: %.100q; %d bytes are held", names[0], names[1], c.out, c.held.bytes)
		}
		if other.change("s", 0); !c.hasRoom() || c.held.bytes < len(large) {
			t.Errorf("%s %s: %d bytes are held where there is room", names[0], names[1], c.held.bytes)
		}
	}
}

// listening is a session that looks whether its connection's goroutine may write as it begins to listen.
type listening struct {
	nobody
	looks func()
}

func (listening) Listens(bool) {}

func (l listening) Hold(_ context.Context, _ *forerun.Reason, begin func()) error {
	l.looks()
	begin()
	return nil
}

// TestListensWithItsConnectionInHand: who begins to listen to more does not wait for a client that reads nothing while the rest of its activation
// waits for that.
func TestListensWithItsConnectionInHand(t *testing.T) {
	c := connWithRoom(1 << 20)
	c.net, c.turn = nowhere{}, places.New(1).Turn()
	c.session = listening{looks: func() {
		if c.sub != nil && c.sub.writing.TryLock() {
			t.Error("it would wait for messages that are being sent")
			c.sub.writing.Unlock()
		}
	}}
	for _, command := range []string{"SUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE"} {
		c.execute(t.Context(), [][]byte{[]byte(command), []byte("channel")})
		if err := c.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.forsake()
}
