package guard

import (
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestSwitch: whoever shuts a gate while connections are opened sees those that are through it, and whoever lifts it those that wait.
func TestSwitch(t *testing.T) {
	const connections, enough = 4, 100_000
	shared := new(Switch)
	s := &Supervisor{gate: gate{shared: shared}}
	g := &s.gate
	var through, blocked atomic.Int64
	var over atomic.Bool
	var opening sync.WaitGroup
	for range connections {
		opening.Go(func() {
			for !over.Load() {
				if opened := g.enter(netip.AddrPort{}); opened != nil {
					for opened = g.lineUp(netip.AddrPort{}); opened != nil; opened = g.enter(netip.AddrPort{}) {
						blocked.Add(1)
						<-opened
						blocked.Add(-1)
					}
					g.wait(-1)
				}
				through.Add(1)
				through.Add(-1)
				g.leave()
			}
		})
	}
	shuts, waits := 0, 0
	for turn := 0; shuts < enough || waits < enough; turn++ {
		shared.Shut()
		if !shared.Connected() {
			shuts++
			never(t, &through, "are through a gate that is shut")
		}
		if turn%2 == 0 {
			runtime.Gosched()
		}
		if shared.Lift() {
			waits++
			s.Release()
		} else {
			never(t, &blocked, "wait at a gate that is lifted")
		}
	}
	over.Store(true)
	opening.Wait() // nobody waits for ever
	if shared.Connected() || shared.waiting.Load() != 0 {
		t.Errorf("at the end %d are counted as through it, %d as waiting", shared.open.Load(), shared.waiting.Load())
	}
}

// never looks for a while whether there are connections that nobody was told of.
func never(t *testing.T, connections *atomic.Int64, what string) {
	t.Helper()
	for range 200 {
		if n := connections.Load(); n != 0 {
			t.Fatalf("%d connections %s, and nobody is told so", n, what)
		}
	}
}

// TestRoom: a sandbox that has as many sockets of the host's network as it may is given another when one is closed, also if they lead
// to where it may connect ahead.
func TestRoom(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	to := server.Addr().(*net.TCPAddr).AddrPort()
	client, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	f, err := client.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &Supervisor{gate: gate{shared: new(Switch)}}
	s.Permit([]netip.AddrPort{to})
	g := &s.gate
	for n := range lentAtMost {
		g.enter(to)
		if !g.room() {
			t.Fatalf("no room for one beside %d", n)
		}
		if n == 0 {
			g.lend(int(f.Fd()), to)
		} else {
			g.lent = append(g.lent, g.lent[0])
			g.count()
		}
		g.leave()
	}
	g.enter(to)
	if g.room() {
		t.Errorf("room for one beside %d", lentAtMost)
	}
	g.leave()
	if s.Connected(nil) {
		t.Error("permitted connections count as such that are not")
	}
	f.Close()
	client.Close()
	g.looked = time.Time{} // long ago
	g.enter(to)
	if !g.room() {
		t.Error("no room when all are closed")
	}
}

// TestOwnersShare: however many sandboxes an owner has, it has no more sockets than are left for others, of which whoever comes finds
// some; those that are closed do not count, in whichever sandbox.
func TestOwnersShare(t *testing.T) {
	h := NewHost()
	box := func(owner string) *gate {
		s := &Supervisor{gate: gate{shared: new(Switch)}}
		s.gate.owner = h.enter(owner, s, 0)
		return &s.gate
	}
	takes := func(g *gate, sockets int) {
		g.opening += sockets
		g.publish()
	}
	first, again, other := box("first"), box("first"), box("other")
	takes(first, socketsAtMost/4)
	takes(again, socketsAtMost/4)
	if !again.ownerHasRoom() || !other.ownerHasRoom() {
		t.Error("there is no room although half is left")
	}
	takes(first, 1)
	takes(other, 1)
	if again.ownerHasRoom() || !other.ownerHasRoom() {
		t.Error("the first has more than is left, or the other has no room")
	}
	takes(other, -1)
	takes(first, -1)

	closed := lent{domain: unix.AF_INET, inode: 1, local: netip.MustParseAddrPort("127.0.0.1:1"), peer: netip.MustParseAddrPort("127.0.0.1:1")}
	first.lent = []lent{closed}
	first.count()
	h.looked = time.Time{} // long ago
	if !again.ownerHasRoom() {
		t.Error("a socket that is closed counts, as it was another sandbox's")
	}
	first.lent = []lent{closed}
	first.count()
	takes(other, socketsAtMost/2-2)
	h.looked = time.Time{}
	third := box("third")
	if takes(third, 1); !third.ownerHasRoom() {
		t.Error("a socket that is closed counts, as it was another owner's")
	}
	takes(third, -1)
	takes(other, 2-socketsAtMost/2)
	if takes(first, 1); again.ownerHasRoom() {
		t.Error("the first has more than is left, once more")
	}
	if first.owner.boxes[0].SetOwner("second"); !first.ownerHasRoom() || !again.ownerHasRoom() {
		t.Error("a sandbox that gets another owner does not take its sockets along")
	}
}

// deaf is a listener whose callers have all been killed.
type deaf struct{}

func (deaf) Control(func(uintptr)) error   { return unix.EBADF }
func (deaf) Read(func(uintptr) bool) error { return unix.EBADF }

// TestNothingIsToldOfTheDead: what a killed process has asked for is not said of the activation that is in the sandbox by then.
func TestNothingIsToldOfTheDead(t *testing.T) {
	s := &Supervisor{
		listener: &listener{raw: deaf{}}, gate: gate{shared: new(Switch)},
		refused: func(sentence string) { t.Errorf("told: %s", sentence) },
		reached: func() { t.Error("something has reached the outside") },
	}
	s.refuse(notification{}, "refused")
	if s.pass(1, netip.AddrPort{}, make(chan struct{})) || len(s.waiting.list()) > 0 {
		t.Error("it goes on")
	}
}

// TestClosingCounts: a socket that is closed with something unsent keeps the host's memory. So it counts for its sandbox, and for the owner of
// one that is gone, until the kernel has sent that; but nobody can send on it any more.
func TestClosingCounts(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	to := server.Addr().(*net.TCPAddr).AddrPort()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Connect(socket, sockaddr(to))
	}
	if err != nil {
		t.Fatal(err)
	}
	peer, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	for err = nil; err == nil; { // until nothing more can be taken
		_, err = unix.SendmsgN(socket, make([]byte, 1<<16), nil, nil, unix.MSG_DONTWAIT)
	}
	h := NewHost()
	s := &Supervisor{gate: gate{shared: new(Switch)}}
	s.gate.owner = h.enter("it", s, 0)
	s.gate.lend(socket, to)
	if s.gate.sending != 1 || s.gate.told != 1 {
		t.Fatalf("%d of %d open ones can be sent on", s.gate.sending, s.gate.told)
	}
	unix.Close(socket)
	s.lookForGone()
	if s.gate.told != 1 || s.gate.sending != 0 || s.Connected(nil) {
		t.Errorf("one that is closed with something unsent counts %d times, %d of them as if it were open", s.gate.told, s.gate.sending)
	}
	synctest.Test(t, func(t *testing.T) {
		if s.end(); s.gate.owner == nil || s.gate.counted != 1 {
			t.Errorf("it counts %d times once its sandbox is gone", s.gate.counted)
		}
		time.Sleep(10 * lookAtAll)
		if len(h.owners) != 1 {
			t.Error("its owner is gone before that")
		}
		if _, err := io.Copy(io.Discard, peer); err != nil {
			t.Fatal(err)
		}
		peer.Close()
		time.Sleep(10 * lookAtAll)
		if s.gate.owner != nil || s.gate.counted != 0 || len(h.owners) != 0 {
			t.Errorf("what is sent counts: %+v, %d owners", s.gate.lent, len(h.owners))
		}
	})
}
