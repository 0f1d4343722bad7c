package worker

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// saturatedShare is the busy share of the machine's processors from which another sandbox would only take time from
// those that run.
const saturatedShare = 0.9

// freshFor is how long a sample may lie back to measure from it.
const freshFor = 500 * time.Millisecond

// load measures how busy the machine's processors are. sample is called by one goroutine at a time.
type load struct {
	read        func() (busy, total uint64, ok bool)
	busy, total uint64
	at          atomic.Int64 // when it was sampled last, Unix nanoseconds
	high        atomic.Bool
}

func newLoad(read func() (busy, total uint64, ok bool)) *load { return &load{read: read} }

// sample measures since the sample before; after a pause it begins anew.
func (l *load) sample(now time.Time) {
	busy, total, ok := l.read()
	if !ok {
		return
	}
	passed := total - l.total
	fresh := !l.stale(now) && passed > 0
	l.high.Store(fresh && float64(busy-l.busy) >= saturatedShare*float64(passed))
	l.busy, l.total = busy, total
	l.at.Store(now.UnixNano())
}

// stale reports whether the last sample is too old to say anything of now.
func (l *load) stale(now time.Time) bool { return now.UnixNano()-l.at.Load() >= int64(freshFor) }

func (l *load) saturated() bool { return l.high.Load() }

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
