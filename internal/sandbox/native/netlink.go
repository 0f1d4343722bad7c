package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// netlinkMessage is one request to the kernel's routing tables: a header of 16 bytes, a fixed part, attributes.
type netlinkMessage []byte

func newMessage(kind, flags uint16, fixed []byte) netlinkMessage {
	m := make(netlinkMessage, unix.SizeofNlMsghdr, 64)
	binary.NativeEndian.PutUint16(m[4:], kind)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	return append(m, fixed...)
}

func (m netlinkMessage) attribute(kind uint16, value []byte) netlinkMessage {
	m = binary.NativeEndian.AppendUint16(m, uint16(unix.SizeofRtAttr+len(value)))
	m = binary.NativeEndian.AppendUint16(m, kind)
	m = append(m, value...)
	return append(m, make([]byte, -len(value)&3)...)
}

// finish fills in the length.
func (m netlinkMessage) finish() []byte {
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	return m
}

func linkUp() []byte {
	fixed := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(fixed[4:], loIndex)
	binary.NativeEndian.PutUint32(fixed[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(fixed[12:], unix.IFF_UP) // which flags change
	return newMessage(unix.RTM_NEWLINK, 0, fixed).finish()
}

func addAddress(a netip.Addr) []byte {
	fixed := []byte{unix.AF_INET, byte(a.BitLen()), 0, unix.RT_SCOPE_UNIVERSE, 0, 0, 0, 0}
	binary.NativeEndian.PutUint32(fixed[4:], loIndex)
	m := newMessage(unix.RTM_NEWADDR, unix.NLM_F_CREATE, fixed)
	return m.attribute(unix.IFA_LOCAL, a.AsSlice()).attribute(unix.IFA_ADDRESS, a.AsSlice()).finish()
}

// addDefaultRoute sends everything to the loopback, where it ends; only the packet sockets see it.
func addDefaultRoute(source netip.Addr) []byte {
	fixed := []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_LINK, unix.RTN_UNICAST, 0, 0, 0, 0}
	m := newMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, fixed)
	return m.attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loIndex)).attribute(unix.RTA_PREFSRC, source.AsSlice()).finish()
}

// configureLoopback brings lo up and gives it an address and a route towards the outside.
func configureLoopback() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("opening a netlink socket: %w", err)
	}
	defer unix.Close(fd)
	if err := exchange(fd, linkUp()); err != nil {
		return fmt.Errorf("bringing the loopback up: %w", err)
	}
	for _, message := range [][]byte{addAddress(outward), addDefaultRoute(outward)} {
		if err := exchange(fd, message); err != nil {
			return fmt.Errorf("giving the loopback its route: %w", err)
		}
	}
	return nil
}

// exchange sends one message and waits for its acknowledgement.
func exchange(fd int, message []byte) error {
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buffer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buffer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(buffer[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel's answer is not an acknowledgement")
	}
	if code := int32(binary.NativeEndian.Uint32(buffer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
