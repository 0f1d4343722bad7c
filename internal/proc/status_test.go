package proc

import (
	"os"
	"testing"
)

func TestStatus(t *testing.T) {
	s := Status("Name:\tTgid:\nTgid:\t7\nNSpid:\t9\t2\nNSpgid:\t9\nThreads: 1\nRssAnon:\t  123 kB\nThreads:\t7\nSigPnd:\t0000000000000140\nEmpty:\nRss")
	for name, want := range map[string]struct {
		field     string
		number    uint64
		innermost int
	}{
		"Tgid": {"7", 7, 7}, "NSpid": {"9\t2", 0, 2}, "NSpgid": {"9", 9, 9}, "Threads": {"1", 1, 1}, "RssAnon": {"123 kB", 123, 0},
		"NStgid": {}, "Empty": {}, "Name": {"Tgid:", 0, 0}, "Rss": {},
	} {
		if got := s.Field(name); got != want.field {
			t.Errorf("%s: %q; want %q", name, got, want.field)
		}
		if number, innermost := s.Number(name), s.Innermost(name); number != want.number || innermost != want.innermost {
			t.Errorf("%s: %d and %d; want %+v", name, number, innermost, want)
		}
	}
	if got := s.Signals("SigPnd"); got != 0x140 || s.Signals("ShdPnd") != 0 {
		t.Errorf("signals %x", got)
	}
	if own, err := ReadStatus(os.Getpid()); err != nil || own.Number("Pid") != uint64(os.Getpid()) {
		t.Errorf("%s: %v", own, err)
	}
	if none, err := ReadStatus(-1); err == nil {
		t.Errorf("%s", none)
	}
}
