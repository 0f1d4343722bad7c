package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"forerun.dev/forerun/internal/forerun"
)

// TestHandlersOverTLS has what handlers do on a connection go over both protocols: a body, a refusal before the body is sent, trailers, and an
// answer that is cut.
func TestHandlersOverTLS(t *testing.T) {
	var read atomic.Int64 // bytes of a refused body
	s := onLoopback(t, 10, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			body, err := Body(w, r, 1<<20)
			if err != nil {
				Fail(w, r, err)
				return
			}
			fmt.Fprintf(w, "%s %d", r.Proto, len(body))
		case "/refuse":
			Fail(w, r, forerun.Errorf(forerun.Forbidden, "", "no"))
		case "/trailer":
			w.Header().Set("Trailer", "Sum")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("Sum", "4")
		case "/cut":
			_, _ = w.Write(make([]byte, 1<<20))
			panic(http.ErrAbortHandler)
		case "/panic":
			panic("a defect")
		}
	})
	for protocol, proto := range map[string]string{"http/1.1": "HTTP/1.1", "h2": "HTTP/2.0", "h3": "HTTP/3.0"} {
		t.Run(protocol, func(t *testing.T) {
			c := s.client(protocol)
			if status, text, err := s.ask(c, "POST", "/echo", "", strings.NewReader("body")); err != nil || status != 200 || text != proto+" 4" {
				t.Errorf("a body: %d %q %v", status, text, err)
			}
			if status, text, err := s.ask(c, "POST", "/echo", "", io.MultiReader(strings.NewReader("bo"), strings.NewReader("dy")), "Expect", "100-continue"); err != nil || text != proto+" 4" {
				t.Errorf("a body that waits until it is wanted: %d %q %v", status, text, err)
			}
			if status, _, err := s.ask(c, "POST", "/echo", "", bytes.NewReader(make([]byte, 1<<20+1))); err != nil || status != 413 {
				t.Errorf("a body that is too large: %d %v", status, err)
			}
			counted := &counting{&read, bytes.NewReader(make([]byte, 1<<20))}
			if protocol == "h3" { // the client does not wait: see TestExpectOverQUIC
			} else if status, _, err := s.ask(c, "POST", "/refuse", "", counted, "Expect", "100-continue"); err != nil || status != 403 || read.Load() > 0 {
				t.Errorf("a refusal: %d %v, after %d bytes of the body", status, err, read.Load())
			}
			if status, _, err := s.ask(c, "POST", "/refuse", "", bytes.NewReader(make([]byte, 1<<20))); err != nil || status != 403 {
				t.Errorf("a refusal while the body comes: %d %v", status, err)
			}
			if _, text, err := s.ask(c, "GET", "/cut", "", nil); err == nil {
				t.Errorf("an answer that is cut has %d bytes and no error", len(text))
			}
			if status, _, err := s.ask(c, "GET", "/panic", "", nil); err != nil || status != 500 {
				t.Errorf("a panic: %d %v", status, err)
			}
			r, err := http.NewRequestWithContext(t.Context(), "GET", "https://localhost/trailer", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := c.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "body" || answer.Trailer.Get("Sum") != "4" {
				t.Errorf("a trailer: %q %v %v", text, answer.Trailer, err)
			}
		})
	}
}

// counting counts what is read of a body.
type counting struct {
	read *atomic.Int64
	io.Reader
}

// Read implements io.Reader.
func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// TestClientsThatGoAway: a client that gives a request up ends that alone. Over HTTP/2 its connection goes on with the others.
func TestClientsThatGoAway(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	s := onLoopback(t, 10, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			began <- struct{}{}
			<-r.Context().Done()
			ended <- struct{}{}
			Fail(w, r, r.Context().Err()) // http.ErrAbortHandler
		}
		_, _ = io.WriteString(w, r.RemoteAddr)
	})
	for _, protocol := range protocols() {
		c := s.client(protocol)
		_, before, _ := s.ask(c, "GET", "/", "", nil) // without an answer the addresses differ
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", "https://localhost/wait", nil)
		if err != nil {
			t.Fatal(err)
		}
		given := make(chan error)
		go func() {
			answer, err := c.RoundTrip(r)
			if err == nil {
				err = answer.Body.Close()
			}
			given <- err
		}()
		<-began
		cancel()
		<-ended
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", protocol, err)
		}
		if _, after, err := s.ask(c, "GET", "/", "", nil); err != nil || (after == before) != (protocol != "http/1.1") {
			t.Errorf("%s: then the connection of %s is answered at %s, %v", protocol, before, after, err)
		}
	}
}

// TestHalfClosedSenders: a client that sends no more is taken for one that has gone, as without TLS.
func TestHalfClosedSenders(t *testing.T) {
	ended := make(chan struct{})
	s := onLoopback(t, 10, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		ended <- struct{}{}
		Fail(w, r, r.Context().Err())
	})
	for _, protocol := range []string{"http/1.1", "h2"} {
		c := s.rawConn(protocol)
		if protocol == "h2" {
			f := s.framer(c)
			s.request(f, 1, "/", true)
		} else if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.CloseWrite(), c.NetConn().(*net.TCPConn).CloseWrite()); err != nil {
			t.Fatal(err)
		}
		<-ended
		if rest, _ := io.ReadAll(c); bytes.Contains(rest, []byte("200")) {
			t.Errorf("%s: it was answered %q", protocol, rest)
		}
	}
}

// TestDrainOverTLS: when the gate is shut, requests under way are answered, and others refused on a connection that ends.
func TestDrainOverTLS(t *testing.T) {
	for _, protocol := range protocols() {
		began, goOn := make(chan struct{}), make(chan struct{})
		s := onLoopback(t, 10, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				close(began)
				<-goOn
			}
			_, _ = io.WriteString(w, "done")
		})
		c, others := s.client(protocol), s.client(protocol)
		if status := s.mustAsk(others, "/", ""); status != 200 {
			t.Fatal(status)
		}
		answered := make(chan string)
		go func() {
			_, text, err := s.ask(c, "GET", "/wait", "", nil)
			answered <- fmt.Sprint(text, err)
		}()
		<-began
		shut := make(chan struct{})
		go func() {
			defer close(shut)
			s.gate.Shut(context.Background())
		}()
		for s.gate.Open() == nil {
			time.Sleep(time.Millisecond)
		}
		if status := s.mustAsk(others, "/", ""); status != 503 {
			t.Errorf("%s: another request is answered %d", protocol, status)
		}
		close(goOn)
		<-shut
		if got := <-answered; got != "done<nil>" {
			t.Errorf("%s: the request under way: %s", protocol, got)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// TestSharedConnectionsHaveOneTenant: the requests of an HTTP/2 connection are one tenant's, and another tenant's client opens another. A web
// action may be asked for on any.
func TestSharedConnectionsHaveOneTenant(t *testing.T) {
	var mu sync.Mutex
	conns := make(map[string]bool)
	s := onLoopback(t, 3, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		conns[r.RemoteAddr] = true
		mu.Unlock()
		var err error
		switch r.URL.Path {
		case "/operator":
			err = SeatOperator(w, r)
		case "/web":
			err = SeatVisit(w, r, r.Header.Get("As"))
		case "/stranger":
		default:
			err = Seat(w, r, r.Header.Get("As"))
		}
		if err != nil {
			Fail(w, r, err)
		}
	})
	c := s.client("h2")
	for i, step := range []struct {
		path, as string
		want     int
		conns    int
	}{
		{"/stranger", "", 200, 1},
		{"/web", "ada", 200, 1},
		{"/web", "bob", 200, 1},
		{"/", "ada", 200, 1},
		{"/", "ada", 200, 1},
		{"/web", "bob", 200, 1},
		{"/", "bob", 421, 1},
		{"/", "bob", 200, 2}, // another connection
		{"/operator", "", 421, 2},
		{"/operator", "", 200, 3},
		{"/", "ada", 421, 3},
	} {
		got := s.mustAsk(c, step.path, step.as)
		mu.Lock()
		on := len(conns)
		mu.Unlock()
		if got != step.want || on != step.conns {
			t.Errorf("step %d: %d on %d connections", i, got, on)
		}
	}
	c = s.client("http/1.1") // one after another, as proxies have it
	for _, as := range []string{"ada", "bob", "ada"} {
		if got := s.mustAsk(c, "/", as); got != 200 {
			t.Errorf("HTTP/1.1 as %s: %d", as, got)
		}
	}
}

// TestSeatsOverTLS: a tenant that has all its connections is refused another, over both protocols.
func TestSeatsOverTLS(t *testing.T) {
	for _, protocol := range protocols() {
		s := onLoopback(t, 1, seatAll)
		first := s.client(protocol)
		if got := s.mustAsk(first, "/", "ada"); got != 200 {
			t.Errorf("%s: %d", protocol, got)
		}
		if got := s.mustAsk(s.client(protocol), "/", "ada"); got != 429 {
			t.Errorf("%s: the second connection is answered %d", protocol, got)
		}
		if got := s.mustAsk(first, "/", "ada"); got != 200 {
			t.Errorf("%s: then the first one: %d", protocol, got)
		}
	}
}

// rawConn is a connection after its handshake.
func (s *secured) rawConn(protocol string) *tls.Conn {
	s.Helper()
	conn, err := s.dial(context.Background(), "", "")
	if err != nil {
		s.Fatal(err)
	}
	c := tls.Client(conn, &tls.Config{RootCAs: s.trust, ServerName: "localhost", NextProtos: []string{protocol}})
	if err := c.Handshake(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// framer begins HTTP/2 on a connection.
func (s *secured) framer(c net.Conn) *http2.Framer {
	s.Helper()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		s.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		s.Fatal(err)
	}
	return f
}

// head is a request's, in HPACK.
func head(path string, more ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	all := append([]string{":method", "GET", ":scheme", "https", ":authority", "localhost", ":path", path}, more...)
	for i := 0; i < len(all); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]}) // into memory
	}
	return b.Bytes()
}

// request sends one. It reports whether the connection took it.
func (s *secured) request(f *http2.Framer, stream uint32, path string, complete bool) bool {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head(path), EndStream: true, EndHeaders: complete}) == nil
}

// TestFloods: a client that begins and resets requests without end, or sends a head without end, has no more handlers than streams,
// and loses its connection.
func TestFloods(t *testing.T) {
	var mu sync.Mutex                    // guards the rest
	running, most := map[string]int{}, 0 // by connections
	s := onLoopback(t, 10, func(_ http.ResponseWriter, r *http.Request) {
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running[r.RemoteAddr] += n
			most = max(most, running[r.RemoteAddr])
		}
		count(1)
		defer count(-1)
		if r.URL.Path == "/wait" {
			<-r.Context().Done()
		}
	})
	for _, flood := range map[string]func(f *http2.Framer) (mustEnd bool){
		"resets": func(f *http2.Framer) bool {
			for i := range uint32(5000) {
				if !s.request(f, 2*i+1, "/wait", true) || f.WriteRSTStream(2*i+1, http2.ErrCodeCancel) != nil {
					break // the server has ended it, as soon as handlers wait for others
				}
			}
			return false
		},
		"open streams": func(f *http2.Framer) bool {
			for i := range uint32(10 * maxStreams) {
				if !s.request(f, 2*i+1, "/wait", true) {
					break
				}
			}
			return false // they are refused one by one
		},
		"CONTINUATION": func(f *http2.Framer) bool {
			more := head("/", "x", strings.Repeat("x", 10<<10))
			for ok := s.request(f, 1, "/wait", false); ok; ok = f.WriteContinuation(1, false, more) == nil {
			}
			return true
		},
	} {
		c := s.rawConn("h2")
		f := s.framer(c)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, c)
		}()
		if flood(f) {
			<-ended
		}
		_ = c.Close()
	}
	mu.Lock()
	if most == 0 || most > maxStreams {
		t.Errorf("%d handlers of a connection ran at a time", most)
	}
	mu.Unlock()
	if status := s.mustAsk(s.client("h2"), "/", ""); status != 200 {
		t.Errorf("then another client is answered %d", status)
	}
}

// TestBoundsOfStreams looks at the streams that the server allows, and at a head that is too large.
func TestBoundsOfStreams(t *testing.T) {
	s := onLoopback(t, 10, func(http.ResponseWriter, *http.Request) {})
	c := s.rawConn("h2")
	f := s.framer(c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	large := head("/", "x", strings.Repeat("x", maxHead+8192))
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: large[:16<<10], EndStream: true}); err != nil {
		t.Fatal(err)
	}
	for part := large[16<<10:]; len(part) > 0; {
		n := min(len(part), 16<<10)
		if err := f.WriteContinuation(1, n == len(part), part[:n]); err != nil {
			t.Fatal(err)
		}
		part = part[n:]
	}
	streams, status := uint32(0), ""
	for status == "" {
		frame, err := f.ReadFrame()
		if err != nil {
			break // the connection ended
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if n, ok := frame.Value(http2.SettingMaxConcurrentStreams); ok {
				streams = n
			}
		case *http2.MetaHeadersFrame:
			status = frame.PseudoValue("status")
		}
	}
	if streams != maxStreams || status == "200" {
		t.Errorf("%d streams are allowed, and a large head is answered %q", streams, status)
	}
}

// TestHandshakesThatDoNotCome sends nothing, and a part of one.
func TestHandshakesThatDoNotCome(t *testing.T) {
	onPipes(t, seatAll, func(t *testing.T, s *secured) {
		for _, sent := range []string{"", "\x16\x03\x01\x02\x00\x01\x00\x01"} {
			c, err := s.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.WriteString(c, sent); err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(c) // until the connection ends
			if took := time.Since(began); took > headTime+time.Second {
				t.Errorf("%q: the connection ends after %v", sent, took)
			}
			_ = c.Close()
		}
	})
}

// TestOneStreamIsNotRead: an answer that its client does not read ends alone, and the connection goes on with others.
func TestOneStreamIsNotRead(t *testing.T) {
	for _, protocol := range []string{"h2", "h3"} {
		t.Run(protocol, func(t *testing.T) { leaveOneUnread(t, protocol) })
	}
}

func leaveOneUnread(t *testing.T, protocol string) {
	cut := make(chan error, 2)
	onPipes(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, err := w.Write(make([]byte, 64<<20))
			cut <- err
		case "/long":
			for range 10 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush() // the client reads it
				time.Sleep(partTime + time.Second)
			}
		}
	}, func(t *testing.T, s *secured) {
		c := s.client(protocol)
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://localhost/large", nil)
		if err != nil {
			t.Fatal(err)
		}
		large, err := c.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, text, err := s.ask(c, "GET", "/long", "", nil)
		if err != nil || len(text) != 10 {
			t.Errorf("an answer with pauses has %d bytes, %v", len(text), err)
		}
		if len(cut) != 1 || <-cut == nil {
			t.Error("the answer that is not read was not ended")
		}
		if _, err := io.Copy(io.Discard, large.Body); err == nil {
			t.Error("its client does not hear that it was cut")
		}
		_ = large.Body.Close()
		if got := s.mustAsk(c, "/", ""); got != 200 {
			t.Errorf("then the connection is answered %d", got)
		}
		c.CloseIdleConnections()
	})
}
