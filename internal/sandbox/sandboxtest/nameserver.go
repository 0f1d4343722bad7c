package sandboxtest

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// ServeNames has the counter be the nameserver at [Outside] too: a question for "word.test" counts for the word, and the answer is the
// address of the tests' network.
func (c *Counter) ServeNames(t testing.TB) {
	t.Helper()
	at := net.JoinHostPort(Outside().String(), "53")
	packets, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close() })
	go c.serveQuestions(packets)
	streams, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { streams.Close() })
	go func() {
		for {
			conn, err := streams.Accept()
			if err != nil {
				return
			}
			go c.serveStream(conn)
		}
	}()
}

func (c *Counter) serveQuestions(packets net.PacketConn) {
	b := make([]byte, 1<<12)
	for {
		n, from, err := packets.ReadFrom(b)
		if err != nil {
			return
		}
		if answer := c.answer(b[:n]); answer != nil {
			_, _ = packets.WriteTo(answer, from)
		}
	}
}

func (c *Counter) serveStream(conn net.Conn) {
	defer conn.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		answer := c.answer(question)
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}

// answer counts a question, and answers it if it is one.
func (c *Counter) answer(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	c.count(strings.TrimSuffix(q.Name.String(), ".test."), 1)
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch q.Type {
	case dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: Outside().As4()}}}
	case dnsmessage.TypeAAAA:
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: Outside6().As16()}}}
	default: // the name has nothing else
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}

// Question asks a nameserver for a word.
func Question(word string) []byte {
	name, class := dnsmessage.MustNewName(word+".test."), dnsmessage.ClassINET
	m := dnsmessage.Message{Header: dnsmessage.Header{RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeA, Class: class}}}
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

// ResolvConf is a file that says which nameserver to ask.
func ResolvConf(t testing.TB, names netip.Addr) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(path, []byte("nameserver "+names.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
