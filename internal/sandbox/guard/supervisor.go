package guard

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Supervisor answers the held calls of one sandbox. It runs where the sandbox's descriptors and memory can be read:
// in the helper.
type Supervisor struct {
	listener *listener
	policy   Policy
	refused  func(sentence string)
	outside  sync.WaitGroup // connections being opened
	waiting  waiters
}

// NewSupervisor takes over the descriptor listener. refused is called, from any goroutine, with a sentence for each
// connection that the policy refuses.
func NewSupervisor(listener int, policy Policy, refused func(sentence string)) (*Supervisor, error) {
	l, err := newListener(listener)
	if err != nil {
		return nil, err
	}
	return &Supervisor{listener: l, policy: policy, refused: refused}, nil
}

// Run answers until the sandbox is gone. A connection that takes long holds up no other call.
func (s *Supervisor) Run() {
	for {
		n, ok := s.listener.next()
		if !ok {
			break
		}
		s.answer(n)
	}
	s.outside.Wait()
	_ = s.listener.file.Close()
}

// Sweep ends the connects whose callers have been killed, and returns when they are gone.
func (s *Supervisor) Sweep() {
	for _, w := range s.waiting.list() {
		if !s.listener.valid(w.id) {
			_ = w.file.SetWriteDeadline(time.Now()) // wait looks for its caller
			<-w.done
		}
	}
}

// verdict is what is done with a held call.
type verdict int

const (
	proceed verdict = iota // the kernel executes it, in the sandbox's own network
	refuse                 // EACCES
	open                   // the supervisor connects in its place
)

// decide is the one place where the fate of a held call is chosen; sentence is for refuse.
func (s *Supervisor) decide(call int32, to Address) (v verdict, sentence string) {
	if to.Class == Inside {
		return proceed, ""
	}
	if sentence := s.policy.Refusal(to.IP); sentence != "" {
		return refuse, sentence
	}
	if call == unix.SYS_CONNECT {
		return open, ""
	}
	return proceed, "" // a datagram, which the relay takes up
}

func (s *Supervisor) answer(n notification) {
	to, errno := s.destination(n)
	if errno != 0 {
		s.listener.finish(n.id, errno)
		return
	}
	switch v, sentence := s.decide(n.number, to); v {
	case proceed:
		s.listener.proceed(n.id)
	case refuse:
		s.refused(sentence)
		s.listener.finish(n.id, unix.EACCES)
	case open:
		s.outside.Go(func() { s.open(n, to.IP) })
	}
}

// destination copies the address out of the caller's memory.
func (s *Supervisor) destination(n notification) (Address, unix.Errno) {
	address, length := n.args[1], n.args[2]
	if n.number == unix.SYS_SENDTO {
		address, length = n.args[4], n.args[5]
	}
	if length := int32(length); length < 2 || length > maxAddr {
		return Address{}, 0 // the kernel refuses it
	}
	b := make([]byte, int32(length))
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	read, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
	if err != nil || read != len(b) {
		return Address{}, unix.EFAULT
	}
	return parseSockaddr(b), 0
}
