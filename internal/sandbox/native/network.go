package native

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// backlog of the doors.
const backlog = 128

// outward is the sandbox's address towards the outside, by which its datagrams are known: the dummy address of RFC 7600. IPv6 has none,
// because its routes cannot lead to the loopback. IPv6 datagrams get "network unreachable".
var outward = netip.AddrFrom4([4]byte{192, 0, 0, 8})

const loIndex = 1 // the loopback is the first device of every network namespace

// openNetwork brings the loopback up, with routes that make datagrams to the outside appear on it. It opens the sockets that are served
// from outside, in the order of readyFDs.
func openNetwork() ([]int, error) {
	if err := configureLoopback(); err != nil {
		return nil, err
	}
	var fds []int
	for _, s := range []struct {
		kind, port int
	}{{unix.SOCK_STREAM, 6379}, {unix.SOCK_STREAM, 3233}, {unix.SOCK_DGRAM, 53}, {unix.SOCK_STREAM, 53}} {
		fd, err := openLocal(s.kind, s.port)
		if err != nil {
			return nil, fmt.Errorf("opening port %d of the sandbox's loopback: %w", s.port, err)
		}
		fds = append(fds, fd)
	}
	fd, err := openPackets()
	if err != nil {
		return nil, fmt.Errorf("opening the way for datagrams to the outside: %w", err)
	}
	return append(fds, fd), nil
}

func openLocal(kind, port int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, err
	}
	if kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, backlog)
	}
	return fd, err
}

// openPackets opens a socket that receives the datagrams which leave for the outside, and through which answers
// come in. Its filter keeps the doors' traffic away from it.
func openPackets() (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0) // deaf until bound
	if err != nil {
		return -1, err
	}
	program, err := bpf.Assemble(leavingFilter())
	if err != nil {
		return -1, err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter); err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_IP), Ifindex: loIndex})
}

func bigEndian(v uint16) uint16 { return binary.NativeEndian.Uint16([]byte{byte(v >> 8), byte(v)}) }

// leavingFilter admits UDP packets from the sandbox's outward address that are not for itself.
func leavingFilter() []bpf.Instruction {
	const protocol, source, target = 9, 12, 16 // in the IPv4 header
	own := binary.BigEndian.Uint32(outward.AsSlice())
	drop, admit := bpf.RetConstant{Val: 0}, bpf.RetConstant{Val: 1 << 17}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: protocol, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 1},
		drop,
		bpf.LoadAbsolute{Off: source, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: own, SkipTrue: 1},
		drop,
		bpf.LoadAbsolute{Off: target, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: own, SkipTrue: 1},
		drop,
		admit,
	}
}
