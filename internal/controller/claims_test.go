package controller

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// crossing is a sequence whose second function counts ahead of its first, which waits in each invocation until the test lets it go on.
type crossing struct {
	*town
	sequence *forerun.Action
	ahead    atomic.Bool
	counted  atomic.Bool      // the first has
	goOn     [2]chan struct{} // by invocation: the first, and one that begins later
}

func newCrossing(t *testing.T) *crossing {
	c := &crossing{town: newAheadTown(t), goOn: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
	c.function("a", func(_ *forerun.Run, input map[string]any) (any, error) {
		if c.ahead.Load() {
			<-c.goOn[int(input["who"].(float64))]
		}
		return input, nil
	})
	c.function("b", func(run *forerun.Run, input map[string]any) (any, error) {
		_, err := c.do(run, "INCR", "k")
		c.counted.Store(c.ahead.Load())
		return input, err
	})
	c.claims.patience = time.Hour // the machine may be slow
	c.sequence = c.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	for who := range c.goOn {
		c.invokeAhead(c.sequence, fmt.Sprintf(`{"who":%d}`, who))
	}
	c.ahead.Store(true)
	return c
}

// begin begins one of the invocations, and returns when its second function has counted, or waits for that of the first.
func (c *crossing) begin(who int) *Invocation {
	i := c.Invoke(Request{Namespace: "ns", Subject: "ada", Action: c.sequence, Input: json.RawMessage(fmt.Sprintf(`{"who":%d}`, who)), Blocking: true})
	for !c.counted.Load() || who > 0 && !c.isAwaited() {
		runtime.Gosched()
	}
	return i
}

// isAwaited tells whether somebody waits for what the first is to write.
func (c *crossing) isAwaited() bool {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	first := c.claims.of[forerun.Key{Space: "ns", Name: "k"}]
	return len(first) > 0 && first[0].over != nil
}

// end lets an invocation go on to its end, and tells how often a function of it was squashed.
func (c *crossing) end(who int, i *Invocation) (squashed int) {
	close(c.goOn[who])
	<-i.Done()
	return i.Tally().Squashed
}

// TestYoungerWaitsForOlder: a function that reads a record that an older invocation is to write finds the written value, and need not run again.
func TestYoungerWaitsForOlder(t *testing.T) {
	c := newCrossing(t)
	first, second := c.begin(0), c.begin(1)
	if a, b := c.end(0, first), c.end(1, second); a != 0 || b != 0 {
		t.Errorf("of the older %d were squashed, of the younger %d", a, b)
	}
	if got := c.others(t, "GET k"); string(got.Text) != "4" {
		t.Errorf("counted to %s", got.Text)
	}
	if line := c.written[3][1].Timeline; line.Stalled == nil || line.Held <= 0 {
		t.Errorf("of what waited it says %+v", line)
	}
}

// TestYoungerWhoseTurnIsFirst does not wait any more. The older one has counted too early.
func TestYoungerWhoseTurnIsFirst(t *testing.T) {
	c := newCrossing(t)
	first, second := c.begin(0), c.begin(1)
	if b, a := c.end(1, second), c.end(0, first); a != 1 || b != 0 {
		t.Errorf("of the older %d were squashed, of the younger %d", a, b)
	}
	if got := c.others(t, "GET k"); string(got.Text) != "4" {
		t.Errorf("counted to %s", got.Text)
	}
}

func TestClaims(t *testing.T) {
	keys := func(names ...string) (all []forerun.Key) {
		for _, name := range names {
			all = append(all, forerun.Key{Space: "ns", Name: name})
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) {
		c := newClaims()
		add := func(age uint64) map[forerun.Key]*claim {
			own := make(map[forerun.Key]*claim)
			c.add(age, own, keys("k"))
			return own
		}
		begin := time.Now()
		oldest, old := add(1), add(2)
		if c.add(1, oldest, keys("k", "k", "l")); len(c.of[keys("k")[0]]) != 2 || len(oldest) != 2 {
			t.Error("a function claims a record more than once")
		}
		for _, free := range []struct {
			age  uint64
			name string
		}{{1, "k"}, {3, "other"}} {
			if c.await(free.age, keys(free.name)); time.Since(begin) != 0 {
				t.Errorf("%+v waits", free)
			}
		}
		time.AfterFunc(10*time.Millisecond, func() { c.drop(old) })
		time.AfterFunc(20*time.Millisecond, func() { c.drop(oldest) })
		if c.await(2, keys("k")); time.Since(begin) != 20*time.Millisecond {
			t.Errorf("the second waits for %v", time.Since(begin))
		}
		last := add(1)
		if c.await(3, keys("other", "k")); time.Since(begin) != 20*time.Millisecond+claimWait {
			t.Errorf("it waits for %v at most", time.Since(begin)-20*time.Millisecond)
		}
		if c.drop(last); len(c.of) != 0 {
			t.Errorf("%d records are claimed at the end", len(c.of))
		}
	})
}

// TestClaimsAreBounded: a function that asks for ever more writes gets a bounded number of claims, and none is left at its end.
func TestClaimsAreBounded(t *testing.T) {
	c, own := newClaims(), make(map[forerun.Key]*claim)
	for n := range 2 * mostClaims {
		c.add(1, own, []forerun.Key{{Space: "ns", Name: strconv.Itoa(n)}})
	}
	if len(own) != mostClaims || len(c.of) != mostClaims {
		t.Errorf("%d records are claimed", len(c.of))
	}
	if c.drop(own); len(c.of) != 0 {
		t.Errorf("%d records are claimed at the end", len(c.of))
	}
}
