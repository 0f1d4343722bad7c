package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"forerun.dev/forerun/internal/seats"
)

// How many connections are enough.
const (
	MaxConns     = 10_000 // of tenants, as at the Redis door
	MaxStrangers = 4096   // who has a key is one until the first request has come: many may come at once
)

// Bounds of what a client may keep open.
const (
	headTime = 10 * time.Second // for the head of a request
	idleTime = 3 * time.Minute  // between requests
	maxHead  = 64 << 10         // bytes of the head
)

// Server serves a front door to clients. A connection is a stranger's until a request on it shows a key, and then belongs to the tenant of
// the last one; the operator's are not counted.
type Server struct {
	*http.Server
	seats *seats.Seats
}

// NewServer returns the server of a front door's handler, whose connections take seats.
func NewServer(handler http.Handler, has *seats.Seats, log *slog.Logger) *Server {
	return &Server{
		Server: &http.Server{
			Handler: handler, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
			ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		seats: has,
	}
}

// Serve serves the connections of a listener, as http.Server's does.
func (s *Server) Serve(l net.Listener) error { return s.Server.Serve(&seated{l, s.seats}) }

// seated is a listener whose connections have seats.
type seated struct {
	net.Listener
	seats *seats.Seats
}

// Accept implements net.Listener.
func (l *seated) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, seats: l.seats}
	c.leave = l.seats.Stand(func() { _ = c.Close() })
	return c, nil
}

// conn is a connection of a client; in the context of its requests it lies under connKey.
type conn struct {
	net.Conn
	seats *seats.Seats

	mu    sync.Mutex // guards the rest
	of    string     // the tenant whose it is; empty: a stranger's
	leave func()     // gives its seat back; nil when it is closed
}

type connKey struct{}

// Write implements io.Writer. A client may take its time for each part, but not for ever.
func (c *conn) Write(b []byte) (sent int, err error) {
	for part := range slices.Chunk(b, answerPart) {
		_ = c.SetWriteDeadline(time.Now().Add(partTime)) // the write tells if the connection is gone
		n, err := c.Conn.Write(part)
		if sent += n; err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// CloseWrite lets who still sends hear the last answer: http.Server looks for it.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close ends the connection. It may be called twice.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
	return c.Conn.Close()
}

// sit makes the connection a tenant's, and reports false if there is no seat for it.
func (c *conn) sit(of string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == of || c.leave == nil {
		return true
	}
	give, ok := func() {}, true
	if of != operator {
		give, ok = c.seats.Take(of)
	}
	if ok {
		c.leave()
		c.of, c.leave = of, give
	}
	return ok
}

// Seat makes the connection of a request a tenant's, if it is a client's. The error is forerun.TooMany if the tenant has all that it may
// have: then the connection ends with the answer.
func Seat(w http.ResponseWriter, r *http.Request, namespace string) error {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok || c.sit(namespace) {
		return nil
	}
	w.Header().Set("Connection", "close")
	return tooMany(1, "Too many connections at a time.")
}

// SeatOperator makes the connection of a request the operator's: there is always room for it.
func SeatOperator(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.sit(operator)
	}
}

// operator is no tenant's name.
const operator = "/"
