package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/seats"
)

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

// conn is a connection of a client, below TLS. It is a stranger's until a request shows a key.
//
// HTTP/1.1 has one request at a time, so the connection belongs to the tenant of the last one: a proxy may use it for one tenant after another.
// The requests of an HTTP/2 connection share it, so it belongs to the tenant of the first authenticated one until its end. A web action's
// request is no authentication: such a connection belongs to the owner of the last action until a key is shown.
type conn struct {
	net.Conn
	seats *seats.Seats
	until atomic.Int64 // the deadline for writes that was set, in nanoseconds since 1970; 0: none

	mu    sync.Mutex // guards the rest
	of    string     // the tenant whose seat it has; empty: a stranger's
	bound bool       // a request of HTTP/2 showed that tenant's key
	leave func()     // gives its seat back; nil when it is closed
}

type connKey struct{}

// withConn is the context of a connection's requests: the connection lies in it under connKey.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	until := int64(0)
	if !t.IsZero() {
		until = t.UnixNano()
	}
	c.until.Store(until)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return cmp.Or(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Write implements io.Writer. A client may take its time for each part, but not for ever, nor longer than a deadline that was set.
func (c *conn) Write(b []byte) (sent int, err error) {
	for part := range slices.Chunk(b, answerPart) {
		deadline := time.Now().Add(partTime)
		if until := c.until.Load(); until != 0 && until < deadline.UnixNano() {
			deadline = time.Unix(0, until)
		}
		_ = c.Conn.SetWriteDeadline(deadline) // the write tells if the connection is gone
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

// claim is whose connection a request asks for.
type claim struct {
	of     string // the tenant
	keyed  bool   // the request shows the tenant's key
	shared bool   // the connection has other requests at the same time
}

// verdict is what becomes of a claim.
type verdict int

// The verdicts.
const (
	seatTaken  verdict = iota // the connection has a seat
	noSeat                    // the tenant has all connections that it may have
	otherOwner                // the connection is another tenant's
)

// sit makes the connection a tenant's.
func (c *conn) sit(by claim) verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.leave == nil:
		return seatTaken // it is closed
	case c.bound && c.of != by.of && by.keyed:
		return otherOwner
	case c.bound:
		return seatTaken // of another, whose client asks for a web action
	}
	if c.of != by.of {
		give, ok := func() {}, true
		if by.of != operator {
			give, ok = c.seats.Take(by.of)
		}
		if !ok {
			return noSeat
		}
		c.leave()
		c.of, c.leave = by.of, give
	}
	c.bound = by.keyed && by.shared
	return seatTaken
}

// Seat makes the connection of a request that shows a tenant's key the tenant's, if it is a client's. The error is forerun.TooMany if the
// tenant has all that it may have, and forerun.Misdirected if the connection is another tenant's. Then the connection takes no further
// request, so that the client opens another.
func Seat(w http.ResponseWriter, r *http.Request, namespace string) error {
	return seat(w, r, claim{namespace, true, isShared(r)})
}

// SeatVisit is Seat for a request of a web action, which shows no key of its owner. It may share the connection of another tenant.
func SeatVisit(w http.ResponseWriter, r *http.Request, owner string) error {
	return seat(w, r, claim{owner, false, isShared(r)})
}

// SeatOperator is Seat for the operator: there is always room for it.
func SeatOperator(w http.ResponseWriter, r *http.Request) error { return Seat(w, r, operator) }

// operator is no tenant's name.
const operator = "/"

func seat(w http.ResponseWriter, r *http.Request, by claim) error {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return nil
	}
	switch c.sit(by) {
	case noSeat:
		endConn(w)
		return tooMany(1, "Too many connections at a time.")
	case otherOwner:
		endConn(w)
		return forerun.Errorf(forerun.Misdirected, "", "This connection belongs to another tenant. Send the request again over a new one.")
	}
	return nil
}

// isShared reports whether a request's connection has others at the same time.
func isShared(r *http.Request) bool { return r.ProtoMajor > 1 }

// endConn has the connection take no request after this answer: http.Server closes one of HTTP/1.1, and says GOAWAY on one of HTTP/2.
func endConn(w http.ResponseWriter) { w.Header().Set("Connection", "close") }
