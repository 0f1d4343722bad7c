package speculate

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
)

// Predictor holds the lessons of a tenant's committed slots: the usual outcome of branches (SpecFaaS, section V.C), and
// reads that come too early (V.D). Many machines may call its methods at once. It is bounded; forgotten lessons are
// learnt again.
type Predictor struct {
	mu       sync.Mutex // guards what follows
	branches map[Branch]*branchTable
	paths    int // of all branches
	blamed   map[blame]*listing
	families map[pair]*family
	own      atomic.Int32 // entries of blamed that are slots of the same invocation; changed with mu held
	others   atomic.Int32 // entries of blamed that are the writes of other clients; changed with mu held
}

// The bounds of a predictor.
const (
	maxBranches = 4096
	maxPaths    = 64     // of one branch
	maxAllPaths = 16_384 // of all
	maxWays     = 16     // of one path
	maxBlames   = 4096
	maxName     = 1024 // bytes of the name of a record that is blamed
)

// branchTable counts the outcomes of one branch: by the path that led to it, and of all paths.
type branchTable struct {
	all   ways
	paths map[uint64]*ways
	doubt // of all paths: a client with new paths could otherwise be wrong on each
}

// ways are the outcomes of a branch on a path, with their counts.
type ways struct {
	counts []way
	doubt
}

type way struct {
	next  int
	count int
	value json.RawMessage
}

// NewPredictor returns one that knows nothing.
func NewPredictor() *Predictor {
	p := &Predictor{branches: make(map[Branch]*branchTable)}
	p.pardon()
	return p
}

// fewOnPath is the number of outcomes on a path from which on they decide, and not the outcomes of all paths.
const fewOnPath = 3

// Predict returns a result that leads the way that a branch mostly goes on a path, if that has at least the share likely.
func (p *Predictor) Predict(b Branch, path uint64, likely float64) (value json.RawMessage, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.branches[b]
	if t == nil {
		return nil, false
	}
	w := t.asked(path)
	if best := w.likeliest(likely); best != nil && t.believes(w) {
		return best.value, true
	}
	return nil, false
}

// believes tells whether what ways say is predicted: nothing is owed for it, nor for the branch.
func (t *branchTable) believes(w *ways) bool { return w.owed == 0 && t.owed == 0 }

// asked are the ways that tell where a branch goes on a path.
func (t *branchTable) asked(path uint64) *ways {
	if w := t.paths[path]; w != nil && w.total() >= fewOnPath {
		return w
	}
	return &t.all
}

func (w *ways) total() (n int) {
	for i := range w.counts {
		n += w.counts[i].count
	}
	return n
}

// likeliest is the way with the most outcomes, if that has at least the share likely; else nil.
func (w *ways) likeliest(likely float64) (best *way) {
	for i := range w.counts {
		if best == nil || w.counts[i].count > best.count {
			best = &w.counts[i]
		}
	}
	if best == nil || float64(best.count) < likely*float64(w.total()) {
		return nil
	}
	return best
}

// Learn counts the outcome of a committed slot.
func (p *Predictor) Learn(o Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.branches[o.Branch]
	if t == nil {
		if len(p.branches) >= maxBranches {
			p.dropBut(nil)
		}
		t = &branchTable{paths: make(map[uint64]*ways)}
		p.branches[o.Branch] = t
	}
	w := t.paths[o.Path]
	if w == nil {
		for path := range t.paths {
			if len(t.paths) < maxPaths {
				break
			}
			delete(t.paths, path)
			p.paths--
		}
		if p.paths >= maxAllPaths {
			p.dropBut(t)
		}
		w = new(ways)
		t.paths[o.Path] = w
		p.paths++
	}
	asked := t.asked(o.Path)
	if best := asked.likeliest(o.Likely); best != nil {
		right, made := best.next == o.Next && !o.Misled, t.believes(asked)
		asked.judge(right, made)
		t.judge(right, made)
	}
	w.count(o)
	t.all.count(o)
}

// When counts are halved, so that a branch that has changed its ways is believed. Of inputs that are new it changes soon: first all are.
const (
	maxCount    = 256
	maxCountNew = 64
)

func (w *ways) count(o Outcome) {
	most := maxCount
	if o.Branch.Input == Unseen {
		most = maxCountNew
	}
	for i := range w.counts {
		if c := &w.counts[i]; c.next == o.Next {
			c.value = o.Value
			if c.count++; c.count >= most {
				w.halve()
			}
			return
		}
	}
	if len(w.counts) < maxWays {
		w.counts = append(w.counts, way{next: o.Next, count: 1, value: o.Value})
	}
}

func (w *ways) halve() {
	for i := range w.counts {
		w.counts[i].count /= 2
	}
}

// dropBut drops some other branch than one, with its paths. mu is held.
func (p *Predictor) dropBut(kept *branchTable) {
	for b, t := range p.branches {
		if t != kept {
			p.paths -= len(t.paths)
			delete(p.branches, b)
			return
		}
	}
}

// blame names the parties of an early read: a consumer read a record before a producer of its invocation, or another
// client, wrote it.
type blame struct {
	producer, consumer forerun.Digest
	key                forerun.Key
	others             bool
}

// listing is the state of a stalled read.
type listing struct {
	squashes int // since it was listed last, or forgiven
	trusted  int // how often such a read went well, since its last squash
	stalls   int // that are left, if it is listed
	listings int // of a read that others come before, since it was forgiven
}

// A read is stalled after some squashes, for a number of times; then it is tried again. Reads that went well forgive the squashes. Other
// invocations' writers come and go: for these a read is stalled a few times, and twice as often each time that this was too few.
const (
	squashesToStall = 3
	stallsToRetry   = 100
	firstStalls     = 5
	trustToForgive  = 20
)

// squash counts a squash, and lists the read if there were enough.
func (l *listing) squash(others bool) {
	if l.trusted >= trustToForgive {
		l.squashes, l.listings = 0, 0
	}
	l.trusted = 0
	if l.squashes++; l.squashes >= squashesToStall && l.stalls == 0 {
		l.list(others)
	}
}

func (l *listing) list(others bool) {
	l.stalls = stallsToRetry
	if others {
		l.stalls = min(stallsToRetry, firstStalls<<min(l.listings, 10))
		l.listings++
	}
}

// Blame counts a squash that a read which came too early has caused.
func (p *Predictor) Blame(b Blame) {
	if len(b.Key.Name) > maxName {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := blame{b.Producer, b.Consumer, b.Key, b.Others}
	l := p.blamed[key]
	if l == nil {
		if len(p.blamed) >= maxBlames {
			p.pardon()
		}
		l = new(listing)
		p.blamed[key] = l
		p.counted(b.Others).Add(1)
	}
	l.squash(b.Others)
	if !b.Others {
		p.blameFamily(b)
	}
}

// counted is how many blames there are that are others', or not.
func (p *Predictor) counted(others bool) *atomic.Int32 {
	if others {
		return &p.others
	}
	return &p.own
}

// pardon forgets all early reads. The caller holds mu, or has the only reference to the predictor.
func (p *Predictor) pardon() {
	p.blamed, p.families = make(map[blame]*listing), make(map[pair]*family)
	p.own.Store(0)
	p.others.Store(0)
}

// listed is what stalls a read; nil: nothing does. mu is held.
func (p *Predictor) listed(b blame) *listing {
	if l := p.blamed[b]; l != nil && l.stalls > 0 {
		return l
	}
	if l := p.familyOf(b); l != nil && l.stalls > 0 {
		return l
	}
	return nil
}

// suspects tells whether a read is to be stalled, or else whether it is to be counted if it goes well. There may be no predictor.
func (p *Predictor) suspects(b blame) (listed, blamed bool) {
	if p == nil || p.counted(b.others).Load() == 0 {
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listed(b) != nil, p.blamed[b] != nil || p.familyOf(b) != nil
}

// trust counts a read that went well.
func (p *Predictor) trust(b blame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range []*listing{p.blamed[b], p.familyOf(b)} {
		if l != nil {
			l.trusted++
		}
	}
}

// spend counts a read that was stalled.
func (p *Predictor) spend(b blame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.listed(b)
	if l == nil {
		return
	}
	if l.stalls--; l.stalls == 0 {
		l.squashes = 0
	}
}
