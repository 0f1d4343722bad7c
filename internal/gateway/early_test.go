package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"forerun.dev/forerun/internal/seats"
)

// runs counts how often each request ran.
type runs struct {
	mu    sync.Mutex // guards the rest
	times map[string]int
}

// ServeHTTP implements http.Handler.
func (r *runs) ServeHTTP(_ http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = make(map[string]int)
	}
	r.times[q.Method+" "+q.URL.String()]++
}

// of is how often a request ran.
func (r *runs) of(request string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[request]
}

// returning is a client that was here before: it has a ticket.
func (s *secured) returning() *tls.Config {
	s.Helper()
	config := &tls.Config{RootCAs: s.trust, ServerName: "localhost", NextProtos: []string{"h3"}, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	conn, err := s.dialQUIC(context.Background(), config, &quic.Config{})
	if err != nil {
		s.Fatal(err)
	}
	<-conn.HandshakeComplete()
	stream := s.open(conn, h3Head("GET", "/api/v1"))
	_ = stream.Close()
	_ = h3Status(s, stream)
	time.Sleep(100 * time.Millisecond) // the ticket comes
	_ = conn.CloseWithError(0, "")
	return config
}

// recorder is a socket of a client that keeps the first datagrams, up to the first answer.
type recorder struct {
	net.PacketConn
	heard  atomic.Bool
	flight *[][]byte
}

// WriteTo implements net.PacketConn.
func (r *recorder) WriteTo(b []byte, to net.Addr) (int, error) {
	if !r.heard.Load() {
		*r.flight = append(*r.flight, bytes.Clone(b))
	}
	return r.PacketConn.WriteTo(b, to)
}

// ReadFrom implements net.PacketConn.
func (r *recorder) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := r.PacketConn.ReadFrom(b)
	r.heard.Store(true)
	return n, from, err
}

const (
	safeRead   = "GET /api/v1/namespaces/_/actions?n="
	safeCall   = "POST /api/v1/namespaces/_/actions/a?n="
	unsafeCall = "POST /api/v1/namespaces/_/actions/b?n="
)

// sendEarly sends one request of each sort as early data, and returns their streams.
func (s *secured) sendEarly(conn *quic.Conn, n string) (streams []*quic.Stream) {
	s.Helper()
	for _, head := range [][]byte{
		h3Head("GET", safeRead[4:]+n),
		h3Head("POST", safeCall[5:]+n, "idempotency-key", "k"),
		h3Head("POST", unsafeCall[5:]+n),
	} {
		stream := s.open(conn, head)
		_ = stream.Close()
		streams = append(streams, stream)
	}
	return streams
}

// record has a client that comes back send requests as early data, has them answered, and returns the datagrams that had them.
func (s *secured) record(n string) (flight [][]byte) {
	s.Helper()
	config := s.returning()
	client := s.network.client
	defer func() { s.network.client = client }()
	s.network.client = func() (net.PacketConn, error) {
		socket, err := client()
		return &recorder{PacketConn: socket, flight: &flight}, err
	}
	conn, err := s.dialQUIC(context.Background(), config, &quic.Config{})
	if err != nil {
		s.Fatal(err)
	}
	for i, stream := range s.sendEarly(conn, n) {
		if got := h3Status(s, stream); got != "200" {
			s.Errorf("request %d of %s is answered %s", i, n, got)
		}
	}
	if !conn.ConnectionState().Used0RTT {
		s.Errorf("the early data of %s were not read", n)
	}
	_ = conn.CloseWithError(0, "")
	return flight
}

// replay sends recorded datagrams from another address.
func (s *secured) replay(flight [][]byte) {
	s.Helper()
	socket, err := s.network.client()
	if err != nil {
		s.Fatal(err)
	}
	for _, datagram := range flight {
		if _, err := socket.WriteTo(datagram, s.udp.LocalAddr()); err != nil {
			s.Fatal(err)
		}
	}
	time.Sleep(10 * time.Millisecond)
	_ = socket.Close()
}

// TestReplayedFlights records the first flights of clients. It sends each again to the same server, and to a server that knows no ticket, as after a
// restart. Each request ran once. With FORERUN_SOAK_TIMES it records 1,000 flights.
func TestReplayedFlights(t *testing.T) {
	flights := 100
	if os.Getenv("FORERUN_SOAK_TIMES") != "" {
		flights = 1000
	}
	const copies = 3
	ran, elsewhere := new(runs), new(runs)
	onPipesWith(t, seats.New(10, MaxStrangers), ran.ServeHTTP, func(t *testing.T, s *secured) {
		udp, err := s.network.client()
		if err != nil {
			t.Fatal(err)
		}
		door := make(pipes)
		other := newSecured(t, elsewhere, seats.New(10, MaxStrangers), network{door, udp, s.dial, s.network.client})
		recorded := make([][][]byte, flights)
		for n := range recorded {
			recorded[n] = s.record(strconv.Itoa(n))
			s.replay(recorded[n]) // its connection is still known
		}
		for range copies {
			time.Sleep(time.Minute) // the connection of before is forgotten
			for _, flight := range recorded {
				s.replay(flight)
				other.replay(flight)
			}
		}
		time.Sleep(time.Minute) // handshakes that are not completed end
		for n := range flights {
			for _, request := range []string{safeRead, safeCall, unsafeCall} {
				if got := ran.of(request + strconv.Itoa(n)); got != 1 {
					t.Errorf("%s%d ran %d times", request, n, got)
				}
			}
		}
		c := s.common.Traffic
		if early, held, replayed := c.EarlyAccepted.Load(), c.EarlyHeld.Load(), c.Replayed.Load(); early != int64(2*flights) || held != int64(flights) || replayed != int64(copies*flights) {
			t.Errorf("of %d flights %d requests were early, %d were held, and %d tickets came again", flights, early, held, replayed)
		}
		if len(elsewhere.times) > 0 || other.common.Traffic.EarlyAccepted.Load() > 0 {
			t.Errorf("another server ran %v", elsewhere.times)
		}
		if other.common.Traffic.Unfinished.Load() == 0 {
			t.Error("the other server heard nothing")
		}
		close(door)
		_ = other.Close()
	})
}

// TestEarlyDataWithoutAnswers: all answers to a client are dropped. Only its requests that are safe to repeat run. So it can send all of them again
// over another connection.
func TestEarlyDataWithoutAnswers(t *testing.T) {
	ran := new(runs)
	onPipesWith(t, seats.New(10, MaxStrangers), ran.ServeHTTP, func(t *testing.T, s *secured) {
		config := s.returning()
		client := s.network.client
		s.network.client = func() (net.PacketConn, error) {
			socket, err := client()
			return &mute{PacketConn: socket, sent: new(atomic.Int64), got: new(atomic.Int64), retries: new(atomic.Int64)}, err
		}
		conn, err := s.dialQUIC(t.Context(), config, &quic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.sendEarly(conn, "")
		time.Sleep(time.Second)
		if ran.of(safeRead) != 1 || ran.of(safeCall) != 1 || ran.of(unsafeCall) != 0 {
			t.Errorf("%v", ran.times)
		}
		time.Sleep(time.Minute)
		if got := ran.of(unsafeCall); got != 0 {
			t.Errorf("what is not safe to repeat ran %d times", got)
		}
	})
}

// TestEarlyDataOff: with early data off all requests of a client that comes back run, none of them early.
func TestEarlyDataOff(t *testing.T) {
	ran := new(runs)
	onPipesWith(t, seats.New(10, MaxStrangers), ran.ServeHTTP, func(t *testing.T, s *secured) {
		udp, err := s.network.client()
		if err != nil {
			t.Fatal(err)
		}
		door := make(pipes)
		other := newSecuredWith(t, ran, seats.New(10, MaxStrangers), network{door, udp, s.dial, s.network.client}, &QUIC{Traffic: new(Traffic)})
		config := other.returning()
		conn, err := other.dialQUIC(t.Context(), config, &quic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range other.sendEarly(conn, "") {
			if got := h3Status(t, stream); got != "200" {
				t.Errorf("a request is answered %s", got)
			}
		}
		if c := other.common.Traffic; c.EarlyAccepted.Load()+c.EarlyHeld.Load() > 0 || conn.ConnectionState().Used0RTT || c.Resumed.Load() != 1 {
			t.Errorf("%d requests were early, %d sessions were resumed", c.EarlyAccepted.Load()+c.EarlyHeld.Load(), c.Resumed.Load())
		}
		close(door)
		_ = other.Close()
	})
}

// TestMayBeEarly lists what may be.
func TestMayBeEarly(t *testing.T) {
	for _, test := range []struct {
		method, path string
		keys         []string
		want         bool
	}{
		{"GET", "/api/v1/namespaces/_/actions", nil, true},
		{"HEAD", "/api/v1/namespaces", nil, true},
		{"GET", "/api/v1/web/guest/default/page", nil, false},
		{"GET", "/api/v1/web/guest/default/page", []string{"k"}, false},
		{"GET", "/api/v1/namespaces%2fx", nil, false},
		{"GET", "/admin/v1/tenants", nil, false},
		{"GET", "/metrics", nil, false},
		{"GET", "/", nil, false},
		{"POST", "/api/v1/namespaces/_/actions/a", []string{"k"}, true},
		{"POST", "/api/v1/namespaces/_/actions/p/a?blocking=true", []string{"k"}, true},
		{"POST", "/api/v1/namespaces/_/actions/a", nil, false},
		{"POST", "/api/v1/namespaces/_/actions/a", []string{" "}, false},
		{"POST", "/api/v1/namespaces/_/actions/a", []string{"k", "l"}, false},
		{"POST", "/api/v1/namespaces/_/triggers/t", []string{"k"}, false},
		{"PUT", "/api/v1/namespaces/_/actions/a", []string{"k"}, false},
		{"DELETE", "/api/v1/namespaces/_/actions/a", []string{"k"}, false},
		{"POST", "/offload/call", []string{"k"}, false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), test.method, "https://localhost"+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.keys != nil {
			r.Header["Idempotency-Key"] = test.keys
		}
		if got := mayBeEarly(r); got != test.want {
			t.Errorf("%s %s with keys %q: %v", test.method, test.path, test.keys, got)
		}
	}
}

// TestEarlyDataOfProxies: what a proxy had as early data is answered 425 if it may not be early, over each protocol.
func TestEarlyDataOfProxies(t *testing.T) {
	s := onLoopback(t, 10, func(http.ResponseWriter, *http.Request) {})
	for _, protocol := range protocols() {
		c := s.client(protocol)
		for request, want := range map[[2]string]int{
			{"GET", safeRead[4:]}:    200,
			{"POST", unsafeCall[5:]}: 425,
			{"GET", "/docs/x.md"}:    425,
		} {
			if status, _, err := s.ask(c, request[0], request[1], "", nil, "Early-Data", "1"); err != nil || status != want {
				t.Errorf("%s: %v is answered %d, %v", protocol, request, status, err)
			}
		}
	}
}

// ticketed makes and reads tickets with clocks of the test.
type ticketed struct {
	*tickets
	wall time.Time
	even time.Duration
}

func newTicketed() *ticketed {
	k := &ticketed{wall: time.Unix(1e9, 0)}
	k.tickets = newTickets(new(Traffic))
	k.clock = func() (time.Time, time.Duration) { return k.wall, k.even }
	k.tickets.wall, k.tickets.even = k.clock()
	for i := range k.ring {
		k.ring[i].made = 0
	}
	return k
}

// pass lets time pass on both clocks.
func (k *ticketed) pass(d time.Duration) {
	k.wall, k.even = k.wall.Add(d), k.even+d
	k.refresh()
}

// ticket is one of a session.
func (k *ticketed) ticket(t *testing.T, session *tls.SessionState) []byte {
	t.Helper()
	s := *session
	s.EarlyData, s.Extra = true, nil
	ticket, err := k.wrap(tls.ConnectionState{}, &s)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// use says whether a ticket is read, and may have early data.
func (k *ticketed) use(t *testing.T, ticket []byte) (read, early bool) {
	t.Helper()
	s, err := k.unwrap(ticket, tls.ConnectionState{})
	if err != nil {
		t.Fatal(err)
	}
	return s != nil, s != nil && s.EarlyData
}

// session is one of TLS.
func session(t *testing.T) (s *tls.SessionState) {
	t.Helper()
	keeper, trust := newKeeper(t)
	config := keeper.Config()
	config.WrapSession = func(_ tls.ConnectionState, state *tls.SessionState) ([]byte, error) {
		s = state
		return []byte("ticket"), nil
	}
	inside, outside := net.Pipe()
	ended := make(chan error)
	go func() {
		err := tls.Server(inside, config).Handshake()
		_ = inside.Close()
		ended <- err
	}()
	c := tls.Client(outside, &tls.Config{RootCAs: trust, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1)})
	_, _ = c.Read(make([]byte, 1)) // until the server closes
	if err := <-ended; err != nil || s == nil {
		t.Fatal(err)
	}
	return s
}

// TestTickets: a ticket has early data once, while its number is among the last, and is read for as long as its key lives.
func TestTickets(t *testing.T) {
	state := session(t)
	k := newTicketed()
	mustBe := func(what string, ticket []byte, wantRead, wantEarly bool) {
		t.Helper()
		if read, early := k.use(t, ticket); read != wantRead || early != wantEarly {
			t.Errorf("%s: read %v, early %v", what, read, early)
		}
	}
	first := k.ticket(t, state)
	mustBe("a ticket", first, true, true)
	mustBe("the same again", first, true, false)
	if k.traffic.Replayed.Load() != 1 {
		t.Error("it is not counted")
	}
	unused, old := k.ticket(t, state), k.ticket(t, state)
	k.issued += tracked - 1
	mustBe("the last of those that are tracked", old, true, true)
	mustBe("one more", unused, true, false)

	live := k.ticket(t, state)
	k.pass(keyTime)
	later := k.ticket(t, state)
	mustBe("a ticket of the key before", live, true, true)
	live = k.ticket(t, state)
	k.pass(keyTime - time.Second)
	mustBe("one of the present key", later, true, true)
	k.pass(keyTime + time.Second)
	mustBe("a ticket of a void key", live, false, false)

	for name, apart := range map[string]time.Duration{"restored": time.Hour, "set back": -time.Minute, "much later": 100 * 24 * time.Hour} {
		live = k.ticket(t, state)
		k.wall = k.wall.Add(apart)
		mustBe("a machine that was "+name, live, false, false)
	}
	live = k.ticket(t, state)
	k.wall = k.wall.Add(clockSlack)
	mustBe("clocks that are nearly even", live, true, true)

	live = k.ticket(t, state)
	defer func(limits []byte) { promised = limits }(promised)
	promised = []byte("smaller")
	mustBe("a ticket of other limits", live, true, false)

	strange := *state
	strange.EarlyData, strange.Extra = true, [][]byte{ticketMark, []byte("forerun\x01\xff\xff\xff\xff\xff\xff\xff\xff")}
	ticket, err := k.keys.EncryptTicket(tls.ConnectionState{}, &strange)
	if err != nil {
		t.Fatal(err)
	}
	mustBe("a number that was not given", ticket, true, false)
	mustBe("what is no ticket", []byte("ticket"), false, false)
}
