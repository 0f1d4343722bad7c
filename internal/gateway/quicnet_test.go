package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"forerun.dev/forerun/internal/seats"
)

// mute is a socket of a client to which nothing comes, as one with another's address.
type mute struct {
	net.PacketConn
	sent, got *atomic.Int64 // bytes
	retries   *atomic.Int64 // packets that demand a proof of the address
}

// WriteTo implements net.PacketConn.
func (m *mute) WriteTo(b []byte, to net.Addr) (int, error) {
	m.sent.Add(int64(len(b)))
	return m.PacketConn.WriteTo(b, to)
}

// ReadFrom implements net.PacketConn.
func (m *mute) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := m.PacketConn.ReadFrom(b)
		if err != nil {
			return n, from, err
		}
		m.got.Add(int64(n))
		if b[0]&0xf0 == 0xf0 {
			m.retries.Add(1)
		}
	}
}

// TestSpoofedClients: to an address that is not proven three times as much goes as came from it. When many handshakes are under way, an address is
// to be proven before it takes memory, and a client that does is served.
func TestSpoofedClients(t *testing.T) {
	onPipesWith(t, seats.New(1, MaxStrangers), seatAll, func(t *testing.T, s *secured) {
		var retries atomic.Int64
		var all sync.WaitGroup
		for range retryFrom + 100 {
			socket, err := s.network.client()
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				m := &mute{PacketConn: socket, sent: new(atomic.Int64), got: new(atomic.Int64), retries: &retries}
				tr := &quic.Transport{Conn: m}
				ctx, cancel := context.WithTimeout(t.Context(), headTime)
				defer cancel()
				if _, err := tr.Dial(ctx, s.udp.LocalAddr(), &tls.Config{RootCAs: s.trust, ServerName: "localhost", NextProtos: []string{"h3"}}, &quic.Config{}); err == nil {
					t.Error("a client that hears nothing has a connection")
				}
				if got, sent := m.got.Load(), m.sent.Load(); got > 3*sent {
					t.Errorf("to an address that sent %d bytes %d were sent", sent, got)
				}
				_, _ = tr.Close(), socket.Close()
			})
		}
		time.Sleep(3 * time.Second)
		if most := s.quic.handshakes.Load(); most < retryFrom || most > maxHandshakes || retries.Load() == 0 {
			t.Errorf("%d handshakes are under way, and %d addresses are to be proven", most, retries.Load())
		}
		if got := s.mustAsk(s.client("h3"), "/", "ada"); got != 200 {
			t.Errorf("a client that proves its address is answered %d", got)
		}
		all.Wait()
		if time.Sleep(2 * headTime); s.quic.handshakes.Load() != 0 {
			t.Errorf("%d handshakes are under way after their time", s.quic.handshakes.Load())
		}
	})
}

// spoiling is a socket of a client on a bad network: of what is sent some is lost, doubled, cut, or comes late.
type spoiling struct {
	net.PacketConn
	mu   sync.Mutex // guards the rest
	sent int
	late []byte
}

// WriteTo implements net.PacketConn.
func (s *spoiling) WriteTo(b []byte, to net.Addr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	switch s.sent % 20 {
	case 3: // lost
		return len(b), nil
	case 7: // twice
		_, _ = s.PacketConn.WriteTo(b, to)
	case 11: // a part
		_, _ = s.PacketConn.WriteTo(b[:len(b)/2], to)
	case 13: // behind the next one
		s.late = bytes.Clone(b)
		return len(b), nil
	case 17:
		_, _ = s.PacketConn.WriteTo(bytes.Repeat([]byte{0xc3}, 1200), to)
		_, _ = s.PacketConn.WriteTo([]byte{0x40}, to)
	}
	n, err := s.PacketConn.WriteTo(b, to)
	if s.late != nil {
		_, _ = s.PacketConn.WriteTo(s.late, to)
		s.late = nil
	}
	return n, err
}

// TestBadNetworks: with datagrams that are lost, doubled, cut, strange or late each request is carried out once, and answered.
func TestBadNetworks(t *testing.T) {
	var ran atomic.Int64
	s := onLoopback(t, 1, func(w http.ResponseWriter, r *http.Request) {
		ran.Add(1)
		body, err := Body(w, r, 1<<20)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	})
	client := s.network.client
	s.network.client = func() (net.PacketConn, error) {
		socket, err := client()
		return &spoiling{PacketConn: socket}, err
	}
	c, body := s.client("h3"), strings.Repeat("body", 10_000)
	for range 20 {
		if status, text, err := s.ask(c, "POST", "/", "", strings.NewReader(body)); err != nil || status != 200 || text != body {
			t.Errorf("%d, %d bytes, %v", status, len(text), err)
		}
	}
	if ran.Load() != 20 {
		t.Errorf("20 requests ran %d times", ran.Load())
	}
}

// moving is a socket of a client whose address changes.
type moving struct {
	net.PacketConn
	next  net.PacketConn
	moved atomic.Bool
}

// WriteTo implements net.PacketConn.
func (m *moving) WriteTo(b []byte, to net.Addr) (int, error) {
	if m.moved.Load() {
		return m.next.WriteTo(b, to)
	}
	return m.PacketConn.WriteTo(b, to)
}

// ReadFrom implements net.PacketConn.
func (m *moving) ReadFrom(b []byte) (int, net.Addr, error) {
	for !m.moved.Load() {
		n, from, err := m.PacketConn.ReadFrom(b)
		if err == nil || !m.moved.Load() {
			return n, from, err
		}
	}
	return m.next.ReadFrom(b)
}

// TestAddressesThatChange: a client whose address changes while it waits gets its answer.
func TestAddressesThatChange(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := onLoopback(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			close(began)
			<-goOn
		}
		_, _ = w.Write(make([]byte, 100_000))
	})
	client := s.network.client
	var m *moving
	s.network.client = func() (net.PacketConn, error) {
		socket, err := client()
		if err != nil {
			return nil, err
		}
		next, err := client()
		t.Cleanup(func() { _ = next.Close() })
		m = &moving{PacketConn: socket, next: next}
		return m, err
	}
	c := s.h3(&quic.Config{KeepAlivePeriod: 100 * time.Millisecond}) // it tells its new address
	answered := make(chan int)
	go func() {
		_, text, err := s.ask(c, "GET", "/wait", "", nil)
		if err != nil {
			t.Error(err)
		}
		answered <- len(text)
	}()
	<-began
	m.moved.Store(true)
	_ = m.PacketConn.SetReadDeadline(time.Now()) // its reader goes on with the next one
	close(goOn)
	if got := <-answered; got != 100_000 {
		t.Errorf("the answer has %d bytes", got)
	}
	if got := s.mustAsk(c, "/", ""); got != 200 {
		t.Errorf("then the connection is answered %d", got)
	}
}
