// Package statetest is the suite that every implementation of state.Store
// passes: what the contract says of records, versions, transactions, watching,
// expiry, concurrency and, for stores that keep their data on a disk, crashes.
package statetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Open opens an empty store that goes by a clock; the suite closes it.
type Open func(t *testing.T, now func() time.Time) state.Store

// space is where the suite's records are.
const space = "suite"

// world is a store under test and its clock.
type world struct {
	*testing.T
	store state.Store

	mu  sync.Mutex // guards now
	now time.Time
}

// Run runs the suite; each test gets a store of its own.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*world){
		"records":            testRecords,
		"moment":             testOneMoment,
		"scan":               testScan,
		"scan ends":          testScanEnds,
		"apply":              testApply,
		"conflict":           testConflict,
		"exec":               testExec,
		"fetch":              testFetch,
		"fetch one moment":   testFetchOneMoment,
		"fetch too large":    testFetchTooLarge,
		"observe":            testObserve,
		"exec is one step":   testExecIsOneStep,
		"whole space":        testWholeSpace,
		"whole, one moment":  testWholeSpaceIsOneMoment,
		"sort, one moment":   testSortIsOneMoment,
		"failed transaction": testFailedTransaction,
		"versions":           testVersions,
		"expiry":             testExpiry,
		"expired hash":       testExpiredHash,
		"watch":              testWatch,
		"counters":           testCounters,
		"transfers":          testTransfers,
		"durable":            testDurable,
		"big record":         testBigRecord,
		"big hash":           testBigHash,
		"closed":             testClosed,
		"own slices":         testOwnSlices,
		"ended context":      testEndedContext,
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, now: time.UnixMilli(1_000_000)}
			w.store = open(t, w.clock)
			t.Cleanup(func() {
				if err := w.store.Close(); err != nil {
					t.Error(err)
				}
			})
			test(w)
		})
	}
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// command makes a command of words.
func command(in, line string) state.Command {
	return state.Command{Space: in, Args: bytes.Fields([]byte(line))}
}

// do executes a line and demands that the command succeeds.
func (w *world) do(line string) (state.Reply, forerun.Version) {
	w.Helper()
	reply, v, err := w.store.Do(context.Background(), command(space, line))
	if err != nil || reply.Kind == state.Error {
		w.Fatalf("%s: %s, %v", line, reply.Text, err)
	}
	return reply, v
}

func key(name string) forerun.Key { return forerun.Key{Space: space, Name: name} }

func (w *world) get(name string) state.Record {
	w.Helper()
	records, err := w.store.Get(context.Background(), key(name))
	if err != nil || len(records) != 1 {
		w.Fatalf("Get(%s): %d records, %v", name, len(records), err)
	}
	return records[0]
}

// want demands that a record is a string of this text; "" demands that it is not there.
func (w *world) want(name, text string) state.Record {
	w.Helper()
	r := w.get(name)
	if text == "" && (r.Version != 0 || r.Type != state.Absent || r.Data != nil) {
		w.Errorf("%s is there: %+v", name, r)
	}
	if text != "" && (r.Version == 0 || r.Type != state.String || string(r.Data) != text) {
		w.Errorf("%s is %+v, want the string %q", name, r, text)
	}
	return r
}

// apply runs lines as a transaction.
func (w *world) apply(expect []state.Expect, lines ...string) (forerun.Version, error) {
	t := state.Txn{Expect: expect}
	for _, line := range lines {
		t.Ops = append(t.Ops, command(space, line))
	}
	return w.store.Apply(context.Background(), t)
}

func expect(name string, v forerun.Version) state.Expect {
	return state.Expect{Key: key(name), Version: v}
}

// scan lists the names of a range with their data.
func (w *world) scan(r state.Range) string {
	w.Helper()
	var list []string
	for e, err := range w.store.Scan(context.Background(), r) {
		if err != nil {
			w.Fatal(err)
		}
		if e.Version == 0 {
			w.Errorf("%s has no version", e.Name)
		}
		list = append(list, e.Name+"="+string(e.Data))
	}
	return strings.Join(list, " ")
}

// conflict demands that an error is a conflict about these keys.
func (w *world) conflict(err error, names ...string) {
	w.Helper()
	c, ok := errors.AsType[*state.ConflictError](err)
	if !ok || forerun.KindOf(err) != forerun.Exists {
		w.Fatalf("%v is no conflict", err)
	}
	var got []string
	for _, k := range c.Keys {
		if k.Space != space {
			w.Errorf("a conflict in %s", k.Space)
		}
		got = append(got, k.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, names) {
		w.Errorf("a conflict about %q, want %q", got, names)
	}
}
