package gateway

import (
	"net/http"
	"regexp"
	"strings"
)

// A client of QUIC that comes back sends early data with its first packet. There are two attacks. An attacker who has recorded that packet can send
// it again. An attacker who holds it up can make the client send its request a second time, over another connection. A ticket that is used once (see
// tickets) stops the first attack alone. So before the handshake is over only requests run that may run twice, or that are carried out once in any
// case. Other requests wait for its end.

// entities matches the paths of the management API, all below a namespace.
var entities = regexp.MustCompile(`^/api/v1/namespaces(/|$)`)

// mayBeEarly reports whether a request may run before the client has proven that it sends it now. Two sorts may: a read of the management API, and an
// invocation with an idempotency key, which is carried out once.
func mayBeEarly(r *http.Request) bool {
	path := r.URL.EscapedPath()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return entities.MatchString(path)
	case http.MethodPost:
		keys := r.Header["Idempotency-Key"]
		return len(keys) == 1 && strings.TrimSpace(keys[0]) != "" && invocation.MatchString(path)
	}
	return false
}

// isEarly reports whether a request came as early data, and its handshake is not over.
func isEarly(r *http.Request) bool { return r.TLS != nil && !r.TLS.HandshakeComplete }

// admitEarly has a request wait for the end of the handshake if it came early and may not run early. It ends the request if the handshake fails.
func (c *quicConn) admitEarly(r *http.Request) {
	switch {
	case !isEarly(r):
	case mayBeEarly(r):
		c.traffic.EarlyAccepted.Add(1)
	default:
		c.traffic.EarlyHeld.Add(1)
		select {
		case <-c.conn.HandshakeComplete():
			state := c.conn.ConnectionState().TLS
			r.TLS = &state
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// tooEarly answers a request that a proxy had as early data and passed on, if it may not be early. The proxy sends it again later. It reports
// whether it answered.
func (d *door) tooEarly(w http.ResponseWriter, r *http.Request) bool {
	if r.Header["Early-Data"] == nil || mayBeEarly(r) {
		return false
	}
	d.Traffic.EarlyRefused.Add(1)
	Refuse(w, r, http.StatusTooEarly, "This request may not be sent as early data. Send it again when the handshake is over.")
	return true
}
