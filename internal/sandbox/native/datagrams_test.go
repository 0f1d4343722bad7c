package native

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// TestFlowsTakePorts: a datagram to somebody new needs a port that its sandbox's owner may have, and gives it back.
func TestFlowsTakePorts(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	packets := os.NewFile(uintptr(pair[0]), "packets")
	defer packets.Close()
	p := sandbox.NewShares(4)
	for p.Take("greedy") {
	}
	r, err := newDatagramRelay(packets, guard.Policy{}, new(readHosts), p, "greedy", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	opens := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.open(flow{addrPort("192.0.0.8:40000"), addrPort("127.0.0.1:9")}) != nil
	}
	if opens() {
		t.Error("an owner who has all that he may have gets another")
	}
	if r.own("modest"); !opens() || p.Take("modest") {
		t.Error("another owner gets none, or it does not count")
	}
	for r.reset(); !p.Take("modest"); runtime.Gosched() {
	}
}

// TestReceive: a datagram takes as much memory as it needs; an empty one is one, too.
func TestReceive(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{3, 0, 60_000} {
		if _, err := server.WriteToUDP(make([]byte, size), conn.LocalAddr().(*net.UDPAddr)); err != nil {
			t.Fatal(err)
		}
		if b, err := receive(conn); err != nil || len(b) != size || cap(b) > size+1 {
			t.Errorf("of %d bytes came %d, with room for %d, %v", size, len(b), cap(b), err)
		}
	}
	conn.Close()
	if _, err := receive(conn); err == nil {
		t.Error("a closed connection receives something")
	}
}
