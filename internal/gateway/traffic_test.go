package gateway

import (
	"crypto/tls"
	"net"
	"net/http"
	"testing"
)

// TestHandshakesAreCounted: each connection counts once, by its version, or as one that ended before its handshake.
func TestHandshakesAreCounted(t *testing.T) {
	var traffic Traffic
	keeper, _ := newKeeper(t)
	config := keeper.Config()
	config.SessionTicketsDisabled = true // the client reads no more after its handshake
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13, tls.VersionTLS13, 0} {
		client, accepted := net.Pipe()
		server := tls.Server(&conn{Conn: accepted}, config)
		traffic.conn(server, http.StateNew)
		if version != 0 {
			shaken := make(chan error)
			go func() {
				shaken <- tls.Client(client, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}).Handshake()
			}()
			if err := server.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := <-shaken; err != nil {
				t.Fatal(err)
			}
			traffic.conn(server, http.StateActive)
			traffic.conn(server, http.StateIdle)
			traffic.conn(server, http.StateActive)
		}
		traffic.conn(server, http.StateClosed)
		client.Close()
		accepted.Close()
	}
	if traffic.TLS12.Load() != 1 || traffic.TLS13.Load() != 2 || traffic.TLSUnfinished.Load() != 1 || traffic.TCP.Load() != 0 {
		t.Errorf("counted: TLS 1.2 %d, 1.3 %d, unfinished %d, open %d", traffic.TLS12.Load(), traffic.TLS13.Load(), traffic.TLSUnfinished.Load(), traffic.TCP.Load())
	}
}
