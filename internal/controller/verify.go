package controller

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// A share of the hits is executed again behind the answer, to compare what the execution gives and reads (annotation cache-verify). It is a rehearsal:
// it is speculative to its end and then squashed, so nothing of it leaves (C4). It takes processors that are idle, and a server has one at a
// time. A difference suspends the action.
//
// A process that stays may remember what it read for an earlier activation. So a row of it stands only once a process that had served no other has
// given the same. That is rehearsed when the input comes again, on busy processors, too.

// rehearsal is an execution that is compared with a row.
type rehearsal struct {
	namespace string
	input     []byte          // as delivered
	before    *forerun.Row    // that stands, or may once this gave the same
	row       *forerun.Row    // of the rehearsal; nil: it has shown nothing
	disturbed bool            // by others: the next one may show something
	why       *forerun.Reason // it has shown nothing; nil: it has, or that is not known
	hopeless  bool            // its code needs a promotion: the next one needs it, too
	limit     *time.Timer
}

// verifications counts rehearsals. Its zero value is ready.
type verifications struct {
	underWay atomic.Bool // a server has one at a time
	agreed   atomic.Uint64
	differed atomic.Uint64
	open     atomic.Uint64 // that have shown nothing
}

// Verifications tells how many executions behind hits agreed with the row, how many differed, and how many have shown nothing.
func (c *Controller) Verifications() (agreed, differed, open uint64) {
	v := &c.verified
	return v.agreed.Load(), v.differed.Load(), v.open.Load()
}

// firstVerified is the number of rows of each deployment for which a hit is executed again at any share above 0.
const firstVerified = 2

// samples are the first rows of each deployment of which a hit was executed again. Its zero value is ready.
type samples struct {
	mu   sync.Mutex                              // guards the rest
	of   map[forerun.Home][]forerun.ActivationID // the executions that gave the rows
	rest map[forerun.Home]rest                   // of rows that do not stand yet
}

// rest is a time in which rows are not compared, as a rehearsal has shown nothing.
type rest struct {
	until time.Time
	why   *forerun.Reason // it has not; nil: that is not known
}

// restFor is how long such rows wait, and restLong, if the code keeps the next rehearsal from showing something, too.
const (
	restFor  = time.Minute
	restLong = 24 * time.Hour
)

// rests reports whether rows of a deployment that do not stand yet have to wait before they are compared, and why, if that is known.
func (s *samples) rests(home forerun.Home, now time.Time) (why *forerun.Reason, rests bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rest[home]
	if !now.Before(r.until) {
		return nil, false
	}
	return r.why, true
}

// rested has rows of a deployment that do not stand yet wait.
func (s *samples) rested(home forerun.Home, r rest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest == nil || len(s.rest) >= maxKnown {
		s.rest = make(map[forerun.Home]rest)
	}
	s.rest[home] = r
}

// first reports whether a row is among the first of its deployment whose hits are executed again, and was not yet.
func (s *samples) first(row *forerun.Row) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.of[row.Home]
	return len(rows) < firstVerified && !slices.Contains(rows, row.By)
}

// note notes a row of which a hit was executed again, whatever that has shown.
func (s *samples) note(row *forerun.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil || len(s.of) >= maxKnown {
		s.of = make(map[forerun.Home][]forerun.ActivationID)
	}
	if rows := s.of[row.Home]; len(rows) < firstVerified && !slices.Contains(rows, row.By) {
		s.of[row.Home] = append(rows, row.By)
	}
}

// forget drops what is known of deployments that are gone.
func (s *samples) forget(isGone func(forerun.Home) bool) {
	s.mu.Lock()
	homes := slices.AppendSeq(slices.Collect(maps.Keys(s.of)), maps.Keys(s.rest))
	s.mu.Unlock()
	gone := slices.DeleteFunc(homes, func(h forerun.Home) bool { return !isGone(h) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, home := range gone {
		delete(s.of, home)
		delete(s.rest, home)
	}
}

// verify has a committed hit executed again, if it is one of the sample and the processors are free.
func (e *execution) verify(s *slot) {
	row := s.compared
	if row == nil || !s.isVerified() {
		return
	}
	if _, rests := e.c.tables.tenant(e.namespace).samples.rests(row.Home, time.Now()); row.Remembers && rests || !row.Remembers && !e.isSample(s, row) {
		return
	}
	if e.c.closing.Load() || !e.c.verified.underWay.CompareAndSwap(false, true) {
		return
	}
	r := Request{Namespace: e.namespace, Subject: e.subject, Action: s.action, Changes: s.changes, Input: s.input, Bypass: true}
	e.later(func() func() {
		e.c.rehearse(r, row)
		return func() {}
	})
}

// isVerified reports whether executions of a slot's action are compared with its rows. If not, its annotation alone answers for them.
func (s *slot) isVerified() bool { return s.cache.Verify > 0 && !s.isNonSpeculative() }

// unverified is a new row of a process that had served others. If its annotation alone answers for it, it stands. Otherwise it tells why the last
// rehearsal has shown nothing.
func (e *execution) unverified(s *slot, row *forerun.Row) *forerun.Row {
	if !s.isVerified() {
		return row.Verified()
	}
	why, _ := e.c.tables.tenant(e.namespace).samples.rests(row.Home, time.Now())
	return row.Unverified(whyOpen(why))
}

// whyOpen is the reason of a row that does not stand yet, given why the last rehearsal has shown nothing; nil: there was none, or it is not known.
func whyOpen(why *forerun.Reason) *forerun.Reason {
	if why == nil || why.Code == forerun.ReasonUnverified {
		return forerun.Because(forerun.ReasonUnverified)
	}
	return forerun.NewReason(forerun.ReasonUnverifiable, forerun.Detail{Of: why})
}

// isSample reports whether a row that stands is to be compared now.
func (e *execution) isSample(s *slot, row *forerun.Row) bool {
	if !row.Until.IsZero() || rand.Float64() >= s.cache.Verify && !e.c.tables.tenant(e.namespace).samples.first(row) {
		return false
	}
	return !e.c.isBusy(e.namespace)
}

// isBusy reports whether no processor time is left for work without a client. A server that does not tell its load has none.
func (c *Controller) isBusy(namespace string) bool {
	if c.Load == nil {
		return true
	}
	l := c.Load(namespace)
	return l.Waiting || l.Busy >= busyShare
}

// rehearse begins a rehearsal.
func (c *Controller) rehearse(r Request, before *forerun.Row) {
	e := c.newExecution(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	v := &rehearsal{namespace: r.Namespace, input: r.Input, before: before}
	v.limit = time.AfterFunc(v.atMost(time.Duration(r.Action.Limits.Timeout)*time.Millisecond), func() {
		e.tell(speculate.Cancelled{Error: "It takes much longer than the execution that it is compared with."})
	})
	e.rehearsal, e.calls[0] = v, e.newTree(r, c.newInvocation(r))
	c.setGoing(e)
	options := e.cache(r)
	e.speculation = speculate.NewSettings(speculate.All)
	e.speculation.AnyLoad = true // it is not counted among what invocations have speculative
	e.tables = c.tables.tenant(r.Namespace)
	e.memo, e.depth, e.changes = e.tables.memo, e.speculation.Depth, c.Actions.Changes()
	var first []speculate.Action
	e.machine, first = speculate.New(r.Action.Name.String(), r.Input, append(options,
		speculate.Speculate(speculate.All, e.memo, e.tables.predictor, &c.executor), speculate.Depth(e.depth), speculate.Rehearse())...)
	e.carryOut(first)
	if c.closing.Load() { // Close may have looked before it was there
		e.step(speculate.Cancelled{Error: rehearsedUntilClosed})
	}
}

// rehearsedUntilClosed is why a rehearsal is given up that Close finds.
const rehearsedUntilClosed = "The server was shut down before the rehearsal ended."

// startsAtMost is how long a rehearsal may wait for its process. One that waits for longer makes way for the others.
const startsAtMost = 30 * time.Second

// atMost is how long a rehearsal may take, given the time limit of its action. It lasts about as long as what it is compared with, if that
// called no others.
func (v *rehearsal) atMost(limit time.Duration) time.Duration {
	if len(v.before.Callees) == 0 {
		limit = min(limit, 10*v.before.Took)
	}
	return startsAtMost + limit
}

// wanted notes why a rehearsal is to end, if it is one.
func (v *rehearsal) wanted(kind forerun.SquashKind) {
	if v != nil {
		v.hopeless = kind == forerun.Failed
	}
}

// finishRehearsal compares what a rehearsal has shown.
func (e *execution) finishRehearsal() {
	v := e.rehearsal
	if v == nil {
		return
	}
	v.limit.Stop()
	delete(e.calls, 0)
	e.c.aside.Go(func() {
		defer e.c.busy.end(e.namespace)
		defer e.c.verified.underWay.Store(false)
		e.c.compareRehearsal(v)
	})
}

// compareRehearsal compares a rehearsal with the row, and suspends the action if they differ. A difference counts under two
// conditions. Both read the same versions of the records that both read. All that the row rests on is still current after the rehearsal.
func (c *Controller) compareRehearsal(v *rehearsal) {
	tables, before, now := c.tables.tenant(v.namespace), v.before, v.row
	if !before.Remembers {
		tables.samples.note(before)
	}
	switch {
	case tables.memo.Look(before.Home.Code, v.input) != before: // others have learnt more meanwhile
		c.verified.open.Add(1)
	case now == nil || !now.IsSeen() || before.Remembers && now.Remembers:
		c.verified.open.Add(1)
		if !v.disturbed && before.Remembers {
			tables.samples.rested(before.Home, v.rest())
			tables.memo.Learn(before.Home.Code, v.input, before.Unverified(whyOpen(v.why)))
		}
	case bytes.Equal(before.Output, now.Output) && slices.Equal(before.Reads, now.Reads):
		c.verified.agreed.Add(1)
		tables.uses.verified(before.Home.Action)
		if before.Remembers {
			tables.memo.Learn(before.Home.Code, v.input, verified(before, now, c.Clock.Now()))
		}
	case !before.Until.IsZero() || !c.isCurrent(v.namespace, before) || !areVersions(now.Reads, before.Reads):
		c.verified.open.Add(1)
	default:
		c.verified.differed.Add(1)
		c.suspend(v.namespace, before.Home, difference(before, now))
	}
}

// rest is how long rows are not compared after a rehearsal that has shown nothing.
func (v *rehearsal) rest() rest {
	if v.row != nil {
		v.why = v.row.Why
	}
	if v.hopeless {
		return rest{time.Now().Add(restLong), v.why}
	}
	return rest{time.Now().Add(restFor), v.why}
}

// verified is a row that a process which had served no other confirmed at a moment. A process that remembers what a callee gave does not call it:
// so it is the confirming row that tells the callees and their end.
func verified(before, now *forerun.Row, at time.Time) *forerun.Row {
	row := before.Verified()
	row.Callees, row.Below = now.Callees, now.Below
	if !now.Until.IsZero() && (row.Until.IsZero() || now.Until.Before(row.Until)) {
		row.Until = now.Until
	}
	if !row.Until.IsZero() && row.Since.IsZero() {
		row.Since = at
	}
	return row
}

// isCurrent reports whether all that a row rests on has the version that it read.
func (c *Controller) isCurrent(namespace string, row *forerun.Row) bool {
	if len(row.Reads) > 0 {
		versions, err := c.State.Versions(context.Background(), row.Keys()...)
		if err != nil {
			return false
		}
		for i, read := range row.Reads {
			if versions[i].Version != read.Version {
				return false
			}
		}
	}
	return c.areCurrent(namespace, append([]forerun.Callee{{Action: row.Home.Action, Code: row.Home.Code}}, row.Below...))
}

// areVersions reports whether two executions that read the same records read the same versions of them.
func areVersions(a, b []forerun.Seen) bool {
	for _, read := range a {
		if other := seenIn(b, read.Key); other != nil && other.Version != read.Version {
			return false
		}
	}
	return true
}

func seenIn(reads []forerun.Seen, key forerun.Key) *forerun.Seen {
	if i := slices.IndexFunc(reads, func(s forerun.Seen) bool { return s.Key == key }); i >= 0 {
		return &reads[i]
	}
	return nil
}

// difference is the reason why two executions differ: their output, or a record that one of them did not read.
func difference(a, b *forerun.Row) *forerun.Reason {
	if !bytes.Equal(a.Output, b.Output) {
		return gaveAnother(differing(a.Output, b.Output))
	}
	for _, rows := range [][2]*forerun.Row{{a, b}, {b, a}} {
		for _, read := range rows[0].Reads {
			if seenIn(rows[1].Reads, read.Key) == nil {
				return &forerun.Reason{Code: forerun.ReasonSuspendedRead, Record: forerun.ShownName(read.Key.Name)}
			}
		}
	}
	return gaveAnother("")
}
