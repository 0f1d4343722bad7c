package resp

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// connected are the two ends of a connection.
func connected(t *testing.T) (server, client net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Close()
		client.Close()
	})
	return server, client
}

func heard[T any](t *testing.T, from <-chan T, otherwise string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(2 * time.Minute):
		t.Fatal(otherwise)
	}
	return value
}

// TestEar: it is heard that the client leaves, whatever it has sent before, and what it sends stays for who reads next.
func TestEar(t *testing.T) {
	server, client := connected(t)
	left := make(chan struct{})
	e := newEar(server, 0, func() { close(left) })
	for range 3 {
		e.open()
		if _, err := io.WriteString(client, "word"); err != nil {
			t.Fatal(err)
		}
		e.shut()
		word := make([]byte, 4)
		if _, err := io.ReadFull(server, word); err != nil || string(word) != "word" {
			t.Fatalf("%q, %v", word, err)
		}
	}
	e.open()
	if _, err := io.WriteString(client, "unread"); err != nil {
		t.Fatal(err)
	}
	client.Close()
	heard(t, left, "nobody hears that the client has left")
	e.shut()
}

// endless is a session whose commands go on as long as somebody waits.
type endless struct {
	nobody
	begun chan struct{}
	ended chan error
}

func (e endless) Do(ctx context.Context, _ [][]byte) (state.Reply, forerun.Version, error) {
	e.begun <- struct{}{}
	<-ctx.Done()
	e.ended <- ctx.Err()
	return state.Reply{}, 0, ctx.Err()
}

func (e endless) Exec(ctx context.Context, _ []state.Expect, _ [][][]byte) ([]state.Reply, forerun.Version, error) {
	_, _, err := e.Do(ctx, nil)
	return nil, 0, err
}

// TestCommandsEndWithTheirClient: a command or a transaction does not go on when its client has left.
func TestCommandsEndWithTheirClient(t *testing.T) {
	for _, words := range []string{"KEYS *\r\n", "MULTI\r\nKEYS *\r\nEXEC\r\n", "KEYS *\r\nPING\r\n"} {
		server, client := connected(t)
		s := NewServer(&Hub{}, Options{})
		s.earAfter = 0
		session := endless{begun: make(chan struct{}, 1), ended: make(chan error, 1)}
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.ServeConn(t.Context(), server, session)
		}()
		if _, err := io.WriteString(client, words); err != nil {
			t.Fatal(err)
		}
		heard(t, session.begun, "it does not begin")
		client.Close()
		if err := heard(t, session.ended, "it goes on"); !errors.Is(err, context.Canceled) {
			t.Errorf("%q ended with %v", words, err)
		}
		heard(t, served, "its connection lasts")
	}
}
