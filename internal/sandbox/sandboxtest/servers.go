package sandboxtest

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// echoTCP serves on a fresh port of the address until the test ends.
func echoTCP(t *testing.T, address string) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l, l.Addr().(*net.TCPAddr).Port
}

func echoUDP(t *testing.T, address string) int {
	t.Helper()
	l, err := net.ListenPacket("udp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = l.WriteTo(b[:n], from)
		}
	}()
	return l.LocalAddr().(*net.UDPAddr).Port
}

// silentTCP listens on a port whose queue is full, so that further connects get no answer.
func silentTCP(t *testing.T, address [4]byte) int {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(err)
	t.Cleanup(func() { unix.Close(l) })
	must(unix.Bind(l, &unix.SockaddrInet4{Addr: address}))
	must(unix.Listen(l, 0))
	name, err := unix.Getsockname(l)
	must(err)
	for range 4 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		must(err)
		t.Cleanup(func() { unix.Close(c) })
		if err := unix.Connect(c, name); err != unix.EINPROGRESS {
			must(err)
		}
	}
	return name.(*unix.SockaddrInet4).Port
}

// connecting counts the host's sockets that wait for this address to answer.
func connecting(address string, port int) int {
	ip := netip.MustParseAddr(address).As4()
	peer := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], port)
	table, _ := os.ReadFile("/proc/net/tcp")
	count := 0
	for line := range strings.Lines(string(table)) {
		const synSent = "02"
		if f := strings.Fields(line); len(f) > 9 && f[2] == peer && f[3] == synSent {
			count++
		}
	}
	return count
}
