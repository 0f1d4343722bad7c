package sandboxtest

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Counter is a host outside, at every address of the tests' network, that writes down who reached it: a client sends a word that
// ends with a line, over TCP or UDP, and gets it back.
type Counter struct {
	UDP int // its port

	t     testing.TB
	mu    sync.Mutex // guards the rest
	seen  map[string]int
	ports map[string]int
}

// settled is what a connection says that shall not count.
const settled = "settled"

// NewCounter serves one until the test ends.
func NewCounter(t testing.TB) *Counter {
	t.Helper()
	c := &Counter{t: t, seen: map[string]int{}, ports: map[string]int{}}
	packets, err := net.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	c.UDP = packets.LocalAddr().(*net.UDPAddr).Port
	go c.servePackets(packets)
	return c
}

// TCP is the port for a word. A connection there counts for the word when it is made, whether anything is said on it or not; if
// the word comes first, it does not count again.
func (c *Counter) TCP(word string) int {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if port, ok := c.ports[word]; ok {
		return port
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { l.Close() })
	c.ports[word] = l.Addr().(*net.TCPAddr).Port
	go c.accept(l, word)
	return c.ports[word]
}

func (c *Counter) accept(l net.Listener, word string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		c.count(word, 1)
		go c.serve(conn, word)
	}
}

// serve answers on a connection, for which one of word has been counted.
func (c *Counter) serve(conn net.Conn, word string) {
	defer conn.Close()
	b := make([]byte, 1<<12)
	for first := true; ; first = false {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		words := strings.Fields(string(b[:n]))
		if first && len(words) > 0 && words[0] == word {
			words = words[1:]
		}
		for _, w := range words {
			if w == settled {
				c.count(word, -1)
			} else {
				c.count(w, 1)
			}
		}
		_, _ = conn.Write(b[:n])
	}
}

func (c *Counter) servePackets(packets net.PacketConn) {
	b := make([]byte, 1<<12)
	for {
		n, from, err := packets.ReadFrom(b)
		if err != nil {
			return
		}
		for _, w := range strings.Fields(string(b[:n])) {
			c.count(w, 1)
		}
		_, _ = packets.WriteTo(b[:n], from)
	}
}

func (c *Counter) count(word string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[word] += n
}

// Take returns how often a word came, and forgets everything.
func (c *Counter) Take(word string) (n int) {
	c.t.Helper()
	c.settle(word)
	c.mu.Lock()
	defer c.mu.Unlock()
	n = c.seen[word]
	c.seen = map[string]int{}
	return n
}

// settle returns when the connections that were made for a word have been counted: a last one comes behind them.
func (c *Counter) settle(word string) {
	c.t.Helper()
	conn, err := net.Dial("tcp", (&net.TCPAddr{Port: c.TCP(word)}).String())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = conn.Write([]byte(settled)); err == nil {
		_, err = io.ReadFull(conn, make([]byte, len(settled)))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
