package sandboxtest

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// Counter is a host outside that writes down who reached it.
type Counter struct {
	TCP, UDP int // ports

	mu   sync.Mutex // guards seen
	seen map[string]int
}

// NewCounter serves one at the address until the test ends: a client sends a word that ends with a line, over TCP or UDP, and gets it back.
func NewCounter(t testing.TB, address string) *Counter {
	t.Helper()
	c := &Counter{seen: map[string]int{}}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c.TCP = l.Addr().(*net.TCPAddr).Port
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.count("connect")
			go func() {
				defer conn.Close()
				b := make([]byte, 1<<12)
				for {
					n, err := conn.Read(b)
					if err != nil {
						return
					}
					c.count(strings.Fields(string(b[:n]))...)
					_, _ = conn.Write(b[:n])
				}
			}()
		}
	}()
	packets, err := net.ListenPacket("udp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	c.UDP = packets.LocalAddr().(*net.UDPAddr).Port
	go func() {
		b := make([]byte, 1<<12)
		for {
			n, from, err := packets.ReadFrom(b)
			if err != nil {
				return
			}
			c.count(strings.Fields(string(b[:n]))...)
			_, _ = packets.WriteTo(b[:n], from)
		}
	}()
	return c
}

func (c *Counter) count(words ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range words {
		c.seen[w]++
	}
}

// Take returns what was seen of a word, and forgets everything.
func (c *Counter) Take(word string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = c.seen[word]
	c.seen = map[string]int{}
	return n
}
