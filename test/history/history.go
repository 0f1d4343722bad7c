// Package history shows that a door for Redis clients is linearizable: what its
// clients see, at the same time and over crashes, is what they would see if each
// command had happened at one moment between its request and its reply.
//
// It lets clients send random commands, writes down what they asked for and were
// told, and lets porcupine look for an order of the commands that explains it,
// for each record by itself (or two records that are written together). What was
// acknowledged before a crash must be there after it; what was not may be, but
// cannot come later.
//
// It imports nothing of the server: what it knows of Redis is in model.go.
package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// Door is what is tested: a store behind a door, that can crash.
type Door interface {
	// Dial connects to the store as it is now.
	Dial(ctx context.Context) (net.Conn, error)
	// Crash ends the store at once and opens again what is left of it. A reply that was not received when Crash began is
	// received by nobody. It is called while clients are at work.
	Crash() error
}

// Plan says how much is done. The same plan makes the same requests, but not the same history.
type Plan struct {
	Seed     uint64
	Clients  int      // at a time
	Lives    int      // of the store; each but the last ends with a crash
	Commands int      // in a life, of all clients
	Space    string   // begins the names of the records
	Login    []string // user and password, or nothing
}

// limit is how long the search for an order may take; it takes milliseconds.
const limit = time.Minute

// Result is what was found.
type Result struct {
	Commands   int    // that were sent
	Unanswered int    // of them: a crash came first
	Wrong      string // why the history is not linearizable; empty: it is
}

// Run lets clients work at a door, and judges what they saw. The error says that it could not be done.
func Run(ctx context.Context, door Door, p Plan) (Result, error) {
	r := &run{door: door, plan: p, began: time.Now(), records: recordsOf(p.Space)}
	rng := rand.New(rand.NewPCG(p.Seed, p.Seed))
	for life := range p.Lives {
		if err := r.live(ctx, life, rng); err != nil {
			return Result{}, fmt.Errorf("in life %d: %w", life, err)
		}
	}
	result := Result{Commands: len(r.done)}
	for _, o := range r.done {
		if !o.Output.(output).known {
			result.Unanswered++
		}
	}
	result.Wrong = judge(r.done)
	return result, nil
}

// run is a history in the making.
type run struct {
	door    Door
	plan    Plan
	began   time.Time
	records []record
	done    []porcupine.Operation
}

// live lets clients work, and the store crash if this is not its last life.
func (r *run) live(ctx context.Context, life int, rng *rand.Rand) error {
	last := life == r.plan.Lives-1
	var left atomic.Int64
	left.Store(int64(r.plan.Commands))
	crashAt := int64(-1)
	if !last {
		crashAt = rng.Int64N(int64(r.plan.Commands))
	}
	ends := make(chan *client, r.plan.Clients)
	crash := make(chan struct{}, 1)
	for n := range r.plan.Clients {
		c := &client{run: r, number: n, rng: rand.New(rand.NewPCG(r.plan.Seed, uint64(life*r.plan.Clients+n))), values: life*1_000_000 + n*10_000}
		go func() {
			defer func() { ends <- c }()
			c.work(ctx, func() bool {
				n := left.Add(-1)
				if n == crashAt {
					crash <- struct{}{}
				}
				return n >= 0
			})
		}()
	}
	var failed error
	if !last {
		select {
		case <-crash:
			failed = r.door.Crash()
		case <-ctx.Done():
			failed = ctx.Err()
		}
	}
	return errors.Join(failed, r.collect(ends, last))
}

// collect takes what the clients of a life have written down.
func (r *run) collect(ends <-chan *client, last bool) error {
	var all []*client
	for range r.plan.Clients {
		all = append(all, <-ends)
	}
	now := r.now() // whatever was not answered has happened by now, or will never
	for _, c := range all {
		if last && c.err != nil {
			return c.err
		}
		for _, o := range c.done {
			if !o.Output.(output).known {
				o.Return = now
			}
			r.done = append(r.done, o)
		}
	}
	return nil
}

func (r *run) now() int64 { return int64(time.Since(r.began)) }

// judge looks for an order that explains the commands. It says what it cannot explain.
func judge(done []porcupine.Operation) string {
	result, info := porcupine.CheckOperationsVerbose(model(), done, limit)
	if result == porcupine.Ok {
		return ""
	}
	if result == porcupine.Unknown {
		return fmt.Sprintf("no order was found in %v, nor that there is none", limit)
	}
	return explain(done, info)
}

// explain shows the record whose commands have no order, up to the first that fits nowhere.
func explain(done []porcupine.Operation, info porcupine.LinearizationInfo) string {
	for i, part := range parts(done) {
		best := 0
		for _, order := range info.PartialLinearizationsOperations()[i] {
			best = max(best, len(order))
		}
		if best == len(part) {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "no order of these commands explains their replies (the longest has %d of %d):\n", best, len(part))
		for _, o := range part[max(0, best-20):min(len(part), best+20)] {
			fmt.Fprintf(&b, "  %12d %12d  client %d: %s\n", o.Call, o.Return, o.ClientId, describe(o.Input, o.Output))
		}
		return b.String()
	}
	return "no order explains the replies"
}
