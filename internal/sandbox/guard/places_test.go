package guard

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPlaces: a socket gets what an epoll was told of another, under the number of that.
func TestPlaces(t *testing.T) {
	old := unixSocket(t)
	copied, err1 := unix.FcntlInt(uintptr(old), unix.F_DUPFD_CLOEXEC, 0)
	epoll, err2 := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	pair, err3 := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range []int{copied, epoll, pair[0], pair[1]} {
		t.Cleanup(func() { unix.Close(fd) })
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: 7, Pad: -8}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, copied, &event); err != nil {
		t.Fatal(err)
	}
	var s Supervisor
	p := s.placesOf(unix.Getpid(), caller{socket: old})
	if slices.Sort(p.numbers); !slices.Equal(p.numbers, []int{min(old, copied), max(old, copied)}) || len(p.notices) != 1 || p.notices[0].epoll != epoll {
		t.Fatalf("the places of %d, copied to %d, which %d was told of: %+v", old, copied, epoll, p)
	}
	inOwnTable(func() { p.notices[0].pass(epoll, old, pair[0]) })
	if err := unix.Dup3(pair[0], copied, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(pair[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	events := make([]unix.EpollEvent, 8)
	n, err := unix.EpollWait(epoll, events, 1000)
	if err != nil || n != 1 || events[0].Events != unix.EPOLLIN || events[0].Fd != 7 || events[0].Pad != -8 {
		t.Errorf("it tells %+v, %v", events[:max(0, n)], err)
	}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_DEL, copied, nil); err != nil {
		t.Errorf("it knows it under another number: %v", err)
	}
}

// TestPlacesAreFew: a process with copies of its socket without end gets the new one to some, and is not looked through again.
func TestPlacesAreFew(t *testing.T) {
	old := unixSocket(t)
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(epoll) })
	for range 2 * placesAtMost {
		copied, err := unix.FcntlInt(uintptr(old), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(copied) })
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, copied, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
			t.Fatal(err)
		}
	}
	var s Supervisor
	if p := s.placesOf(unix.Getpid(), caller{socket: old}); len(p.numbers)+len(p.notices) != placesAtMost || !s.crowded.Load() {
		t.Errorf("%d descriptors and what %d epolls were told, crowded: %v", len(p.numbers), len(p.notices), s.crowded.Load())
	}
	if p := s.placesOf(unix.Getpid(), caller{socket: old}); len(p.numbers)+len(p.notices) != 0 {
		t.Errorf("it was looked through again: %+v", p)
	}
}
