package worker

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

// saturatedShare is the busy share of the machine's processors from which another sandbox would only take time from
// those that run.
const saturatedShare = 0.9

// freshFor is how long a sample may lie back to measure from it.
const freshFor = 500 * time.Millisecond

// window is how many samples back a share is measured from: ticks of the clock are too coarse for fewer.
const window = 2

// load measures how busy the machine's processors are. sample is called by one goroutine at a time.
type load struct {
	read  func() (busy, total uint64, ok bool)
	last  []ticks      // the newest last, each fresh for the one after it
	at    atomic.Int64 // when it was sampled last, Unix nanoseconds
	high  atomic.Bool
	known atomic.Bool // there were samples enough, a short time apart
}

// ticks is the time that all processors spent up to a moment.
type ticks struct{ busy, total uint64 }

func newLoad(read func() (busy, total uint64, ok bool)) *load { return &load{read: read} }

// sample measures over the window; after a pause it begins anew.
func (l *load) sample(now time.Time) {
	busy, total, ok := l.read()
	if !ok {
		return
	}
	if l.stale(now) {
		l.last = l.last[:0]
	}
	known := len(l.last) == window
	if known {
		passed := total - l.last[0].total
		l.high.Store(float64(busy-l.last[0].busy) >= saturatedShare*float64(passed))
		l.last = append(l.last[:0], l.last[1:]...)
	}
	l.last = append(l.last, ticks{busy, total})
	l.known.Store(known)
	l.at.Store(now.UnixNano())
}

// stale reports whether the last sample is too old to say anything of now.
func (l *load) stale(now time.Time) bool { return now.UnixNano()-l.at.Load() >= int64(freshFor) }

// saturated reports whether what would be one more than running would probably find no processor. As long as nothing is
// known, each of those that run is taken to occupy one.
func (l *load) saturated(now time.Time, running int) bool {
	if l.known.Load() && !l.stale(now) {
		return l.high.Load()
	}
	return running > runtime.GOMAXPROCS(0)
}

// readProcStat reads the time that all processors spent, in clock ticks since the start of the machine.
func readProcStat() (busy, total uint64, ok bool) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	buf := make([]byte, 512)
	n, _ := f.Read(buf) // of a short read, parseStat sees too little
	return parseStat(buf[:n])
}

// parseStat reads the first line of /proc/stat: "cpu user nice system idle iowait irq softirq steal guest guest_nice".
func parseStat(data []byte) (busy, total uint64, ok bool) {
	line, _, whole := bytes.Cut(data, []byte("\n"))
	fields := bytes.Fields(line)
	if !whole || len(fields) < 9 || string(fields[0]) != "cpu" {
		return 0, 0, false
	}
	for i, f := range fields[1:9] {
		ticks, err := strconv.ParseUint(string(f), 10, 64)
		if err != nil {
			return 0, 0, false
		}
		total += ticks
		if i != 3 && i != 4 { // idle, iowait
			busy += ticks
		}
	}
	return busy, total, true
}
