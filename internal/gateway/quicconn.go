package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// quicConn is a connection of a client over QUIC. It ends when it has no request for a while. A request counts once its head has come.
type quicConn struct {
	place
	keyless keyless
	window  *credit
	traffic *Traffic
	handler http.Handler
	conn    *quic.Conn    // nil until the first flight was read
	server  *http3.Server // of this connection alone
	shaken  func()        // the handshake is over

	mu      sync.Mutex // guards the rest
	idle    *time.Timer
	retire  *time.Timer
	running int       // requests
	since   time.Time // when the last one ended
	leaving bool      // GOAWAY was said
}

// leaveTime is how long a client that was told GOAWAY may take to read its last answer and close the connection.
const leaveTime = 5 * time.Second

// watch gives the client until headTime for its first request, and until keylessTime to show a key.
func (c *quicConn) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.idle = time.AfterFunc(headTime, c.cutIdle)
	c.retire = time.AfterFunc(keylessTime, func() {
		if _, bound := c.owner(); !bound {
			c.goAway()
		}
	})
}

// ServeHTTP implements http.Handler.
func (c *quicConn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.running++
	c.idle.Stop()
	c.mu.Unlock()
	defer c.ended()
	c.admitEarly(r)
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		r.Body = &expected{ReadCloser: r.Body, goOn: sync.OnceFunc(func() { w.WriteHeader(http.StatusContinue) })}
	}
	c.handler.ServeHTTP(w, r)
}

// ended notes the end of a request.
func (c *quicConn) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.since = time.Now()
	c.rearm()
}

// rearm has the connection end when it has been idle for long. The caller holds mu.
func (c *quicConn) rearm() {
	switch {
	case c.running > 0:
	case c.leaving:
		c.idle.Reset(leaveTime)
	default:
		c.idle.Reset(idleTime)
	}
}

// cutIdle ends the connection unless a request has come meanwhile.
func (c *quicConn) cutIdle() {
	c.mu.Lock()
	busy := c.running > 0
	c.mu.Unlock()
	if !busy {
		c.cut()
	}
}

// cut ends the connection at once.
func (c *quicConn) cut() {
	_ = c.conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // it cannot fail
}

// refuseMore implements client: other requests of the connection that are under way go on.
func (c *quicConn) refuseMore(http.ResponseWriter) { c.goAway() }

// goAway tells the client to send no more requests.
func (c *quicConn) goAway() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.leaving {
		c.leaving = true
		c.rearm()
		go func() { _ = c.server.Shutdown(context.Background()) }() // until the connection has ended
	}
}

// drain is goAway, and ends a connection at once whose last answer was given a while ago.
func (c *quicConn) drain() {
	c.goAway()
	c.mu.Lock()
	quiet := c.running == 0 && time.Since(c.since) > time.Second
	c.mu.Unlock()
	if quiet {
		c.cut()
	}
}

// sit implements client.
func (c *quicConn) sit(by claim) verdict {
	v := c.place.sit(by)
	if v != seatTaken {
		return v
	}
	if of, bound := c.owner(); !c.window.moveTo(of, !bound) {
		return noSeat
	}
	c.keyless.end()
	return seatTaken
}

// gone gives back what the connection had. It may be called twice.
func (c *quicConn) gone() {
	c.shaken()
	c.vacate()
	c.keyless.end()
	c.window.free()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		c.idle.Stop()
		c.retire.Stop()
	}
}

// expected is the body of a request whose client waits until it is wanted.
type expected struct {
	io.ReadCloser
	goOn func()
}

// Read implements io.Reader.
func (e *expected) Read(b []byte) (int, error) {
	e.goOn()
	return e.ReadCloser.Read(b)
}
