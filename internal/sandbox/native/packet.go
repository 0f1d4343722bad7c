package native

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// datagram is a UDP packet with its IP header taken apart.
type datagram struct {
	from, to netip.AddrPort
	payload  []byte
}

// Header lengths.
const (
	ip4Header = 20
	ip6Header = 40
	udpHeader = 8
)

// parsePacket reads an IP packet that holds a whole UDP datagram.
func parsePacket(b []byte) (datagram, bool) {
	if len(b) == 0 {
		return datagram{}, false
	}
	switch b[0] >> 4 {
	case 4:
		return parsePacket4(b)
	case 6:
		return parsePacket6(b)
	}
	return datagram{}, false
}

func parsePacket4(b []byte) (datagram, bool) {
	header := int(b[0]&0xf) * 4
	if header < ip4Header || len(b) < header || b[9] != unix.IPPROTO_UDP {
		return datagram{}, false
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	if fragment := binary.BigEndian.Uint16(b[6:]) &^ 0x4000; fragment != 0 || total < header || total > len(b) {
		return datagram{}, false
	}
	return parseUDP(b[header:total], netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])))
}

func parsePacket6(b []byte) (datagram, bool) {
	if len(b) < ip6Header || b[6] != unix.IPPROTO_UDP {
		return datagram{}, false
	}
	total := ip6Header + int(binary.BigEndian.Uint16(b[4:]))
	if total > len(b) {
		return datagram{}, false
	}
	return parseUDP(b[ip6Header:total], netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])))
}

func parseUDP(b []byte, from, to netip.Addr) (datagram, bool) {
	if len(b) < udpHeader || int(binary.BigEndian.Uint16(b[4:])) != len(b) {
		return datagram{}, false
	}
	return datagram{
		from:    netip.AddrPortFrom(from, binary.BigEndian.Uint16(b)),
		to:      netip.AddrPortFrom(to, binary.BigEndian.Uint16(b[2:])),
		payload: b[udpHeader:],
	}, true
}

// packet is the IP packet of d. Both addresses must be of one family.
func (d datagram) packet() []byte {
	length := udpHeader + len(d.payload)
	var header []byte
	if d.from.Addr().Is4() {
		header = d.header4(length)
	} else {
		header = d.header6(length)
	}
	udp := make([]byte, udpHeader, length)
	binary.BigEndian.PutUint16(udp, d.from.Port())
	binary.BigEndian.PutUint16(udp[2:], d.to.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(length))
	udp = append(udp, d.payload...)
	sum := addWords(uint32(length)+unix.IPPROTO_UDP, d.from.Addr().AsSlice())
	sum = addWords(addWords(sum, d.to.Addr().AsSlice()), udp)
	check := ^fold(sum)
	if check == 0 {
		check = 0xffff // 0 says that there is none
	}
	binary.BigEndian.PutUint16(udp[6:], check)
	return append(header, udp...)
}

const hopLimit = 64

func (d datagram) header4(length int) []byte {
	h := make([]byte, ip4Header, ip4Header+length)
	h[0], h[8], h[9] = 0x45, hopLimit, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(h[2:], uint16(ip4Header+length))
	copy(h[12:], d.from.Addr().AsSlice())
	copy(h[16:], d.to.Addr().AsSlice())
	binary.BigEndian.PutUint16(h[10:], ^fold(addWords(0, h)))
	return h
}

func (d datagram) header6(length int) []byte {
	h := make([]byte, ip6Header, ip6Header+length)
	h[0], h[6], h[7] = 0x60, unix.IPPROTO_UDP, hopLimit
	binary.BigEndian.PutUint16(h[4:], uint16(length))
	copy(h[8:], d.from.Addr().AsSlice())
	copy(h[24:], d.to.Addr().AsSlice())
	return h
}

// addWords adds the 16-bit words of b for the internet checksum.
func addWords(sum uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

func fold(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
