package worker

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// saturatedShare is the busy share of the machine's processors from which another sandbox would only take time from
// those that run.
const saturatedShare = 0.9

// freshFor is how long a sample may lie back to measure from it.
const freshFor = 500 * time.Millisecond

// window is how many samples back a share is measured from: ticks of the clock are too coarse for fewer.
const window = 2

// load measures how busy the machine's processors are.
type load struct {
	read  func() (busy, total uint64, ok bool)
	began time.Time     // at counts from here: the system clock may be set back
	at    atomic.Int64  // when it was sampled last, in nanoseconds; 0: never
	share atomic.Uint64 // of the processors that is busy: the bits of a float64
	mean  atomic.Uint64 // a share as bits, averaged over recent samples
	known atomic.Bool   // there were samples enough, a short time apart

	mu   sync.Mutex // guards last
	last []ticks    // the newest last, each fresh for the one after it
}

// lateFor is over how long a mean is taken.
const lateFor = 2 * time.Second

// ticks is the time that all processors spent up to a moment.
type ticks struct{ busy, total uint64 }

// share is what was busy of the time up to another moment.
func (t ticks) share(to ticks) float64 {
	return float64(to.busy-t.busy) / max(1, float64(to.total-t.total))
}

func newLoad(read func() (busy, total uint64, ok bool)) *load {
	return &load{read: read, began: time.Now()}
}

// sample measures the load over the window, unless another goroutine just did. After a pause it starts over.
func (l *load) sample(now time.Time) {
	if !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	passed := l.age(now)
	if passed < tickEvery/2 {
		return
	}
	busy, total, ok := l.read()
	if !ok {
		return
	}
	to := ticks{busy, total}
	if n := len(l.last); n > 0 {
		mean := l.late()
		mean += (l.last[n-1].share(to) - mean) * min(1, passed.Seconds()/lateFor.Seconds())
		l.mean.Store(math.Float64bits(mean))
	}
	if l.stale(now) {
		l.last = l.last[:0]
	}
	known := len(l.last) == window
	if known {
		l.share.Store(math.Float64bits(l.last[0].share(to)))
		l.last = append(l.last[:0], l.last[1:]...)
	}
	l.last = append(l.last, to)
	l.known.Store(known)
	l.at.Store(int64(now.Sub(l.began)))
}

// age is how long ago it was sampled last.
func (l *load) age(now time.Time) time.Duration {
	at := l.at.Load()
	if at == 0 {
		return math.MaxInt64
	}
	return now.Sub(l.began) - time.Duration(at)
}

// busy is the share of the processors that is in use; ok is false if that is not known.
func (l *load) busy(now time.Time) (share float64, ok bool) {
	return math.Float64frombits(l.share.Load()), l.known.Load() && !l.stale(now)
}

// late is the recent average share of busy processors.
func (l *load) late() float64 { return math.Float64frombits(l.mean.Load()) }

// stale reports whether the last sample is too old to say anything of now.
func (l *load) stale(now time.Time) bool { return l.age(now) >= freshFor }

// saturated reports whether what would be one more than running would probably find no processor. As long as nothing is
// known, each of those that run is taken to occupy one.
func (l *load) saturated(now time.Time, running int) bool {
	if share, ok := l.busy(now); ok {
		return share >= saturatedShare
	}
	return running > runtime.GOMAXPROCS(0)
}

// The busy shares of the processors, now or recently, from which activations slow each other down and no further sandbox
// starts for speculative runs. A start takes the time of many activations, and the processors are soon as busy as
// recently.
const (
	crowdedShare = 0.5
	crowdedLate  = 0.35
	pressedLate  = 0.5  // hardly one is for the others
	packedLate   = 0.85 // they wait for processors rather than for sandboxes
)

// pressure is what the processors leave to the start of a sandbox.
type pressure struct {
	crowded   bool // too busy to start a sandbox for speculative runs
	pressed   bool // or for a few that came at once
	packed    bool // or for those that often wait
	saturated bool // they are all in use
}

// pressure tells it for a number of sandboxes that run.
func (l *load) pressure(now time.Time, running int) pressure {
	p := pressure{crowded: l.crowded(now), saturated: l.saturated(now, running)}
	p.pressed = p.crowded && l.late() > pressedLate
	p.packed = p.crowded && l.late() >= packedLate
	return p
}

// crowded reports whether the processors are too busy to prepare speculative runs; an unknown load is not.
func (l *load) crowded(now time.Time) bool {
	share, ok := l.busy(now)
	return ok && (share > crowdedShare || l.late() > crowdedLate)
}

// lasting is the share of busy processors if the load will last, else 0. On processors that were recently idle, a few
// invocations have come at once, and speculation ends them sooner. An unknown load is 0.
func (l *load) lasting(now time.Time) float64 {
	share, ok := l.busy(now)
	if !ok || l.late() <= crowdedLate {
		return 0
	}
	return share
}

// calmEvery is how often is measured where it would take a while until anything followed from it; less than freshFor.
const calmEvery = 4 * tickEvery

// due reports whether it is time for another sample.
func (l *load) due(now time.Time) bool {
	every := calmEvery
	if l.late() > crowdedLate {
		every = tickEvery
	}
	return l.age(now) >= every
}

// Load returns the present and recent load of the node, as it concerns a namespace.
func (w *Worker) Load(namespace string) forerun.Load {
	now := time.Now()
	if w.load.due(now) {
		w.load.sample(now)
	}
	return forerun.Load{Busy: w.load.lasting(now), Processors: runtime.GOMAXPROCS(0), Waiting: w.late.Load().stops(namespace)}
}

// tick is the unit of /proc/stat (USER_HZ).
const tick = 10 * time.Millisecond

// Spent tells what was spent of the processors; known is false if that is not measured here.
func (w *Worker) Spent() (s forerun.Spent, known bool) {
	var self syscall.Rusage
	inside, known := w.config.Maker.Spent()
	busy, total, ok := w.load.read()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil || !known || !ok {
		return s, false
	}
	own := inside + time.Duration(self.Utime.Nano()+self.Stime.Nano())
	s = forerun.Spent{Own: own, All: time.Duration(busy) * tick, Whole: time.Duration(total) * tick}
	s.Sandboxes, s.Starting = w.starts()
	return s, true
}

// starts tells how many sandboxes were begun or given their code, and for how many of them that goes on.
func (w *Worker) starts() (begun, now int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now = w.starting
	for _, s := range w.shelves {
		now += s.starting
	}
	return w.lastSandbox + int(w.counters.Prewarmed), now
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
