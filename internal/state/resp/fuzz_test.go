package resp_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"forerun.dev/forerun/internal/state/resp"
)

// tape is a connection from which a client's bytes come, and which keeps the answer.
type tape struct {
	io.Reader
	out bytes.Buffer
}

func (c *tape) Write(b []byte) (int, error)    { return c.out.Write(b) }
func (*tape) Close() error                     { return nil }
func (*tape) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*tape) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*tape) SetDeadline(time.Time) error      { return nil }
func (*tape) SetReadDeadline(time.Time) error  { return nil }
func (*tape) SetWriteDeadline(time.Time) error { return nil }

// FuzzDoor sends any bytes to the door, over a store. It may not panic, and must answer with whole replies.
func FuzzDoor(f *testing.F) {
	for _, words := range conversations {
		f.Add([]byte(words))
		f.Add([]byte("HELLO 3\r\n" + words))
	}
	f.Add([]byte("SET a 1\r\nHSET h f v\r\nHGETALL h\r\nSADD s a\r\nSMEMBERS s\r\nRPUSH l 1\r\nLPOP l 5\r\nLPOP l 5\r\nINFO\r\nCLIENT LIST\r\nCOMMAND\r\nTTL a\r\n"))
	d := open(f)
	server := resp.NewServer(d.hub, resp.Options{MaxBulk: 1 << 16})
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(bytes.ToUpper(in), []byte("SETRANGE")) {
			return // a few bytes of it make many
		}
		c := &tape{Reader: bytes.NewReader(in)}
		server.ServeConn(t.Context(), c, session{d.store, "fuzz"})
		replies := &talker{t, c, bufio.NewReader(&c.out)}
		for replies.reply() != "EOF" {
		}
	})
}
