package openwhisk

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"
)

// far is a round trip from which on an idempotency key costs less than it saves.
const far = 5 * time.Millisecond

// Transport is an http.RoundTripper. A request to an https address goes over HTTP/3, as early data of a connection that comes back. If no
// connection can be made, or the server says nothing for 300 ms, TCP carries the request. If that works, it carries all requests of the next ten
// minutes. Plain HTTP goes over TCP.
//
// A server runs an invocation as early data only if it has an Idempotency-Key. So an invocation without one gets its own where a round trip takes
// 5 ms or more. No request is sent twice but reads and those with a key. Bodies are read whole before they are sent.
type Transport struct {
	// Silence is how long a server may say nothing over UDP, until TCP is used. 0 stands for 300 ms.
	Silence time.Duration

	tcp    *http.Transport
	config *tls.Config
	ca     string

	dialing sync.Mutex // held while a connection is made, before mu

	mu    sync.Mutex // guards the rest
	conns map[user]*conn
}

// user is who calls a server: a connection is one user's.
type user struct{ address, authorization string }

// NewTransport returns a transport that trusts certificate authorities, in PEM, beside the system's.
func NewTransport(ca string) (*Transport, error) {
	config := &tls.Config{}
	if ca != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New("the certificate authority is not in PEM")
		}
		config.RootCAs = roots
	}
	tcp := http.DefaultTransport.(*http.Transport).Clone()
	tcp.TLSClientConfig = config.Clone()
	tcp.ForceAttemptHTTP2 = true
	return &Transport{tcp: tcp, config: config, ca: ca, conns: make(map[user]*conn)}, nil
}

func (t *Transport) silence() time.Duration { return cmp.Or(t.Silence, 300*time.Millisecond) }

// Close ends the connections. It waits for their tickets, 1 s at most.
func (t *Transport) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ending sync.WaitGroup
	for _, c := range t.conns {
		ending.Go(c.close)
	}
	ending.Wait()
	clear(t.conns)
	t.tcp.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return t.tcp.RoundTrip(r)
	}
	body, err := read(r)
	if err != nil {
		return nil, err
	}
	address := r.URL.Host
	if r.URL.Port() == "" {
		address = net.JoinHostPort(r.URL.Hostname(), "443")
	}
	kept := ticketsOf(address, t.ca)
	if kept.blocked() {
		return t.tcp.RoundTrip(withBody(r, body))
	}
	who := user{address, r.Header.Get("Authorization")}
	c, r, err := t.connect(r, who, kept)
	if err != nil {
		return t.fallBack(r, body, kept, err)
	}
	answer, err := c.roundTrip(r, body)
	if err == nil {
		return answer, nil
	}
	t.drop(c)
	return t.fallBack(r, body, kept, err)
}

// fallBack sends a request over TCP if HTTP/3 did not reach the server, or the request may be sent twice.
func (t *Transport) fallBack(r *http.Request, body []byte, kept tickets, why error) (*http.Response, error) {
	_, unreached := errors.AsType[*unreached](why)
	if r.Context().Err() != nil || !unreached && !errors.Is(why, errRefused) && !isRepeatable(r) {
		return nil, why
	}
	answer, err := t.tcp.RoundTrip(withBody(r, body))
	if err == nil && unreached {
		kept.block()
	}
	return answer, err
}

// take returns the connection of a user, if there is one that has not ended.
func (t *Transport) take(who user) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.conns[who]
	if c != nil && c.quic.Context().Err() != nil {
		delete(t.conns, who)
		return nil
	}
	return c
}

// connect returns the connection of a user, or opens one. It returns the request with the key that the connection calls for.
func (t *Transport) connect(r *http.Request, who user, kept tickets) (*conn, *http.Request, error) {
	if c := t.take(who); c != nil {
		return c, r, nil
	}
	t.dialing.Lock()
	defer t.dialing.Unlock()
	if c := t.take(who); c != nil {
		return c, r, nil
	}
	session, rtt := kept.take()
	if session != nil && rtt >= far {
		r = keyed(r)
	}
	c, err := t.dial(r.Context(), who, session, kept)
	if err != nil {
		return nil, r, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[who] = c
	return c, r, nil
}

// drop forgets a connection.
func (t *Transport) drop(c *conn) {
	t.mu.Lock()
	if t.conns[c.user] == c {
		delete(t.conns, c.user)
	}
	t.mu.Unlock()
	c.end()
}

// read reads the body of a request, so that it can be sent again.
func read(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// withBody returns a copy of a request with a body.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.ContentLength = int64(len(body))
	if r.Body = http.NoBody; len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r
}

// isRepeatable reports whether a server carries out a request once in effect, even if it comes twice.
func isRepeatable(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Idempotency-Key") != ""
}

var invocation = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/actions/`)

// keyed gives an invocation a key of its own, with which it may be early data.
func keyed(r *http.Request) *http.Request {
	if r.Method != http.MethodPost || isRepeatable(r) || !invocation.MatchString(r.URL.EscapedPath()) {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Idempotency-Key", rand.Text())
	return r
}
