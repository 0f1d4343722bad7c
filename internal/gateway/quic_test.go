package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

// frame is one of HTTP/3.
func frame(kind uint64, content []byte) []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(content))), content...)
}

// The kinds of frames.
const (
	dataFrame    = 0
	headersFrame = 1
)

// h3Head is the frame of a request's head.
func h3Head(method, path string, more ...string) []byte {
	var b bytes.Buffer
	e := qpack.NewEncoder(&b)
	all := append([]string{":method", method, ":scheme", "https", ":authority", "localhost", ":path", path}, more...)
	for i := 0; i < len(all); i += 2 {
		_ = e.WriteField(qpack.HeaderField{Name: all[i], Value: all[i+1]}) // into memory
	}
	return frame(headersFrame, b.Bytes())
}

// h3Status is the status in the first frame of an answer. That frame is to be a head.
func h3Status(t testing.TB, from io.Reader) string {
	t.Helper()
	r := quicvarint.NewReader(from)
	kind, err := quicvarint.Read(r)
	if err != nil || kind != headersFrame {
		return err.Error()
	}
	length, err := quicvarint.Read(r)
	if err != nil {
		return err.Error()
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(r, content); err != nil {
		return err.Error()
	}
	field, err := qpack.NewDecoder().Decode(content)()
	if err != nil {
		return err.Error()
	}
	return field.Value
}

// open opens a stream of a request and sends something on it.
func (s *secured) open(conn *quic.Conn, sent []byte) *quic.Stream {
	s.Helper()
	stream, err := conn.OpenStreamSync(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	if _, err := stream.Write(sent); err != nil {
		s.Fatal(err)
	}
	return stream
}

// TestTenantsOverQUIC: a connection of HTTP/3 is one tenant's. If it shows the key of another tenant, GOAWAY tells the client to open another
// connection. Requests that are under way go on.
func TestTenantsOverQUIC(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := onLoopback(t, 3, func(w http.ResponseWriter, r *http.Request) {
		seatAll(w, r)
		if r.URL.Path == "/wait" {
			close(began)
			<-goOn
		}
		_, _ = io.WriteString(w, r.RemoteAddr)
	})
	c := s.client("h3")
	_, first, err := s.ask(c, "GET", "/", "ada", nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan string)
	go func() {
		_, on, err := s.ask(c, "GET", "/wait", "ada", nil)
		if err != nil {
			on = err.Error()
		}
		waited <- on
	}()
	<-began
	if got := s.mustAsk(c, "/", "bob"); got != http.StatusMisdirectedRequest {
		t.Errorf("another tenant's request is answered %d", got)
	}
	eventually(t, "another connection", func() bool { // the client hears GOAWAY
		status, on, err := s.ask(c, "GET", "/", "bob", nil)
		return err == nil && status == 200 && on != first
	})
	close(goOn)
	if on := <-waited; on != first {
		t.Errorf("the request under way is answered %s, not %s", on, first)
	}
}

// eventually waits until something is so, as long as the test may take.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 3*time.Minute {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestExpectOverQUIC: a client that waits until its body is wanted is told so when the handler reads it, and else hears the answer.
func TestExpectOverQUIC(t *testing.T) {
	s := onLoopback(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			_, _ = Body(w, r, smallBody)
		}
	})
	conn := s.connectQUIC()
	stream := s.open(conn, h3Head("POST", "/read", "expect", "100-continue"))
	if got := h3Status(t, stream); got != "100" {
		t.Errorf("a body that is wanted: %s", got)
	}
	if _, err := stream.Write(frame(dataFrame, []byte("body"))); err != nil {
		t.Error(err)
	}
	_ = stream.Close()
	if got := h3Status(t, stream); got != "200" {
		t.Errorf("then the answer is %s", got)
	}
	if got := h3Status(t, s.open(conn, h3Head("POST", "/", "expect", "100-continue"))); got != "200" {
		t.Errorf("a body that is not wanted: %s", got)
	}
}

// TestSendersThatStopOverQUIC: a body that breaks off is refused, and its request does not end the connection.
func TestSendersThatStopOverQUIC(t *testing.T) {
	began := make(chan struct{}, 3)
	s := onLoopback(t, 1, func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		if _, err := Body(w, r, smallBody); err != nil {
			Fail(w, r, err)
		}
	})
	conn := s.connectQUIC()
	part := append(h3Head("POST", "/", "content-length", "4"), frame(dataFrame, []byte("bo"))...)
	stream := s.open(conn, part)
	_ = stream.Close()
	if got := h3Status(t, stream); got != "400" {
		t.Errorf("a body that ends: %s", got)
	}
	<-began
	stream = s.open(conn, part)
	<-began
	stream.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	if got := h3Status(t, stream); got != "400" {
		t.Errorf("a body that is given up: %s", got)
	}
	stream = s.open(conn, h3Head("GET", "/"))
	_ = stream.Close()
	if got := h3Status(t, stream); got != "200" {
		t.Errorf("then another request: %s", got)
	}
}

// TestBoundsOverQUIC looks at heads that are too large, in the clear or unpacked, and at more streams than there may be.
func TestBoundsOverQUIC(t *testing.T) {
	var running, most atomic.Int64
	s := onLoopback(t, 1, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			for n, m := running.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-r.Context().Done()
			running.Add(-1)
		}
	})
	conn := s.connectQUIC()
	large := s.open(conn, quicvarint.Append(quicvarint.Append(nil, headersFrame), maxQUICHead+1)) // the rest is not waited for
	if got := h3Status(t, large); got != "431" {
		t.Errorf("a large head is answered %s", got)
	}
	bomb := append([]byte{0, 0}, bytes.Repeat([]byte{0xc0 | 52}, maxQUICHead/8)...) // a field of QPACK's own table in a byte
	if got := h3Status(t, s.open(conn, frame(headersFrame, bomb))); got != "431" {
		t.Errorf("a head that becomes large is answered %s", got)
	}
	for range maxStreams {
		_ = s.open(conn, h3Head("GET", "/wait")).Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := conn.OpenStreamSync(ctx); err == nil {
		t.Error("one more stream is allowed")
	}
	eventually(t, "all requests run", func() bool { return running.Load() == maxStreams })
	if got := s.mustAsk(s.client("h3"), "/", ""); got != 200 {
		t.Errorf("then another client is answered %d", got)
	}
	_ = conn.CloseWithError(0, "")
	eventually(t, "the requests of a closed connection end", func() bool { return running.Load() == 0 })
	if most.Load() > maxStreams {
		t.Errorf("%d ran at a time", most.Load())
	}
}

// TestQUICClientsThatSendNothing: a connection without a request ends soon, one with parts of heads, too, and one that is idle later.
func TestQUICClientsThatSendNothing(t *testing.T) {
	onPipes(t, seatAll, func(t *testing.T, s *secured) {
		for name, test := range map[string]struct {
			sent []byte
			ends bool // the stream
			most time.Duration
		}{
			"nothing":        {nil, false, headTime},
			"part of a head": {h3Head("GET", "/")[:5], false, headTime},
			"requests":       {h3Head("GET", "/"), true, idleTime},
		} {
			conn, began := s.connectQUIC(), time.Now()
			if test.sent != nil {
				stream := s.open(conn, test.sent)
				if test.ends {
					_ = stream.Close()
					_, _ = io.Copy(io.Discard, stream) // the answer
					s.open(conn, test.sent[:5])
				}
			}
			<-conn.Context().Done()
			if took := time.Since(began); took < test.most-time.Second || took > test.most+time.Second {
				t.Errorf("%s: the connection ends after %v", name, took)
			}
		}
	})
}

// TestQUICClientsThatAllowNoStream: the connection of a client that lets the server open no control stream ends.
func TestQUICClientsThatAllowNoStream(t *testing.T) {
	onPipes(t, seatAll, func(t *testing.T, s *secured) {
		conn, err := s.dialQUIC(t.Context(), &tls.Config{RootCAs: s.trust, ServerName: "localhost", NextProtos: []string{"h3"}}, &quic.Config{MaxIncomingUniStreams: -1})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-conn.Context().Done():
		case <-time.After(2 * idleTime):
			t.Error("the connection stays")
			_ = conn.CloseWithError(0, "")
		}
	})
}

// TestQUICClientsThatVanish: without packets of its client a connection ends, and its request with it. A client that waits for its answer stays.
func TestQUICClientsThatVanish(t *testing.T) {
	var given atomic.Bool
	onPipes(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(10 * time.Minute):
			_, _ = io.WriteString(w, "late")
		case <-r.Context().Done():
			given.Store(true)
		}
	}, func(t *testing.T, s *secured) {
		if _, text, err := s.ask(s.client("h3"), "GET", "/", "", nil); err != nil || text != "late" {
			t.Errorf("a late answer: %q %v", text, err)
		}
		var socket net.PacketConn
		client := s.network.client
		s.network.client = func() (_ net.PacketConn, err error) {
			socket, err = client()
			return socket, err
		}
		_ = s.open(s.connectQUIC(), h3Head("GET", "/")).Close()
		time.Sleep(time.Second)
		_ = socket.Close()
		if time.Sleep(2 * deadTime); !given.Load() {
			t.Error("the request of a client that has vanished goes on")
		}
	})
}

// TestStrangeHellos: handshakes with another protocol, without or with another name, and of several datagrams.
func TestStrangeHellos(t *testing.T) {
	s := onLoopback(t, 1, seatAll)
	long := make([]string, 200)
	for i := range long {
		long[i] = strings.Repeat("x", 15) + string(rune('A'+i%26)) + string(rune('a'+i/26))
	}
	for name, test := range map[string]struct {
		name  string
		alpn  []string
		works bool
	}{
		"another protocol":  {"localhost", []string{"h2"}, false},
		"no protocol":       {"localhost", nil, false},
		"no name":           {"", []string{"h3"}, true},
		"another name":      {"example.org", []string{"h3"}, true}, // the client minds
		"several datagrams": {"localhost", append([]string{"h3"}, long...), true},
	} {
		conn, err := s.dialQUIC(t.Context(), &tls.Config{ServerName: test.name, NextProtos: test.alpn, InsecureSkipVerify: true}, &quic.Config{})
		if (err == nil) != test.works {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			stream := s.open(conn, h3Head("GET", "/operator"))
			_ = stream.Close()
			if got := h3Status(t, stream); got != "200" {
				t.Errorf("%s: a request is answered %s", name, got)
			}
			_ = conn.CloseWithError(0, "")
		}
	}
}

// TestPriorities: a streamed answer beside a large download comes whole, whether or not a client has said what is urgent.
func TestPriorities(t *testing.T) {
	const large = 8 << 20
	s := onLoopback(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, large))
			return
		}
		for range 20 {
			_, _ = io.WriteString(w, "line\n")
			_ = http.NewResponseController(w).Flush() // the client reads it
			time.Sleep(time.Millisecond)
		}
	})
	for _, priority := range []string{"", "u=3"} {
		c := s.client("h3")
		if _, _, err := s.ask(c, "GET", "/stream", "", nil, "Priority", priority); err != nil {
			t.Error(err)
		}
		var both sync.WaitGroup
		for path, want := range map[string]int{"/large": large, "/stream": 100} {
			both.Go(func() {
				if _, text, err := s.ask(c, "GET", path, "", nil); err != nil || len(text) != want {
					t.Errorf("after priority %q %s has %d bytes, %v", priority, path, len(text), err)
				}
			})
		}
		both.Wait()
	}
}
