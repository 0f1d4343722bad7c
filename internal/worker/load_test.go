package worker

import (
	"runtime"
	"testing"
	"time"
)

// metered is a maker that says what its sandboxes took of the processors.
type metered struct{ processes }

func (*metered) Spent() (time.Duration, bool) { return time.Hour, true }

func TestSpent(t *testing.T) {
	w := New(Config{Maker: new(metered)})
	s, known := w.Spent()
	if !known || s.Own <= time.Hour || s.Own > 2*time.Hour || s.All <= 0 || s.Whole <= s.All {
		t.Errorf("%+v, known: %v; want the maker's hour, and what this process took", s, known)
	}
	w.load.read = func() (busy, total uint64, ok bool) { return 0, 0, false }
	if _, known := w.Spent(); known {
		t.Error("without the machine's meter it is known")
	}
	if _, known := New(Config{Maker: new(processes)}).Spent(); known {
		t.Error("without the maker's meter it is known")
	}
}

// meter is a load whose processors a test has used.
type meter struct {
	*load
	used, whole uint64
	at          time.Time
}

func newMeter() *meter {
	m := &meter{at: time.Unix(0, 0)}
	m.load = newLoad(func() (uint64, uint64, bool) { return m.used, m.whole, true })
	return m
}

// pass has time pass, in which some of the processors' time was used, and takes a sample.
func (m *meter) pass(d time.Duration, used, whole uint64) {
	m.at, m.used, m.whole = m.at.Add(d), m.used+used, m.whole+whole
	m.sample(m.at)
}

func TestLoad(t *testing.T) {
	m := newMeter()
	for i, step := range []struct {
		after       time.Duration
		busy, total uint64
		want        bool
	}{
		{time.Hour, 100, 100, false}, // nothing to compare with
		{50 * time.Millisecond, 5, 10, false},
		{50 * time.Millisecond, 10, 10, false},
		{50 * time.Millisecond, 8, 10, true},
		{50 * time.Millisecond, 9, 10, false},
		{50 * time.Millisecond, 9, 10, true},
		{time.Second, 10, 10, false}, // too long ago
		{50 * time.Millisecond, 10, 10, false},
		{50 * time.Millisecond, 10, 10, true},
	} {
		if m.pass(step.after, step.busy, step.total); m.saturated(m.at, 0) != step.want {
			t.Errorf("step %d: %v", i, !step.want)
		}
	}
	for range 300 {
		m.pass(50*time.Millisecond, 9, 10)
	}
	for range 2 {
		m.pass(50*time.Millisecond, 0, 10)
	}
	if got := m.pressure(m.at, 0); got != (pressure{crowded: true, pressed: true, packed: true}) {
		t.Errorf("%+v; want that nearly all was in use until a moment ago", got)
	}
}

func TestCrowded(t *testing.T) {
	m := newMeter()
	for _, more := range []uint64{0, 5, 5, 0} { // of 20
		m.pass(50*time.Millisecond, more, 20)
	}
	if m.crowded(m.at) {
		t.Error("an eighth is in use")
	}
	if m.pass(50*time.Millisecond, 21, 20); !m.crowded(m.at) {
		t.Error("more than half is in use")
	}
	for range 60 {
		m.pass(50*time.Millisecond, 20, 20)
	}
	for range 2 {
		m.pass(50*time.Millisecond, 0, 20)
	}
	if !m.crowded(m.at) {
		t.Error("more than half was in use until a moment ago")
	}
	for range 60 {
		m.pass(50*time.Millisecond, 0, 20)
	}
	if m.crowded(m.at) {
		t.Error("nothing was in use of late")
	}
	if m.crowded(m.at.Add(time.Minute)) {
		t.Error("what is not known is taken for no")
	}
}

func TestLoadThatLasts(t *testing.T) {
	m := newMeter()
	pass := func(times int, used uint64) float64 {
		for range times {
			m.pass(50*time.Millisecond, used, 20)
		}
		return m.lasting(m.at)
	}
	if got := pass(60, 4); got != 0 {
		t.Errorf("%v; want nothing where a fifth is in use", got)
	}
	if got := pass(4, 20); got != 0 {
		t.Errorf("%v; want nothing for a moment in which all is in use", got)
	}
	if got := pass(20, 20); got != 1 {
		t.Errorf("%v; want all that has been in use for a second", got)
	}
	m.pass(time.Minute, 0, 24_000)
	if got := pass(3, 20); got != 0 {
		t.Errorf("%v; want nothing for a moment after a pause", got)
	}
}

func TestLoadThatNobodyMeasured(t *testing.T) {
	l := newLoad(func() (uint64, uint64, bool) { return 0, 0, true })
	processors := runtime.GOMAXPROCS(0)
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(1000, 0)} {
		if l.saturated(at, processors) || !l.saturated(at, processors+1) {
			t.Error("as many as there are processors do not saturate them, one more does")
		}
		l.sample(at)
	}
}

// TestLoadByAClockThatNobodySets: set back, the clock on the wall would have the last share count as fresh until it is where it was.
func TestLoadByAClockThatNobodySets(t *testing.T) {
	l := newLoad(func() (uint64, uint64, bool) { return 0, 0, true })
	l.sample(time.Now())
	if at := time.Duration(l.at.Load()); at <= 0 || at > time.Hour {
		t.Errorf("it was sampled %v after it was made", at)
	}
}

func TestParseStat(t *testing.T) {
	if busy, total, ok := parseStat([]byte("cpu  10 1 5 100 20 2 3 4 0 0\ncpu0 1")); busy != 25 || total != 145 || !ok {
		t.Errorf("%d %d %v", busy, total, ok)
	}
	for _, text := range []string{"", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8 9\n", "cpu a b c d e f g h\n"} {
		if _, _, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q was read", text)
		}
	}
	if _, total, ok := readProcStat(); !ok || total == 0 {
		t.Error("this machine's /proc/stat cannot be read")
	}
}
