package native

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
)

// relayed is a name relay without a sandbox, and its nameserver.
type relayed struct {
	*nameRelay
	udp, tcp net.Addr    // where it is asked
	asked    chan string // names that came to the nameserver
	t        *testing.T
}

func newRelayed(t *testing.T) *relayed {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	t.Cleanup(func() { streams.Close() })
	server, err := net.ListenPacket("udp", streams.Addr().String())
	must(err)
	t.Cleanup(func() { server.Close() })
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	packets, err := udp.(*net.UDPConn).File()
	must(err)
	listener, err := tcp.(*net.TCPListener).File()
	must(err)
	r := &relayed{udp: udp.LocalAddr(), tcp: tcp.Addr(), asked: make(chan string, 10), t: t}
	r.nameRelay, err = newNameRelay(packets, listener, []string{server.LocalAddr().String()}, "", relayParts{
		hosts: new(readHosts), confines: new(egress.Confines), ports: sandbox.NewShares(portsAtMost), learned: func(context.Context, []byte) {},
	})
	must(err)
	t.Cleanup(r.close)
	for _, c := range []io.Closer{packets, listener, udp, tcp} {
		must(c.Close())
	}
	go r.nameserver(server)
	go r.streamserver(streams)
	return r
}

func (r *relayed) nameserver(c net.PacketConn) {
	b := make([]byte, 512)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		r.asked <- nameIn(b[:n])
		_, _ = c.WriteTo(b[:n], from)
	}
}

func (r *relayed) streamserver(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for {
				b, err := readStreamed(conn)
				if err != nil {
					return
				}
				r.asked <- nameIn(b)
				_, _ = conn.Write(streamed(b))
			}
		}()
	}
}

func nameIn(query []byte) string {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return "no question"
	}
	return m.Questions[0].Name.String()
}

func streamed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

func readStreamed(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

func (r *relayed) dial(network string, to net.Addr) net.Conn {
	r.t.Helper()
	conn, err := net.Dial(network, to.String())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return conn
}

func (r *relayed) write(c net.Conn, b []byte) {
	r.t.Helper()
	if _, err := c.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// mustBeAsked: the next that comes to the nameserver is this, and nothing came before.
func (r *relayed) mustBeAsked(name string) {
	r.t.Helper()
	select {
	case got := <-r.asked:
		if got != name {
			r.t.Errorf("the nameserver is asked for %s, not for %s", got, name)
		}
	case <-time.After(2 * time.Minute):
		r.t.Errorf("the nameserver is not asked for %s", name)
	}
}

// TestUnreadQuestionsEnd: a question that the relay had not read when its activation ended is not asked for the next one.
func TestUnreadQuestionsEnd(t *testing.T) {
	r := newRelayed(t)
	r.gate.shut()
	r.mu.Lock() // the relay has no processor
	r.write(r.dial("udp", r.udp), sandboxtest.Question("squashed"))
	stream := r.dial("tcp", r.tcp)
	r.write(stream, streamed(sandboxtest.Question("squashed")))
	r.forget()
	r.mu.Unlock()
	r.gate.lift()
	if _, err := stream.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the stream of one that has ended is open")
	}
	r.write(r.dial("udp", r.udp), sandboxtest.Question("after"))
	r.mustBeAsked("after.test.")
	r.write(r.dial("tcp", r.tcp), streamed(sandboxtest.Question("last")))
	r.mustBeAsked("last.test.")
}

// TestStreamOfQuestionsWaits: a connection to the nameserver that was there before the gate was shut passes nothing on until it is
// opened, or nothing at all.
func TestStreamOfQuestionsWaits(t *testing.T) {
	r := newRelayed(t)
	for _, squashed := range []bool{false, true} {
		stream := r.dial("tcp", r.tcp)
		r.write(stream, streamed(sandboxtest.Question("before")))
		r.mustBeAsked("before.test.")
		if _, err := readStreamed(stream); err != nil {
			t.Fatal(err)
		}
		r.gate.shut()
		r.write(stream, streamed(sandboxtest.Question("ahead")))
		time.Sleep(10 * time.Millisecond) // it would be there in less
		if len(r.asked) > 0 {
			t.Errorf("the nameserver is asked for %s before the gate is opened", <-r.asked)
		}
		if squashed {
			r.reset()
			if _, err := readStreamed(stream); err == nil {
				t.Error("a squashed question is answered")
			}
		}
		r.gate.lift()
		if !squashed {
			r.mustBeAsked("ahead.test.")
		}
		r.write(r.dial("udp", r.udp), sandboxtest.Question("after"))
		r.mustBeAsked("after.test.")
	}
}

// TestQuestionsTakePorts: a question needs a port that its sandbox's owner may have, while it is being served.
func TestQuestionsTakePorts(t *testing.T) {
	r := newRelayed(t)
	r.ports = sandbox.NewShares(4)
	for r.ports.Take("greedy") {
	}
	asks := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.call(func(ctx context.Context) { <-ctx.Done() })
	}
	r.own("greedy")
	if asks() || len(r.slots) != 0 {
		t.Error("an owner who has all that he may have asks")
	}
	if r.own("modest"); !asks() || asks() {
		t.Error("another owner may not ask, or that does not count")
	}
	for r.reset(); !r.ports.Take("modest"); runtime.Gosched() {
	}
}
