package native

import (
	"bytes"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func TestPackets(t *testing.T) {
	for _, d := range []datagram{
		{addrPort("192.0.0.8:40000"), addrPort("8.8.8.8:53"), []byte("query")},
		{addrPort("8.8.8.8:53"), addrPort("192.0.0.8:40000"), []byte{}},
		{addrPort("192.0.0.8:1"), addrPort("1.1.1.1:65535"), bytes.Repeat([]byte{0xff}, 1501)},
	} {
		b := d.packet()
		got, ok := parsePacket(b)
		if !ok || got.from != d.from || got.to != d.to || !bytes.Equal(got.payload, d.payload) {
			t.Errorf("%v -> %v became %v -> %v, %v", d.from, d.to, got.from, got.to, ok)
		}
		for n := range b {
			if _, ok := parsePacket(b[:n]); ok {
				t.Errorf("%d of %d bytes of a packet are read", n, len(b))
			}
		}
	}
}

// TestChecksum checks both sums as a receiver does.
func TestChecksum(t *testing.T) {
	d := datagram{addrPort("127.0.0.1:1"), addrPort("127.0.0.1:2"), []byte{0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7}}
	b := d.packet()
	// The sum over pseudo header and datagram, checksum included, of a right packet is all ones.
	sum := addWords(uint32(udpHeader+len(d.payload))+17, b[12:20])
	if got := fold(addWords(sum, b[ipHeader:])); got != 0xffff {
		t.Errorf("UDP: %#x", got)
	}
	if got := fold(addWords(0, b[:ipHeader])); got != 0xffff {
		t.Errorf("IP: %#x", got)
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add(datagram{addrPort("192.0.0.8:40000"), addrPort("8.8.8.8:53"), []byte("query")}.packet())
	f.Add([]byte{0x4f})
	f.Fuzz(func(t *testing.T, b []byte) {
		d, ok := parsePacket(b)
		if !ok {
			return
		}
		if again, ok := parsePacket(d.packet()); !ok || again.from != d.from || again.to != d.to || !bytes.Equal(again.payload, d.payload) {
			t.Errorf("%x is read as %+v, which is read as %+v", b, d, again)
		}
	})
}

// TestDrainEnds: a process that sends without end does not delay the relay's callers.
func TestDrainEnds(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	r := &datagramRelay{packets: os.NewFile(uintptr(pair[0]), "packets"), buffer: make([]byte, maxPacket)}
	defer r.packets.Close()
	taken, packet := 0, datagram{addrPort("192.0.0.8:40000"), addrPort("8.8.8.8:53"), []byte("more")}.packet()
	send := func(datagram) {
		taken++
		if _, err := unix.Write(pair[1], packet); err != nil {
			t.Fatal(err)
		}
	}
	send(datagram{})
	if r.drain(send); taken != 1+queuedAtMost {
		t.Errorf("it took %d", taken)
	}
}
