package guard

import (
	"math/rand/v2"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prepare makes the socket of the host's network that takes the place of c: with its options, and a port of its own. It is
// non-blocking.
func prepare(c caller) (int, unix.Errno) {
	socket, err := unix.Socket(c.domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, errnoOf(err)
	}
	copyOptions(c.socket, socket, c.domain)
	if err := bindPort(socket, c.domain); err != nil {
		unix.Close(socket)
		return -1, errnoOf(err)
	}
	return socket, 0
}

// bindPort gives the socket a port for good. Without one of its own, a sandbox could give it another after the
// connection has ended, and keep that port of the host from others.
func bindPort(socket, domain int) error {
	const first, count, attempts = 32768, 28232, 64 // Linux's own range of ephemeral ports
	reuse, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil { // over TIME_WAIT
		return err
	}
	for range attempts {
		port := first + rand.IntN(count)
		var any unix.Sockaddr = &unix.SockaddrInet6{Port: port}
		if domain == unix.AF_INET {
			any = &unix.SockaddrInet4{Port: port}
		}
		if err = unix.Bind(socket, any); err != unix.EADDRINUSE {
			break
		}
	}
	if err != nil {
		return err
	}
	return unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, reuse)
}

// option is one that a program may have set before it connects.
type option struct {
	level, name int
	doubled     bool // the kernel says twice what was set
}

// preset is an option as a socket of the host's network has it that was just made.
type preset struct {
	option
	value int
}

// presets are all that are looked at. Those of TCP sockets change with the machine's settings only.
type presets struct {
	once sync.Once
	all  []preset
}

var presets4, presets6 presets

// of reads them from such a socket, once.
func (p *presets) of(fresh, domain int) []preset {
	p.once.Do(func() {
		for _, o := range options(domain) {
			if value, err := unix.GetsockoptInt(fresh, o.level, o.name); err == nil {
				p.all = append(p.all, preset{o, value})
			}
		}
	})
	return p.all
}

func options(domain int) []option {
	list := []option{
		{unix.SOL_SOCKET, unix.SO_REUSEADDR, false},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, false},
		{unix.SOL_SOCKET, unix.SO_OOBINLINE, false},
		{unix.SOL_SOCKET, unix.SO_RCVLOWAT, false},
		{unix.SOL_SOCKET, unix.SO_SNDBUF, true},
		{unix.SOL_SOCKET, unix.SO_RCVBUF, true},
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, false},
		{unix.IPPROTO_TCP, unix.TCP_CORK, false},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, false},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, false},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, false},
		{unix.IPPROTO_TCP, unix.TCP_SYNCNT, false},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, false},
		{unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, false},
		{unix.IPPROTO_IP, unix.IP_TOS, false},
		{unix.IPPROTO_IP, unix.IP_TTL, false},
		{unix.IPPROTO_IP, unix.IP_RECVERR, false},
	}
	if domain == unix.AF_INET6 {
		list = append(list, option{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, false}, option{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, false},
			option{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, false})
	}
	return list
}

// copyOptions sets on to, which is fresh, what from has otherwise. An option that cannot be set is no reason to
// fail a connection.
func copyOptions(from, to, domain int) {
	p := &presets4
	if domain == unix.AF_INET6 {
		p = &presets6
	}
	for _, o := range p.of(to, domain) {
		want, err := unix.GetsockoptInt(from, o.level, o.name)
		if err != nil || want == o.value {
			continue
		}
		if o.doubled {
			want /= 2
		}
		_ = unix.SetsockoptInt(to, o.level, o.name, want)
	}
	copyLinger(from, to)
	for _, name := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if limit, err := unix.GetsockoptTimeval(from, unix.SOL_SOCKET, name); err == nil && limit.Nano() != 0 {
			_ = unix.SetsockoptTimeval(to, unix.SOL_SOCKET, name, limit)
		}
	}
}

func copyLinger(from, to int) {
	var l unix.Linger
	size := uint32(unsafe.Sizeof(l))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(from), unix.SOL_SOCKET, unix.SO_LINGER,
		uintptr(unsafe.Pointer(&l)), uintptr(unsafe.Pointer(&size)), 0)
	if errno == 0 && l.Onoff != 0 {
		_ = unix.SetsockoptLinger(to, unix.SOL_SOCKET, unix.SO_LINGER, &l)
	}
}
