package native

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// datagram is a UDP packet over IPv4, taken apart.
type datagram struct {
	from, to netip.AddrPort
	payload  []byte
}

// Header lengths.
const (
	ipHeader  = 20
	udpHeader = 8
)

// parsePacket reads an IPv4 packet that holds a whole UDP datagram.
func parsePacket(b []byte) (datagram, bool) {
	if len(b) < ipHeader || b[0]>>4 != 4 || b[9] != unix.IPPROTO_UDP {
		return datagram{}, false
	}
	header, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	const mayNotBeCut = 0x4000
	if fragment := binary.BigEndian.Uint16(b[6:]) &^ mayNotBeCut; fragment != 0 || header < ipHeader || total < header+udpHeader || total > len(b) {
		return datagram{}, false
	}
	udp := b[header:total]
	if int(binary.BigEndian.Uint16(udp[4:])) != len(udp) {
		return datagram{}, false
	}
	return datagram{
		from:    netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:16])), binary.BigEndian.Uint16(udp)),
		to:      netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:20])), binary.BigEndian.Uint16(udp[2:])),
		payload: udp[udpHeader:],
	}, true
}

const hopLimit = 64

// packet is the IPv4 packet of d.
func (d datagram) packet() []byte {
	length := udpHeader + len(d.payload)
	b := make([]byte, ipHeader+udpHeader, ipHeader+length)
	b[0], b[8], b[9] = 0x45, hopLimit, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(ipHeader+length))
	copy(b[12:], d.from.Addr().AsSlice())
	copy(b[16:], d.to.Addr().AsSlice())
	binary.BigEndian.PutUint16(b[10:], ^fold(addWords(0, b[:ipHeader])))
	udp := b[ipHeader:]
	binary.BigEndian.PutUint16(udp, d.from.Port())
	binary.BigEndian.PutUint16(udp[2:], d.to.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(length))
	b = append(b, d.payload...)
	sum := addWords(uint32(length)+unix.IPPROTO_UDP, b[12:ipHeader]) // the addresses are summed too
	check := ^fold(addWords(sum, b[ipHeader:]))
	if check == 0 {
		check = 0xffff // 0 says that there is none
	}
	binary.BigEndian.PutUint16(udp[6:], check)
	return b
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
