package test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	openwhisk "forerun.dev/forerun/sdk/go"
	"forerun.dev/forerun/test/server"
)

// way is a relay of TCP and UDP on one port. It delays datagrams and loses them.
type way struct {
	server    string
	address   string
	datagrams atomic.Int64 // that clients sent
	deaf      atomic.Bool  // clients hear nothing over UDP
	delay     time.Duration
}

// relayTo begins a relay to a server.
func relayTo(t *testing.T, server string) *way {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		tcp.Close()
		t.Skip("the port is in use for UDP: ", err)
	}
	w := &way{server: server, address: tcp.Addr().String(), delay: 10 * time.Millisecond}
	go w.relayTCP(tcp)
	go w.relayUDP(udp)
	t.Cleanup(func() { tcp.Close(); udp.Close() })
	return w
}

func (w *way) relayTCP(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			client.Close()
			continue
		}
		var both sync.WaitGroup
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			both.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].(*net.TCPConn).CloseWrite()
			})
		}
		go func() { both.Wait(); client.Close(); server.Close() }()
	}
}

func (w *way) relayUDP(from net.PacketConn) {
	clients := make(map[string]net.Conn)
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	for {
		datagram := make([]byte, 2048)
		n, client, err := from.ReadFrom(datagram)
		if err != nil {
			return
		}
		w.datagrams.Add(1)
		to := clients[client.String()]
		if to == nil {
			if to, err = net.Dial("udp", w.server); err != nil {
				return
			}
			clients[client.String()] = to
			go w.answers(from, client, to)
		}
		time.AfterFunc(w.delay, func() { _, _ = to.Write(datagram[:n]) })
	}
}

func (w *way) answers(to net.PacketConn, client net.Addr, from net.Conn) {
	for {
		datagram := make([]byte, 2048)
		n, err := from.Read(datagram)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && !w.deaf.Load() {
			time.AfterFunc(w.delay, func() { _, _ = to.WriteTo(datagram[:n], client) })
		}
	}
}

// TestGoLibrary: the library for Go sends an invocation as early data over a long way. Where it hears nothing over UDP it goes on over TCP, and the
// action has run once.
func TestGoLibrary(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // it keeps tickets there
	s := start(t, server.Options{Args: []string{"--tls", "on"}})
	c := client(t, s)
	putPython(t, c, map[string]string{"visits": "import os, redis\n\ndef main(args):\n    return {'n': redis.Redis.from_url(os.environ['REDIS_URL']).incrby('visits', args['by'])}\n"})
	w := relayTo(t, strings.TrimPrefix(s.URL, "https://"))
	ca, err := os.ReadFile(s.CA())
	if err != nil {
		t.Fatal(err)
	}
	visits := 0
	visit := func(silence time.Duration) {
		t.Helper()
		library, err := openwhisk.New(openwhisk.Options{Host: "https://" + w.address, Auth: s.Auth, CA: string(ca)})
		if err != nil {
			t.Fatal(err)
		}
		defer library.Close()
		library.HTTP.Transport.(*openwhisk.Transport).Silence = silence
		var result struct{ N int }
		visits++
		if err := library.Invoke(t.Context(), "visits", map[string]int{"by": 1}, &result); err != nil || result.N != visits {
			t.Fatalf("visit %d: %+v, %v", visits, result, err)
		}
	}
	early := func() (n int) {
		_, text := fetch(t, c, s.URL+"/metrics")
		_, after, _ := strings.Cut(text, "\nforerun_early_accepted_total ")
		_, _ = fmt.Sscan(after, &n)
		return n
	}
	for n := 0; early() == 0 && n < 100; n++ { // the first has no ticket, and the ticket of the next may be late
		visit(time.Minute)
	}
	if early() == 0 {
		t.Fatal("no invocation came early")
	}
	w.deaf.Store(true)
	visit(300 * time.Millisecond)
	visit(time.Minute)
	known := w.datagrams.Load()
	visit(time.Minute)
	if n := w.datagrams.Load(); n != known {
		t.Errorf("it sent %d datagrams in vain", n-known)
	}
	if _, err := openwhisk.New(openwhisk.Options{Host: "https://x", Auth: "a:b", CA: "no certificate"}); err == nil {
		t.Error("it trusts what is not a certificate")
	}
	var refused *openwhisk.Error
	library, err := openwhisk.New(openwhisk.Options{Host: s.URL, Auth: s.Auth, CA: string(ca)})
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	if err := library.Invoke(t.Context(), "absent", nil, nil); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("an absent action: %v", err)
	}
}
