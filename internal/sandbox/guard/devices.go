package guard

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Programs list the network interfaces by route netlink (the C library, Go) or by ioctl (Java). Both show the network namespace of the socket.
// A netlink socket is always of the sandbox's namespace: the kernel answers there, and refuses changes, for which the sandbox has no
// capability. A TCP socket may be of the host's namespace, so the supervisor looks at the socket of each ioctl, and executes it itself: another
// thread could put one of the host's in its place afterwards.

// deviceRequests are the ioctls that only read what an interface is.
var deviceRequests = []uint32{
	unix.SIOCGIFNAME, unix.SIOCGIFCONF, unix.SIOCGIFFLAGS, unix.SIOCGIFADDR, unix.SIOCGIFDSTADDR, unix.SIOCGIFBRDADDR, unix.SIOCGIFNETMASK,
	unix.SIOCGIFMETRIC, unix.SIOCGIFMTU, unix.SIOCGIFHWADDR, unix.SIOCGIFINDEX, unix.SIOCGIFTXQLEN,
}

// Sizes of what these ioctls take, on 64-bit machines.
const (
	ifreqBytes     = 40
	ifconfBytes    = 16       // a length, and the address of a list
	ifconfListMost = 64 << 10 // a sandbox has one interface
)

// device executes the ioctl about an interface that is held in n.
func (s *Supervisor) device(n notification) { s.listener.finish(n.id, s.asked(n)) }

func (s *Supervisor) asked(n notification) unix.Errno {
	c, errno := s.caller(n)
	if errno != 0 {
		return errno
	}
	defer c.close()
	request := uint32(n.args[1])
	if c.hosts() || !slices.Contains(deviceRequests, request) {
		return unix.EPERM
	}
	memory, errno := s.memoryOf(n)
	if errno != 0 {
		return errno
	}
	defer unix.Close(memory)
	if request == unix.SIOCGIFCONF {
		return askList(c.socket, memory, int64(n.args[2]))
	}
	return askOne(c.socket, request, memory, int64(n.args[2]))
}

// askOne executes an ioctl whose argument is a struct ifreq at an address of the caller's memory.
func askOne(socket int, request uint32, memory int, address int64) unix.Errno {
	var ifreq [ifreqBytes]byte
	if errno := readAt(memory, ifreq[:], address); errno != 0 {
		return errno
	}
	if errno := ioctl(uintptr(socket), uintptr(request), unsafe.Pointer(&ifreq)); errno != 0 {
		return errno
	}
	return writeAt(memory, ifreq[:], address)
}

// askList executes SIOCGIFCONF. Without a list it tells only how long that would be.
func askList(socket, memory int, address int64) unix.Errno {
	var theirs [ifconfBytes]byte
	if errno := readAt(memory, theirs[:], address); errno != 0 {
		return errno
	}
	length, place := int32(binary.NativeEndian.Uint32(theirs[:])), int64(binary.NativeEndian.Uint64(theirs[8:]))
	if place == 0 {
		length = 0 // Java leaves it unset
	}
	if length < 0 {
		return unix.EINVAL
	}
	own := struct {
		length int32
		_      int32
		list   *byte
	}{length: min(length, ifconfListMost)}
	list := make([]byte, own.length+1) // it has a place even if it is empty
	if place != 0 {
		own.list = &list[0]
	}
	if errno := ioctl(uintptr(socket), unix.SIOCGIFCONF, unsafe.Pointer(&own)); errno != 0 {
		return errno
	}
	if place != 0 {
		if errno := writeAt(memory, list[:min(max(0, own.length), ifconfListMost)], place); errno != 0 {
			return errno
		}
	}
	binary.NativeEndian.PutUint32(theirs[:], uint32(own.length))
	return writeAt(memory, theirs[:4], address)
}

// memoryOf opens the memory of the caller, which it stays even if the caller ends and another process gets its number.
func (s *Supervisor) memoryOf(n notification) (fd int, errno unix.Errno) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/mem", n.pid), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, errnoOf(err)
	}
	if !s.listener.valid(n.id) { // the number may have been another process's
		unix.Close(fd)
		return -1, unix.ESRCH
	}
	return fd, 0
}

func readAt(memory int, b []byte, address int64) unix.Errno {
	if n, err := unix.Pread(memory, b, address); err != nil || n != len(b) {
		return unix.EFAULT
	}
	return 0
}

func writeAt(memory int, b []byte, address int64) unix.Errno {
	if n, err := unix.Pwrite(memory, b, address); err != nil || n != len(b) {
		return unix.EFAULT
	}
	return 0
}
