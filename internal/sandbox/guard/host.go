package guard

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// hostAddresses are the host's own. Asking for them takes longer than all else that is looked at in a connect, so they are
// kept until the kernel says that there was a change.
type hostAddresses struct {
	mu      sync.Mutex // guards the rest
	changes int        // a netlink socket, on which there is something to read when they have changed; 0 before the first look
	own     []netip.Addr
	stale   bool // they could not be read when they had changed
}

// host is this process's.
var host hostAddresses

// now are the addresses at this moment, as read has them: net.InterfaceAddrs. If they cannot be told, they are those before, and the
// policy's fixed ranges still hold.
func (h *hostAddresses) now(read func() ([]net.Addr, error)) []netip.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if changed := h.changed(); !changed && !h.stale {
		return h.own
	}
	found, err := read()
	if h.stale = err != nil; !h.stale {
		h.own = addressesOf(found)
	}
	return h.own
}

// changed reports whether they may have changed since it was called last.
func (h *hostAddresses) changed() bool {
	if h.changes == 0 {
		fd, err := watchAddresses()
		if err != nil {
			return true
		}
		h.changes = fd
		return true
	}
	changed := false
	for {
		var message [4096]byte
		switch _, _, err := unix.Recvfrom(h.changes, message[:], unix.MSG_DONTWAIT); err {
		case unix.EAGAIN:
			return changed
		case nil, unix.ENOBUFS: // some were lost
			changed = true
		case unix.EINTR:
		default:
			return true
		}
	}
}

func watchAddresses() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR}); err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

func addressesOf(found []net.Addr) (own []netip.Addr) {
	for _, a := range found {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr())
		}
	}
	return own
}
