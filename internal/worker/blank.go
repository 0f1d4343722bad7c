package worker

import (
	"context"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// Sandboxes without code: their language's runtime was started and said Hello, and nothing else has happened in them. The
// next action of the language that has no sandbox takes one and loads its code into it. They are made while nothing else
// starts, for languages that are in use, and are the first to go when room is short.

// blankMemory is the memory limit of a blank sandbox in MiB: the default limit of actions. A language that tells its
// processes their limit at the start can serve only actions with this limit from a blank sandbox.
var blankMemory = forerun.DefaultLimits().Memory

// blankWeight is the CPU weight of a blank sandbox. Sandboxes with a waiting activation come first.
const blankWeight = sandbox.DefaultCPUWeight / 10

// shelf is the sandboxes without code of one language. Guarded by Worker.mu.
type shelf struct {
	sandboxes []*pooledSandbox // that wait for code
	starting  int
	used      time.Time // when a sandbox of the language was needed last
}

func (w *Worker) shelf(l *language) *shelf {
	s := w.shelves[l]
	if s == nil {
		s = new(shelf)
		w.shelves[l] = s
	}
	return s
}

// blanks is how many sandboxes have no code, those that start included.
func (w *Worker) blanks() (n int) {
	for _, s := range w.shelves {
		n += len(s.sandboxes) + s.starting
	}
	return n
}

// blankFor finds a sandbox without code that fits a pool.
func (w *Worker) blankFor(p *pool) *pooledSandbox {
	s := w.shelves[p.language]
	if s == nil || len(s.sandboxes) == 0 || p.language.launched && p.action.Limits.Memory != blankMemory {
		return nil
	}
	return s.sandboxes[0]
}

// pinchedFor is how long no sandbox without code is made after one had to make room.
const pinchedFor = 10 * time.Second

// refillLater is how long a shelf that is not empty waits for its next sandbox while the processors are crowded.
const refillLater = 5 * time.Second

// refill makes one more sandbox without code, if one is missing and nothing else is to do.
func (w *Worker) refill() {
	now := time.Now()
	if w.closing || w.starting > 0 || len(w.hungry) > 0 || now.Sub(w.pinched) < pinchedFor {
		return
	}
	for l, s := range w.shelves {
		switch {
		case s.starting > 0:
			return
		case len(s.sandboxes) >= w.blanksOf(l) || !w.inUse(l, s):
		case len(s.sandboxes) > 0 && w.load.crowded(now) && now.Sub(s.used) < refillLater:
			w.tickLater()
		default:
			w.startBlank(l, s)
			return
		}
	}
}

// blanksOf is how many a language is to have: where a process serves many activations one is enough, and it is larger.
func (w *Worker) blanksOf(l *language) int {
	if l.launched {
		return min(1, w.config.Prewarm)
	}
	return w.config.Prewarm
}

// inUse reports whether a language has sandboxes, or had to start one not long ago.
func (w *Worker) inUse(l *language, s *shelf) bool {
	if time.Since(s.used) < w.config.KeepAlive {
		return true
	}
	for _, p := range w.pools {
		if p.language == l {
			return true
		}
	}
	return false
}

func (w *Worker) startBlank(l *language, s *shelf) {
	bytes := int64(blankMemory) << 20
	if w.sandboxes >= w.config.MaxSandboxes || w.charged+bytes > w.limit {
		return
	}
	b := w.newSandbox(l)
	w.charge(b, bytes)
	s.starting++
	w.alive.Go(b.liveBlank)
}

// shelve puts a sandbox whose runtime has said Hello on its shelf.
func (w *Worker) shelve(b *pooledSandbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.shelf(b.language)
	s.starting--
	b.state, b.since = sandboxBlank, time.Now()
	if b.measured > 0 {
		w.charge(b, b.measured)
	}
	s.sandboxes = append(s.sandboxes, b)
	w.feedHungry()
	w.refill()
}

// unshelve removes a sandbox from its shelf, or from the count of blank sandboxes that are starting.
func (w *Worker) unshelve(b *pooledSandbox) {
	s := w.shelf(b.language)
	if i := slices.Index(s.sandboxes, b); i >= 0 {
		s.sandboxes = slices.Delete(s.sandboxes, i, i+1)
	} else {
		s.starting--
	}
}

// liveBlank is the life of a sandbox that starts without code.
func (b *pooledSandbox) liveBlank() {
	began := time.Now()
	ctx, cancel := context.WithTimeout(b.stopped, startLimit)
	err := b.start(ctx, blankMemory, blankWeight)
	cancel()
	if err != nil {
		b.w.failedBlank(b, err)
		b.close()
		return
	}
	b.cost, b.blank = time.Since(began), true
	b.measure()
	b.w.shelve(b)
	if b.awaitCode() {
		b.live()
		return
	}
	b.close()
}

// failedBlank removes a sandbox whose runtime did not start. The next attempt follows after a while.
func (w *Worker) failedBlank(b *pooledSandbox, err error) {
	if w.stopped.Err() == nil {
		w.config.Log.Error("a sandbox for later could not be started", "error", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pinched = time.Now()
	w.forget(b)
	w.feedHungry()
}

// awaitCode waits until a pool adopts the sandbox, and reports whether one did.
func (b *pooledSandbox) awaitCode() bool {
	keep := time.NewTimer(b.w.config.KeepAlive)
	defer keep.Stop()
	for {
		select {
		case <-b.adopted:
			return true
		case <-b.leave:
			return false
		case <-keep.C:
			if b.w.wantsBlank(b) {
				keep.Reset(b.w.config.KeepAlive)
				continue
			}
		case <-b.dead:
		case <-b.stopped.Done():
		}
		return b.w.retireBlank(b)
	}
}

// wantsBlank reports whether a blank sandbox should be kept.
func (w *Worker) wantsBlank(b *pooledSandbox) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inUse(b.language, w.shelf(b.language))
}

// retireBlank removes a blank sandbox. It reports true if a pool adopted the sandbox meanwhile.
func (w *Worker) retireBlank(b *pooledSandbox) (adopted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.pool() != nil {
		return true
	}
	w.forget(b)
	return false
}

// replace reports whether a sandbox had no code yet, so that its end is not the code's fault. Its waiting activations
// get a new sandbox. Another blank one could end in the same way.
func (w *Worker) replace(b *pooledSandbox) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !b.blank || w.closing {
		return false
	}
	if p := b.pool(); len(p.queue) > 0 {
		w.forget(b)
		fresh := w.newSandbox(p.language)
		p.adopt(fresh)
		w.alive.Go(fresh.live)
	}
	return true
}

// fit gives a sandbox that was started for any action the limits of the one that has adopted it.
func (b *pooledSandbox) fit(ctx context.Context) error {
	return b.sandbox.Limit(ctx, sandbox.Limits{Owner: b.pool().key.namespace, MemoryMiB: b.pool().action.Limits.Memory, CPUWeight: b.startWeight()})
}
