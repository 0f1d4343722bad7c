package worker

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// turn is a bridge whose commands wait for their activation's turn, or until their client has gone.
type turn struct {
	bridge
	asked chan string   // commands that wait
	comes chan struct{} // closed when it is their turn
	gone  chan error    // of those whose client has: whether the activation is over
}

// newTurnRig is a rig with such a bridge, and an API whose calls the test answers.
func newTurnRig(t *testing.T) (*rig, turn, *calls) {
	t.Helper()
	w := turn{asked: make(chan string, 8), comes: make(chan struct{}), gone: make(chan error, 8)}
	store, calls := withStore(t), newCalls(t)
	g := newRig(t, func(c *Config) { single(c); store(c); c.Bridge = w })
	g.ServeAPI(calls)
	return g, w, calls
}

func (w turn) Do(ctx context.Context, by state.Asker, c state.Command) (state.Reply, forerun.Version, error) {
	heard, stop := by.Listen(ctx)
	defer stop()
	w.asked <- string(c.Args[1])
	select {
	case <-w.comes:
		return w.bridge.Do(ctx, by, c)
	case <-heard.Done():
		w.gone <- context.Cause(ctx)
		return state.Reply{}, 0, heard.Err()
	}
}

// next is what the next command is for.
func (w turn) next(t *testing.T) string {
	t.Helper()
	return await(t, w.asked, "no function asks for anything")
}

// TestClientsThatGiveUpAreNoticed: while a command waits for its activation's turn, also behind others that were sent with it, which are
// not executed.
func TestClientsThatGiveUpAreNoticed(t *testing.T) {
	g, w, calls := newTurnRig(t)
	_, h := g.ahead(action(client+`
def main(args):
    conn = connect("STATE")
    conn.sendall(b"SPOP one\r\nSPOP two\r\n")
    api("/sent")
    conn.close()
    return {"answer": api("/closed")}
`), `{}`)
	if first := w.next(t); first != "one" {
		t.Errorf("the first command is for %s", first)
	}
	calls.next()
	calls.answer <- ""
	if err := await(t, w.gone, "it is not noticed that its client has gone"); err != nil && !errors.Is(err, errClosed) {
		t.Errorf("the activation was over: %v", err)
	}
	calls.next()
	calls.answer <- "well"
	if end := g.wait(h); string(end.Result) != `{"answer":"well"}` {
		t.Errorf("%s", end.Result)
	}
	if len(w.asked) > 0 {
		t.Errorf("the command for %s was executed, and its client had gone", <-w.asked)
	}
}

// TestWhatComesWhileACommandWaitsIsKept: the client that is listened to may go on sending.
func TestWhatComesWhileACommandWaitsIsKept(t *testing.T) {
	g, w, calls := newTurnRig(t)
	_, h := g.ahead(action(client+`
def main(args):
    conn = connect("STATE")
    conn.sendall(b"GET one\r\n")
    api("/sent")
    conn.sendall(b"GET two\r\nGET th")
    api("/more")
    conn.sendall(b"ree\r\n")
    answers = b""
    while answers.count(b"GET") < 3 and (part := conn.recv(1000)):
        answers += part
    return {"answers": answers.count(b"GET")}
`), `{}`)
	w.next(t)
	for range 2 {
		calls.next()
		calls.answer <- ""
	}
	close(w.comes)
	if end := g.wait(h); string(end.Result) != `{"answers":3}` {
		t.Errorf("%s", end.Result)
	}
	if two, three := w.next(t), w.next(t); two != "two" || three != "three" {
		t.Errorf("behind it came commands for %s and %s", two, three)
	}
}

// TestClientsThatGiveUpRequestsAreNoticed: also before the body of a request is read, as it is not while that waits for its
// activation's turn.
func TestClientsThatGiveUpRequestsAreNoticed(t *testing.T) {
	g := newRig(t, single)
	arrived, gone := make(chan struct{}), make(chan struct{})
	g.ServeAPI(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/given-up":
			heard, stop := Asker(r.Context()).Listen(r.Context())
			defer stop()
			close(arrived)
			<-heard.Done()
			close(gone)
		case "/arrived":
			awaitFor(r, arrived)
		case "/gone":
			awaitFor(r, gone) // or the function does not end
		}
	}))
	_, h := g.ahead(action(client+`
def main(args):
    conn = connect("API")
    conn.sendall(b"POST /given-up HTTP/1.1\r\nHost: api\r\nContent-Length: 2\r\n\r\n{}")
    api("/arrived")
    conn.close()
    api("/gone")
    return {}
`), `{}`)
	if end := g.wait(h); end.Status != forerun.Success {
		t.Errorf("%s", end.Result)
	}
}

// awaitFor waits until something is closed, or the test gives up.
func awaitFor(r *http.Request, closed <-chan struct{}) {
	select {
	case <-closed:
	case <-r.Context().Done():
	}
}

// TestCommandsEndWithTheirConnection: and with their activation, of which a connection has one after the other.
func TestCommandsEndWithTheirConnection(t *testing.T) {
	c := &doorConn{}
	c.ctx, c.cancel = context.WithCancel(t.Context())
	s := &session{conn: c}
	first, second := newTenure("a"), newTenure("b")
	one := s.in(first)
	if s.in(first) != one || one.Err() != nil {
		t.Error("a second command of an activation has another context")
	}
	if first.cancel(); one.Err() == nil {
		t.Error("a command does not end with its activation")
	}
	two := s.in(second)
	if two.Err() != nil {
		t.Error("the next activation's ends with it")
	}
	c.cancel()
	if <-two.Done(); !errors.Is(context.Cause(two), errClosed) {
		t.Errorf("it ends since %v", context.Cause(two))
	}
}
