package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/test/history"
)

// The history of TestCurrent: pairs of records that are written together and read together, each by several annotated inputs.
const (
	historyPairs   = 2
	historyInputs  = 16   // of each pair
	historyReaders = 4    // clients that read one after another
	historyReads   = 1250 // of each reader and mode
	historyBurst   = 20   // writes of a client from outside, one after another
)

// pairState is what clients see of a pair: the texts of both records; an absent one is empty.
type pairState [2]string

// historyOp is what a client of the history did: it read a pair, or wrote it.
type historyOp struct {
	pair  int
	wrote bool
	as    pairState // that was written
}

// historyModel says that a pair is a register.
func historyModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			split := make([][]porcupine.Operation, historyPairs)
			for _, o := range all {
				pair := o.Input.(historyOp).pair
				split[pair] = append(split[pair], o)
			}
			return split
		},
		Init: func() any { return pairState{} },
		Step: func(before, in, out any) (bool, any) {
			if op := in.(historyOp); op.wrote {
				return true, op.as
			}
			return out.(pairState) == before.(pairState), before
		},
	}
}

// clients are clients of a town, whose operations are written down.
type clients struct {
	*town
	began time.Time

	hits, ran, squashed atomic.Int64

	mu   sync.Mutex // guards done
	done []porcupine.Operation
}

// pairCommands are the commands that read a pair, or write it.
func pairCommands(op historyOp) (commands [][][]byte) {
	for i, value := range op.as {
		key := []byte(fmt.Sprintf("%c%d", 'a'+i, op.pair))
		switch {
		case !op.wrote:
			commands = append(commands, [][]byte{[]byte("GET"), key})
		case value == "":
			commands = append(commands, [][]byte{[]byte("DEL"), key})
		default:
			commands = append(commands, [][]byte{[]byte("SET"), key, []byte(value)})
		}
	}
	return commands
}

// perform has a function execute the commands of an operation in one step.
func (c *clients) perform(run *forerun.Run, op historyOp) (pairState, error) {
	var replies []state.Reply
	var err error
	if run.Bridged {
		replies, _, err = c.Bridge.Exec(context.Background(), state.Asker{Activation: run.Activation}, "ns", nil, pairCommands(op))
	} else {
		replies, _, err = state.ExecIn(context.Background(), c.State, "ns", nil, pairCommands(op))
	}
	if err != nil || op.wrote {
		return op.as, err
	}
	return pairState{string(replies[0].Text), string(replies[1].Text)}, nil
}

// note writes down an operation that began at a moment.
func (c *clients) note(client int, began time.Duration, op historyOp, out pairState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, porcupine.Operation{ClientId: client, Input: op, Call: int64(began), Output: out, Return: int64(time.Since(c.began))})
}

// randomWrite is a write of a pair: each of the records may be absent.
func randomWrite(rng *rand.Rand, pair int) historyOp {
	n := rng.IntN(1_000_000)
	is := pairState{fmt.Sprint(n), fmt.Sprint(1_000_000 - n)}
	for i := range is {
		if rng.IntN(2) == 0 {
			is[i] = ""
		}
	}
	return historyOp{pair, true, is}
}

// newClients deploys an annotated function that reads a pair, a function that writes one, and a sequence that writes what its first step has
// chosen. Each choice of that is made twice, so that the second step runs ahead with the old choice every other time.
func newClients(t *testing.T, mode speculate.Mode, rng *rand.Rand) *clients {
	c := &clients{town: newCacheTown(t, mode), began: time.Now()}
	c.Speculation.AnyLoad = true
	c.counted("reads", func(run *forerun.Run, input map[string]any) (any, error) {
		c.ran.Add(1)
		is, err := c.perform(run, historyOp{pair: int(input["pair"].(float64))})
		return map[string]any{"is": is}, err
	})
	c.function("writes", func(run *forerun.Run, input map[string]any) (any, error) {
		as := input["as"].([]any)
		_, err := c.perform(run, historyOp{int(input["pair"].(float64)), true, pairState{as[0].(string), as[1].(string)}})
		return input, err
	})
	var choice historyOp // of the only client that invokes it
	runs := 0
	c.function("chooses", func(*forerun.Run, map[string]any) (any, error) {
		if runs++; runs%2 == 1 {
			choice = randomWrite(rng, rng.IntN(historyPairs))
		}
		return map[string]any{"pair": choice.pair, "as": choice.as}, nil
	})
	c.deploy("flips", forerun.Exec{Kind: "sequence", Components: []string{"/ns/chooses", "/ns/writes"}})
	return c
}

// call invokes an action and reads its result.
func (c *clients) call(name string, input map[string]any) (op historyOp, is pairState, record *forerun.Activation) {
	text, _ := json.Marshal(input)
	i := c.Invoke(Request{Namespace: "ns", Subject: "ada", Action: c.actions["/ns/"+name], Input: text, Blocking: true})
	<-i.Done()
	record = i.Record()
	if tally := i.Tally(); tally != nil {
		c.squashed.Add(int64(tally.Squashed))
	}
	var result struct {
		Is, As pairState
		Pair   int
	}
	_ = json.Unmarshal(record.Result, &result)
	return historyOp{result.Pair, true, result.As}, result.Is, record
}

// read is a reader.
func (c *clients) read(t *testing.T, client int, rng *rand.Rand) {
	for range historyReads {
		op, began := historyOp{pair: rng.IntN(historyPairs)}, time.Since(c.began)
		_, is, record := c.call("reads", map[string]any{"pair": op.pair, "input": rng.IntN(historyInputs)})
		if record.Status != forerun.Success || record.Cached == nil {
			t.Errorf("a read gave %s: %s, %+v", record.Status, record.Result, record.Cached)
			return
		}
		if record.Cached.Outcome == forerun.CacheHit {
			c.hits.Add(1)
		}
		c.note(client, began, op, is)
	}
}

// writers are the three kinds of clients that write: from outside in transactions, a function, and a sequence that runs ahead. Each call writes
// once or more.
func (c *clients) writers() []func(rng *rand.Rand, client int) error {
	return []func(*rand.Rand, int) error{
		c.alternate,
		func(rng *rand.Rand, client int) error {
			op, began := randomWrite(rng, rng.IntN(historyPairs)), time.Since(c.began)
			_, _, record := c.call("writes", map[string]any{"pair": op.pair, "as": op.as})
			c.note(client, began, op, op.as)
			return mustSucceed(record)
		},
		func(_ *rand.Rand, client int) error {
			began := time.Since(c.began)
			op, _, record := c.call("flips", map[string]any{})
			c.note(client, began, op, op.as)
			return mustSucceed(record)
		},
	}
}

// alternate is a client from outside. It deletes both records of a pair, and lets results of that be kept. Then it writes the one and deletes the
// other in one transaction, many times. So both are absent, but not at one moment.
func (c *clients) alternate(rng *rand.Rand, client int) error {
	pair := rng.IntN(historyPairs)
	for n := range historyBurst {
		op := historyOp{pair: pair, wrote: true}
		if n > 0 {
			op.as[n%2] = fmt.Sprint(rng.IntN(1_000_000))
		}
		began := time.Since(c.began)
		if _, _, err := state.ExecIn(context.Background(), c.State, "ns", nil, pairCommands(op)); err != nil {
			return err
		}
		c.note(client, began, op, op.as)
		if n == 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(writePause))))
		}
	}
	return nil
}

func mustSucceed(record *forerun.Activation) error {
	if record.Status != forerun.Success {
		return fmt.Errorf("a writer gave %s: %s", record.Status, record.Result)
	}
	return nil
}

// writePause is about how long a writer rests behind a write. It leaves time for hits.
const writePause = 4 * time.Millisecond

// play has readers read to their end beside all writers.
func (c *clients) play(t *testing.T, seed uint64) {
	var readers, writers sync.WaitGroup
	over := make(chan struct{})
	source := func(client int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(client))) }
	for n, write := range c.writers() {
		writers.Go(func() {
			for rng := source(100 + n); ; time.Sleep(time.Duration(rng.Int64N(int64(writePause)))) {
				select {
				case <-over:
					return
				default:
				}
				if err := write(rng, 100+n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range historyReaders {
		readers.Go(func() { c.read(t, n, source(n)) })
	}
	readers.Wait()
	close(over)
	writers.Wait()
}

// judge looks for an order of the operations that explains all reads.
func (c *clients) judge(t *testing.T) {
	slices.SortFunc(c.done, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	result, info := porcupine.CheckOperationsVerbose(historyModel(), c.done, time.Minute)
	switch result {
	case porcupine.Unknown:
		t.Error("no order was found in a minute, nor that there is none")
	case porcupine.Illegal:
		for pair, part := range historyModel().Partition(c.done) {
			best := 0
			for _, order := range info.PartialLinearizationsOperations()[pair] {
				best = max(best, len(order))
			}
			if best < len(part) {
				t.Errorf("no order of the operations on pair %d explains the reads; near the first that has no place:", pair)
				for _, o := range part[max(0, best-10):min(len(part), best+10)] {
					t.Logf("  %12d %12d  client %d: %+v -> %q", o.Call, o.Return, o.ClientId, o.Input, o.Output)
				}
			}
		}
	}
}

// TestCurrent: beside any writers, each answer is the state of all its records at one moment between the request and the answer (K1). This holds
// for answers by execution and from a row.
func TestCurrent(t *testing.T) {
	for seed, rng := range history.Rounds(t) {
		for _, mode := range []speculate.Mode{speculate.Off, speculate.All} {
			c := newClients(t, mode, rng)
			c.play(t, seed)
			c.judge(t)
			if c.hits.Load() == 0 || c.ran.Load() == 0 {
				t.Errorf("%v: of %d reads %d were hits, and %d executions", mode, historyReaders*historyReads, c.hits.Load(), c.ran.Load())
			}
			t.Logf("%v: %d operations, %d hits, %d executions, %d squashed writers", mode, len(c.done), c.hits.Load(), c.ran.Load(), c.squashed.Load())
		}
	}
}
