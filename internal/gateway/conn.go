package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

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
	c := &conn{Conn: accepted, place: place{seats: l.seats}}
	c.stand(func() { _ = c.Close() })
	return c, nil
}

// conn is a connection of a client over TCP, below TLS.
type conn struct {
	net.Conn
	place
	shaken atomic.Bool  // its TLS handshake was counted
	until  atomic.Int64 // the deadline for writes that was set, in nanoseconds since 1970; 0: none
}

// withConn returns the context of a connection's requests. It holds the connection under clientKey.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, clientKey{}, c)
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
	c.vacate()
	return c.Conn.Close()
}

// refuseMore implements client: http.Server closes a connection of HTTP/1.1 then, and says GOAWAY on one of HTTP/2.
func (c *conn) refuseMore(w http.ResponseWriter) { w.Header().Set("Connection", "close") }
