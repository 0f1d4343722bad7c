// Package resp is the RESP door: it speaks Redis's protocol, RESP2 and RESP3,
// with clients and passes their commands to a Session.
//
// It answers what is about the connection itself (HELLO, AUTH, CLIENT, SELECT,
// PING ...). Everything else is the Session's, which decides whose records the
// commands work on and whether they may. A client gets a reply only when what
// it rests on is on disk: all commands that have arrived are executed, then the
// door waits once, then it answers.
//
// It promises that whatever bytes come in, no more memory is taken than a small
// multiple of what really came in and of the replies to it, and for one space no
// more than Options.MaxHeld, and that errors have Redis's words. A connection is
// one goroutine.
package resp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/seats"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/places"
)

// Session executes the commands of one connection, one at a time. One that may be of an activation that is ahead of its turn has a method
// IsAhead() bool, too, that tells whether that is so: it gets half of the room only, and has the other half in its turn.
// One that is to hear of a client that waits for records to change has a method Sleeps() (end func()), which is called as the wait begins.
type Session interface {
	// Do executes a command; args are valid only until it returns. The reply is shown after Durable(version) has
	// returned nil. An error ends as an error reply, unless the connection's context has ended, as it does also when the client leaves
	// while a command has been at work for a second.
	Do(ctx context.Context, args [][]byte) (state.Reply, forerun.Version, error)
	// Exec executes commands as state.Store's Exec does.
	Exec(ctx context.Context, expect []state.Expect, commands [][][]byte) ([]state.Reply, forerun.Version, error)
	// Versions reads what versions records have.
	Versions(ctx context.Context, keys []forerun.Key) ([]state.Expect, error)
	// Hold returns when the door may do what is no command on records: send and hear messages, wait for others' changes. why is for the trace.
	// begin, if it is not nil, was called then, before anything is done that the activation has asked for since on another connection.
	Hold(ctx context.Context, why *forerun.Reason, begin func()) error
	// Listens hears whether the client listens to messages from now on, or is about to.
	Listens(now bool)
	// Space is the key space that the commands work in.
	Space() string
	// Waits ends when a command of now must not wait for records any longer; what it asks for then is not executed.
	Waits() context.Context
	// Durable waits until every write up to v is on disk.
	Durable(ctx context.Context, v forerun.Version) error
}

// Refusal is an error that is answered in its own words, which begin with a code as Redis's do.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Options are the settings of a server; the zero value serves whom accept gives a session.
type Options struct {
	// Authenticate finds the session for a name and a password (the name is "default" if the client gives none). The
	// error is forerun.Unauthorized if they are wrong. nil: no password is needed.
	Authenticate func(ctx context.Context, user, password string) (Session, error)
	MaxBulk      int // longest argument in bytes; 0: 512 MB as Redis
	MaxConns     int // connections at a time; 0: MaxConns. Beyond it each space may still have its part of them
	MaxStrangers int // connections that have not authenticated, beside the others; 0: MaxStrangers
	MaxHeld      int // bytes of unfinished commands, transactions, unread replies and messages, and names waited for, of one space; 0: eight times MaxBulk
}

// How many connections are enough.
const (
	MaxConns     = 10_000 // as at Redis
	MaxStrangers = 1024   // that have not authenticated
)

// Server serves connections.
type Server struct {
	hub     *Hub
	options Options
	room    *room
	seats   *seats.Seats

	earAfter time.Duration // a test's is shorter
}

// NewServer makes a server whose sessions work on the store of the hub.
func NewServer(h *Hub, o Options) *Server {
	if o.MaxBulk == 0 {
		o.MaxBulk = 512 << 20
	}
	o.MaxConns = cmp.Or(o.MaxConns, MaxConns)
	o.MaxStrangers = cmp.Or(o.MaxStrangers, MaxStrangers)
	if o.MaxHeld == 0 {
		o.MaxHeld = 8 * o.MaxBulk
	}
	return &Server{hub: h, options: o, room: newRoom(o.MaxHeld), seats: seats.New(o.MaxConns, o.MaxStrangers), earAfter: earAfter}
}

// Accept decides who speaks through a new connection, and until when: the connection is cut when the context that it
// returns ends. A nil session has to authenticate. No other connection is accepted until it returns.
type Accept func(ctx context.Context, c net.Conn) (context.Context, Session)

// Serve accepts connections until ctx ends or the listener is closed; then it cuts them, and returns when all are gone.
// The error is nil after either, and else that of the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener, accept Accept) error {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })() // whatever it says, nothing is accepted any more
	for {
		c, err := ln.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case isShortage(err):
			pause(ctx, 10*time.Millisecond)
			continue
		default:
			return forerun.Errorf(forerun.Internal, "Redis door", "Connections cannot be accepted any more: %w", err)
		}
		connCtx, session := accept(ctx, c)
		serving.Go(func() { s.ServeConn(connCtx, c, session) })
	}
}

// isShortage says whether the machine has too few descriptors just now.
func isShortage(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// ServeConn serves one connection until the client leaves or ctx ends, and closes it.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn, session Session) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, func() { _ = nc.Close() })()
	defer nc.Close()
	turn := s.hub.places.Turn()
	defer turn.Leave()
	ctx = places.With(ctx, turn)
	c := &conn{
		server: s, turn: turn, net: nc, since: time.Now(), first: session, protocol: 2, cut: end,
		parser: parser{maxBulk: s.options.MaxBulk}, held: share{room: s.room}, ear: newEar(nc, s.earAfter, end),
	}
	c.shown.set(func(p *profile) {
		p.last, p.heard = "NULL", c.since
		c.describeTo(p)
	})
	if !c.join(session) {
		_, _ = nc.Write([]byte("-" + noSeat + "\r\n")) // it is closed in any case
		return
	}
	c.serve(ctx)
}
