package gateway

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

// Traffic counts what comes through the doors of a server. The zero value is ready to use.
type Traffic struct {
	TCP  atomic.Int64 // connections that are open
	QUIC atomic.Int64

	requests [4]atomic.Int64 // by the first number of the protocol

	TLS12         atomic.Int64 // handshakes of TLS 1.2 over TCP that were completed
	TLS13         atomic.Int64
	TLSUnfinished atomic.Int64 // connections over TCP that ended before their TLS handshake
	Handshakes    atomic.Int64 // of QUIC that were completed
	Unfinished    atomic.Int64 // handshakes of QUIC that were not
	Resumed       atomic.Int64 // of the completed ones, with a ticket
	Retries       atomic.Int64 // clients of QUIC that had to prove their address
	EarlyAccepted atomic.Int64 // requests that ran as early data
	EarlyHeld     atomic.Int64 // requests in early data that waited for the end of the handshake
	EarlyRefused  atomic.Int64 // requests in the early data of a proxy that were refused (425)
	Replayed      atomic.Int64 // tickets that were used before: their early data was not read
}

// Requests are the numbers of requests by protocol.
func (t *Traffic) Requests() map[string]int64 {
	return map[string]int64{"HTTP/1.1": t.requests[1].Load(), "HTTP/2": t.requests[2].Load(), "HTTP/3": t.requests[3].Load()}
}

// request counts a request.
func (t *Traffic) request(r *http.Request) {
	if r.ProtoMajor > 0 && r.ProtoMajor < len(t.requests) {
		t.requests[r.ProtoMajor].Add(1)
	}
}

// conn counts connections, as http.Server's ConnState.
func (t *Traffic) conn(c net.Conn, state http.ConnState) {
	if secure, ok := c.(*tls.Conn); ok && (state == http.StateActive || state == http.StateClosed) {
		t.handshake(secure, state == http.StateClosed)
	}
	switch state {
	case http.StateNew:
		t.TCP.Add(1)
	case http.StateClosed, http.StateHijacked:
		t.TCP.Add(-1)
	}
}

// handshake counts the handshake of a connection, once.
func (t *Traffic) handshake(c *tls.Conn, over bool) {
	inner, ok := c.NetConn().(*conn)
	state := c.ConnectionState()
	if !ok || !over && !state.HandshakeComplete || !inner.shaken.CompareAndSwap(false, true) {
		return
	}
	switch {
	case !state.HandshakeComplete:
		t.TLSUnfinished.Add(1)
	case state.Version == tls.VersionTLS12:
		t.TLS12.Add(1)
	default:
		t.TLS13.Add(1)
	}
}

// Count has the connections of a server counted.
func (t *Traffic) Count(s *Server) { s.ConnState = t.conn }
