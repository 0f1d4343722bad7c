package wire

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Addresses of the two ends of the long way.
const (
	serverIP  = "10.77.0.1"
	clientIP  = "10.77.0.2"
	roundTrip = 50 * time.Millisecond
)

// wire joins two network devices: what one gets the other gives out after a delay.
type wire struct{ a, b int }

// newWire makes the devices, in this process's network.
func newWire(a, b string) (w wire, err error) {
	if w.a, err = newTUN(a); err != nil {
		return w, err
	}
	if w.b, err = newTUN(b); err != nil {
		return w, errors.Join(err, unix.Close(w.a))
	}
	return w, nil
}

func newTUN(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("a network device cannot be made: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return 0, errors.Join(fmt.Errorf("the network device %s cannot be made: %w", name, err), unix.Close(fd))
	}
	return fd, nil
}

// run passes packets on, for as long as the process lives.
func (w wire) run(delay time.Duration) {
	go pump(w.a, w.b, delay)
	go pump(w.b, w.a, delay)
}

type packet struct {
	due  time.Time
	data []byte
}

// pump passes packets of one direction on. It holds a thread: Go's timers are late by up to a millisecond.
func pump(in, out int, delay time.Duration) {
	runtime.LockOSThread()
	var waiting []packet
	buffer := make([]byte, 1<<16)
	for {
		for {
			n, err := unix.Read(in, buffer)
			if err != nil {
				break
			}
			waiting = append(waiting, packet{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)})
		}
		for len(waiting) > 0 && !time.Now().Before(waiting[0].due) {
			_, _ = unix.Write(out, waiting[0].data) // a packet that is lost
			waiting = waiting[1:]
		}
		wait(in, waiting)
	}
}

// wait waits for a packet, or until the first one that waits is due.
func wait(in int, waiting []packet) {
	var until *unix.Timespec
	if len(waiting) > 0 {
		left := unix.NsecToTimespec(max(0, time.Until(waiting[0].due).Nanoseconds()))
		until = &left
	}
	ready := unix.PollFd{Fd: int32(in), Events: unix.POLLIN}
	_, _, _ = unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&ready)), 1, uintptr(unsafe.Pointer(until)), 0, 0, 0)
}

// ip runs the commands of the program ip, one a line.
func ip(commands string) error {
	for line := range strings.Lines(strings.TrimSpace(commands)) {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.TrimSpace(line), err, out)
		}
	}
	return nil
}
