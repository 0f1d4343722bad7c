package native

import (
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// TestFlowsTakePorts: a datagram to a new peer needs a port that its sandbox's owner may have, and gives it back.
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
	r, err := newDatagramRelay(packets, guard.Confined{Confines: new(egress.Confines)}, new(readHosts), p, "greedy", nil)
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

// TestAllAreSentWhereNothingIsHeld: a caller that takes the waiting datagrams finds all earlier ones on their way, also unread ones.
func TestAllAreSentWhereNothingIsHeld(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	r := &datagramRelay{ // no goroutine serves it
		packets: os.NewFile(uintptr(pair[0]), "packets"), buffer: make([]byte, maxPacket),
		hosts: new(readHosts), ports: sandbox.NewShares(64), flows: map[flow]*peer{},
	}
	defer r.close()
	from, to := addrPort("192.0.0.8:40000"), server.LocalAddr().(*net.UDPAddr).AddrPort()
	r.open(flow{from, to}) // which the policy would refuse
	words := []string{"one", "two", "three"}
	for _, word := range words {
		if _, err := unix.Write(pair[1], datagram{from, to, []byte(word)}.packet()); err != nil {
			t.Fatal(err)
		}
	}
	if r.takeHeld() != nil {
		t.Error("something waits")
	}
	_ = server.SetReadDeadline(time.Now().Add(time.Minute))
	for _, word := range words {
		b := make([]byte, 16)
		if n, err := server.Read(b); err != nil || string(b[:n]) != word {
			t.Errorf("%q came, not %q: %v", b[:n], word, err)
		}
	}
}

// TestFlood: a waiting datagram does not get lost because more wait than may. The relay tells it once for each hold. Later datagrams wait,
// too, as far as the server's memory goes.
func TestFlood(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	r := &datagramRelay{packets: os.NewFile(uintptr(pair[0]), "packets"), buffer: make([]byte, maxPacket), hosts: new(readHosts), floods: make(chan struct{}, 1), policy: guard.Confined{Confines: new(egress.Confines)}}
	defer r.packets.Close()
	b := &serverSandbox{maker: &Maker{shared: &shared{told: new(atomic.Uint64)}}, names: new(nameRelay), datagrams: r}
	forward := func(n, size int) {
		for range n {
			r.forward(datagram{addrPort("192.0.0.8:40000"), addrPort("8.8.8.8:53"), make([]byte, size)})
		}
	}
	expect := func(what string, flooded bool, waiting int) {
		t.Helper()
		if b.Reached() != flooded || len(b.Flooded()) == 1 != flooded || r.waiting() != waiting {
			t.Errorf("%s: it is a flood: %v, %d; %d wait, want %d", what, b.Reached(), len(b.Flooded()), r.waiting(), waiting)
		}
	}
	for _, size := range []int{1, heldBytesAtMost / heldAtMost} {
		r.hold()
		forward(heldAtMost, size)
		expect("as many as are to wait", false, heldAtMost)
		forward(1, size)
		expect("one more", true, heldAtMost+1)
		forward(heldAtMost, size)
		expect("twice as many", true, 2*heldAtMost+1)
		r.hold()
		expect("held again", false, 2*heldAtMost+1)
		r.reset()
	}
	forward(16, 60<<10)
	expect("a few large ones", false, 16)
	forward(2, 60<<10)
	expect("more bytes than are to wait", true, 18)
	forward(1000, 60<<10)
	if most := queueAtMost / (60 << 10); r.waiting() > most || r.waiting() < most-2 {
		t.Errorf("%d large ones wait, at most %d", r.waiting(), most)
	}
}
