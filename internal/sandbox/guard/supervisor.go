package guard

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Supervisor answers the held calls of one sandbox. It runs where the sandbox's descriptors and memory can be read:
// in the helper.
type Supervisor struct {
	listener *listener
	policy   Confined
	user     int // of the sandbox's processes
	refused  func(sentence string)
	reached  func()
	beside   sync.WaitGroup // connects that are executed, or wait, beside Run
	waiting  waiters
	attempts chan struct{} // has an element for each attempt that is being executed
	gate     gate
	crowded  atomic.Bool // a process has too much for it to be looked through (places.go)
}

// NewSupervisor takes over the descriptor listener; user is the id of the user and the group
// of the sandbox's processes, and shut shuts its gate. refused is called, from any goroutine, with a sentence for each connection that
// the policy refuses, and reached for each that begins to wait at the gate. The sandbox is owner's.
func NewSupervisor(listener int, policy Confined, user int, host *Host, owner string, shut *Switch, refused func(sentence string), reached func()) (*Supervisor, error) {
	l, err := newListener(listener)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		listener: l, policy: policy, user: user, refused: refused, reached: reached,
		attempts: make(chan struct{}, attemptsAtMost), gate: gate{shared: shut},
	}
	s.gate.owner = host.enter(owner, s, 0)
	return s, nil
}

// SetOwner makes the sandbox another owner's.
func (s *Supervisor) SetOwner(name string) {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.owner.leave(s, g.counted)
		g.owner = g.owner.host.enter(name, s, g.counted)
	}
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
	s.beside.Wait()
	s.end()
	_ = s.listener.file.Close()
}

// Sweep ends the connects whose callers have been killed, and returns when they are gone. An error means that they are not: somebody
// who was not killed keeps them waiting.
func (s *Supervisor) Sweep(ctx context.Context) error {
	var ending []*waiter
	for _, w := range s.waiting.list() {
		if !s.listener.valid(w.id) {
			w.wake()
			ending = append(ending, w)
		}
	}
	for _, w := range ending {
		select {
		case <-w.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// verdict is what is done with a held connect, listen or send.
type verdict int

const (
	proceed verdict = iota // the kernel executes it: a send, of which a socket of the host's network ignores the address
	perform                // the supervisor does so, on the socket that it has looked at
	refuse                 // EACCES
	open                   // the supervisor connects in its place
)

// decide is the one place where the fate of a held connect, listen or send is chosen; sentence is for refuse.
func (s *Supervisor) decide(call int32, to Address) (v verdict, sentence string) {
	connects := call != unix.SYS_SENDTO // whose datagrams to the outside the relay takes up, and checks again
	if to.Class == Outside {
		if sentence := s.policy.Refusal(to.IP); sentence != "" {
			return refuse, sentence
		}
		if connects {
			return open, ""
		}
	}
	if connects {
		return perform, ""
	}
	return proceed, ""
}

func (s *Supervisor) answer(n notification) {
	switch n.number {
	case unix.SYS_SETSOCKOPT:
		s.set(n)
		return
	case unix.SYS_INOTIFY_ADD_WATCH:
		s.beside.Go(func() { s.watch(n) })
		return
	case unix.SYS_IOCTL:
		s.beside.Go(func() { s.device(n) }) // the kernel may have it wait for others
		return
	}
	if number, names := n.target(); names {
		s.adjust(n, number)
		return
	}
	raw, errno := s.destination(n)
	if errno != 0 {
		s.listener.finish(n.id, errno)
		return
	}
	to := parseSockaddr(raw)
	if to.Class == Outside {
		s.gate.saw(to.IP)
	}
	switch v, sentence := s.decide(n.number, to); v {
	case proceed:
		s.listener.proceed(n.id)
	case perform:
		s.beside.Go(func() { s.perform(n, raw) })
	case refuse:
		s.refuse(n, sentence)
	case open:
		s.open(n, to.IP, raw)
	}
}

// refuse ends a call, and tells why if its caller lives: who is next in the sandbox is not told. A Sweep waits for that.
func (s *Supervisor) refuse(n notification, sentence string) {
	defer s.waiting.begin(n.id, func() {})()
	if s.listener.valid(n.id) {
		s.refused(sentence)
	}
	s.listener.finish(n.id, unix.EACCES)
}

// set executes a held setsockopt.
func (s *Supervisor) set(n notification) {
	if int32(n.args[1]) == unix.SOL_SOCKET {
		s.linger(n)
		return
	}
	s.beside.Go(func() { s.group(n) }) // the kernel may have it wait for others
}

// adjust has the kernel change the settings of a process that a held call names if it is the caller's own.
func (s *Supervisor) adjust(n notification, number int) {
	if !isOwn(int(n.pid), number) {
		s.listener.finish(n.id, unix.EPERM)
		return
	}
	s.listener.proceed(n.id)
}

// destination copies the address out of the caller's memory.
func (s *Supervisor) destination(n notification) ([]byte, unix.Errno) {
	address, length := n.args[1], int32(n.args[2])
	switch n.number {
	case unix.SYS_SENDTO:
		address, length = n.args[4], int32(n.args[5])
	case unix.SYS_LISTEN:
		return nil, 0
	}
	if length < 0 || length > maxAddr {
		return nil, unix.EINVAL
	}
	if length == 0 {
		return nil, 0
	}
	return n.memory(address, int(length))
}

// memory copies something out of the caller's memory. It is the caller's if the call is valid afterwards.
func (n notification) memory(address uint64, length int) ([]byte, unix.Errno) {
	b := make([]byte, length)
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	read, err := unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
	if err != nil || read != len(b) {
		return nil, unix.EFAULT
	}
	return b, 0
}
