package guard

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// gate holds the connections to the outside that a speculative activation asks for, until it is promoted. One that is
// squashed is killed, and its connections are never made.
type gate struct {
	mu        sync.Mutex              // guards the rest
	open      chan struct{}           // closed when the gate is opened; nil while it is open
	since     time.Time               // when the first came that it has not let pass since it was shut; zero: none did
	permitted map[netip.AddrPort]bool // these pass although it is shut; port 0: all of the address
	opening   int                     // connections that passed and are not in the sandbox yet
	lent      map[uint64]bool         // inodes of the sockets that were put into the sandbox, but for permitted ones
}

// permittedAtMost bounds how many addresses a gate lets pass.
const permittedAtMost = 1024

// Hold shuts the gate.
func (s *Supervisor) Hold() {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open, g.since = make(chan struct{}), time.Time{}
	}
}

// Release opens the gate, and lets those go on that wait at it and still live. It returns for how long the first of them has.
func (s *Supervisor) Release() (waited time.Duration) {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		return 0
	}
	close(g.open)
	g.open = nil
	if !g.since.IsZero() {
		waited = time.Since(g.since)
	}
	return waited
}

// Permit lets connections to these addresses pass although the gate is shut, also those that wait; a port of 0 stands
// for all. The policy still decides about them.
func (s *Supervisor) Permit(to []netip.AddrPort) {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.permitted == nil {
		g.permitted = map[netip.AddrPort]bool{}
	}
	for _, a := range to {
		if len(g.permitted) < permittedAtMost {
			g.permitted[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = true
		}
	}
}

// enter returns nil if a connection may be opened now, and begins it; else what to wait for.
func (g *gate) enter(to netip.AddrPort) (wait <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil && !g.permits(to) {
		if g.since.IsZero() {
			g.since = time.Now()
		}
		return g.open
	}
	g.opening++
	return nil
}

func (g *gate) permits(to netip.AddrPort) bool {
	ip := to.Addr().Unmap()
	return g.permitted[netip.AddrPortFrom(ip, to.Port())] || g.permitted[netip.AddrPortFrom(ip, 0)]
}

// leave ends what enter began.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opening--
}

// pass waits for what gate.enter has returned, and until it returns nothing: a connection may be opened, until gate.leave. It
// reports false if its caller has been killed.
func (s *Supervisor) pass(id uint64, to netip.AddrPort, opened <-chan struct{}) bool {
	look := time.NewTicker(liveness)
	defer look.Stop()
	for opened != nil {
		select {
		case <-opened:
		case <-look.C:
		}
		if !s.listener.valid(id) {
			return false
		}
		opened = s.gate.enter(to)
	}
	if !s.listener.valid(id) { // killed as the gate opened
		s.gate.leave()
		return false
	}
	return true
}

// lend notes a socket that is about to be put into the sandbox.
func (g *gate) lend(socket int, to netip.AddrPort) {
	var st unix.Stat_t
	if unix.Fstat(socket, &st) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.permits(to) {
		return
	}
	if g.lent == nil {
		g.lent = map[uint64]bool{}
	}
	g.lent[st.Ino] = true
}

// Connected reports whether one of the processes, which are all that there are, has a connection to the outside on which
// it could send without asking, or is being given one. Those that were permitted do not count. When it cannot be told,
// one has.
func (s *Supervisor) Connected(processes []int) bool {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opening > 0 {
		return true
	}
	if len(g.lent) == 0 {
		return false
	}
	for _, pid := range processes {
		if g.holds(pid) {
			return true
		}
	}
	g.lent = nil // they are closed
	return false
}

func (g *gate) holds(pid int) bool {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := readNames(folder)
	if err != nil {
		return !os.IsNotExist(err) // it has ended
	}
	for _, name := range names {
		target, err := os.Readlink(folder + "/" + name)
		if err != nil {
			continue // closed meanwhile
		}
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			n, _ := strconv.ParseUint(strings.TrimSuffix(inode, "]"), 10, 64) // 0 is no socket's
			if g.lent[n] {
				return true
			}
		}
	}
	return false
}

func readNames(folder string) ([]string, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
