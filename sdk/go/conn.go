package openwhisk

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// linger is how long the end of a connection waits for a ticket.
const linger = time.Second

// unreached reports that HTTP/3 did not reach the server, which has not carried out the request, or may do so twice.
type unreached struct{ error }

// errRefused reports that a server did not look at a request, because the connection ends.
var errRefused = errors.New("the server refused the request on a connection that ends")

// conn is a connection over HTTP/3.
type conn struct {
	user    user
	silence time.Duration // of a server, until it is not reached
	quic    *quic.Conn
	http    *http3.ClientConn
	tickets tickets

	dialed  chan struct{} // closed when quic is set, or there is no connection
	once    sync.Once
	arrived chan struct{} // closed when a ticket has come
}

// dial opens a connection. With a session of before it returns at once, and what is sent is early data.
func (t *Transport) dial(ctx context.Context, who user, session *tls.ClientSessionState, kept tickets) (*conn, error) {
	c := &conn{user: who, silence: t.silence(), tickets: kept, dialed: make(chan struct{}), arrived: make(chan struct{})}
	defer close(c.dialed)
	config := http3.ConfigureTLSConfig(t.config.Clone())
	config.ClientSessionCache = &oneSession{session: session, conn: c}
	limited, cancel := context.WithTimeout(ctx, c.silence)
	defer cancel()
	var err error
	c.quic, err = quic.DialAddrEarly(limited, who.address, config, &quic.Config{MaxIdleTimeout: time.Minute})
	if err != nil {
		return nil, &unreached{err}
	}
	c.http = new(http3.Transport).NewClientConn(c.quic)
	return c, nil
}

// oneSession is a tls.ClientSessionCache of one connection.
type oneSession struct {
	session *tls.ClientSessionState // nil: none
	conn    *conn
}

// Get implements tls.ClientSessionCache.
func (s *oneSession) Get(string) (*tls.ClientSessionState, bool) { return s.session, s.session != nil }

// Put implements tls.ClientSessionCache.
func (s *oneSession) Put(_ string, session *tls.ClientSessionState) {
	if session != nil {
		go s.conn.keep(session)
	}
}

// keep keeps the ticket that the server gave.
func (c *conn) keep(session *tls.ClientSessionState) {
	<-c.dialed
	if c.quic == nil {
		return
	}
	c.tickets.put(session, c.quic.ConnectionStats().MinRTT)
	c.once.Do(func() { close(c.arrived) })
}

// close ends the connection, with the ticket for the next one.
func (c *conn) close() {
	select {
	case <-c.arrived:
	case <-c.quic.Context().Done():
	case <-time.After(linger):
	}
	c.end()
}

// end ends the connection at once.
func (c *conn) end() {
	_ = c.quic.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // it cannot fail
}

// roundTrip sends a request and reads the head of its answer.
func (c *conn) roundTrip(r *http.Request, body []byte) (*http.Response, error) {
	alive := time.AfterFunc(c.silence, func() {
		if c.quic.ConnectionStats().PacketsReceived == 0 {
			c.end()
		}
	})
	defer alive.Stop()
	answer, err := c.exchange(r, body)
	if err == nil {
		return answer, nil
	}
	select {
	case <-c.quic.HandshakeComplete():
	default:
		return nil, &unreached{err}
	}
	if cause, ok := errors.AsType[*http3.Error](err); ok && cause.ErrorCode == http3.ErrCodeRequestRejected || errors.Is(err, quic.Err0RTTRejected) {
		return nil, errRefused
	}
	return nil, err
}

// exchange sends a request and reads the head of its answer. What the server lets run early is early data if the handshake is not over.
func (c *conn) exchange(r *http.Request, body []byte) (*http.Response, error) {
	select {
	case <-c.quic.HandshakeComplete():
		return c.http.RoundTrip(withBody(r, body))
	default:
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		early := withBody(r, body)
		early.Method = map[string]string{http.MethodGet: http3.MethodGet0RTT, http.MethodHead: http3.MethodHead0RTT}[r.Method]
		return c.http.RoundTrip(early)
	case http.MethodPost:
		if isRepeatable(r) {
			return c.invoke(r, body)
		}
	}
	return c.http.RoundTrip(withBody(r, body)) // it waits for the end of the handshake
}

// invoke sends an invocation on a stream of its own.
func (c *conn) invoke(r *http.Request, body []byte) (*http.Response, error) {
	stream, err := c.quic.OpenStreamSync(r.Context())
	if err != nil {
		return nil, err
	}
	cancel := func() {
		stream.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
		stream.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	}
	stop := context.AfterFunc(r.Context(), cancel)
	err = writeRequest(stream, r, body)
	var answer *http.Response
	read := &frames{in: bufio.NewReader(stream)}
	if err == nil {
		answer, err = read.head()
	}
	if err != nil {
		stop()
		cancel()
		if cause := context.Cause(r.Context()); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	answer.Request = r
	answer.Body = &answerBody{Reader: read, end: func() { stop(); cancel() }}
	return answer, nil
}

// answerBody is the body of an answer, which ends with its request's context.
type answerBody struct {
	io.Reader
	end func()
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	b.end()
	return nil
}
