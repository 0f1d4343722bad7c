package statetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

func testApply(w *world) {
	_, v := w.do("SET a 1")
	after, err := w.apply([]state.Expect{expect("a", v), expect("b", 0)}, "INCR a", "SET b x", "APPEND b y", "HSET h f 1", "HINCRBY h f 2", "GET a")
	if err != nil || after <= v {
		w.Fatalf("version %d, %v", after, err)
	}
	w.want("a", "2")
	w.want("b", "xy")
	if reply, _ := w.do("HGET h f"); string(reply.Text) != "3" {
		w.Errorf("the field is %s", reply.Text)
	}
	if got := w.get("h").Version; got != after {
		w.Errorf("version %d, want %d", got, after)
	}
	other := forerun.Key{Space: "elsewhere", Name: "a"}
	both := state.Txn{Lazy: true, Expect: []state.Expect{{Key: other}}, Ops: []state.Command{command(space, "SET a 3"), command("elsewhere", "SET a 4")}}
	if _, err := w.store.Apply(context.Background(), both); err != nil {
		w.Fatal(err)
	}
	w.want("a", "3")
	if records, err := w.store.Get(context.Background(), other); err != nil || string(records[0].Data) != "4" {
		w.Errorf("in the other space: %+v, %v", records, err)
	}
	if _, err := w.apply([]state.Expect{expect("b", after)}); err != nil {
		w.Errorf("a transaction that only checks: %v", err)
	}
}

func testConflict(w *world) {
	_, va := w.do("SET a 1")
	_, vb := w.do("SET b 1")
	w.do("SET b 2")
	_, err := w.apply([]state.Expect{expect("a", va), expect("b", vb), expect("c", 7), expect("d", 0)}, "SET a x", "SET e x")
	w.conflict(err, "b", "c")
	w.want("a", "1")
	w.want("e", "")
	w.do("DEL a")
	w.do("SET a 1")
	_, err = w.apply([]state.Expect{expect("a", va)}, "SET e x")
	w.conflict(err, "a") // equal again, but not the same
	_, err = w.apply([]state.Expect{expect("a", 0)}, "SET e x")
	w.conflict(err, "a")
	w.want("e", "")
}

func testFailedTransaction(w *world) {
	w.do("HSET h f 1")
	for _, last := range []string{"INCR h", "NONSENSE", "GET", "SET a 1 NONSENSE", "EVAL x 0"} {
		_, err := w.apply(nil, "SET a 1", "HSET h f 2", "DEL missing", last)
		if forerun.KindOf(err) != forerun.Invalid || err == nil {
			w.Errorf("%s: %v", last, err)
		}
		w.want("a", "")
		if reply, _ := w.do("HGET h f"); string(reply.Text) != "1" {
			w.Errorf("%s left the field at %s", last, reply.Text)
		}
	}
}

func testWatch(w *world) {
	var got []string
	note := func(k forerun.Key, v forerun.Version) { got = append(got, k.Name+"@"+strconv.Itoa(int(v))) }
	stop := w.store.Watch(note)
	stopOther := w.store.Watch(func(forerun.Key, forerun.Version) {})
	_, v1 := w.do("SET a 1")
	w.do("GET a")
	_, v2 := w.do("DEL a")
	v3, err := w.apply(nil, "SET b 1", "HSET c f 1", "SET b 2")
	if err != nil {
		w.Fatal(err)
	}
	stopOther()
	_, v4 := w.do("HSET c g 1")
	stop()
	w.do("SET a 2")
	want := []string{fmt.Sprintf("a@%d", v1), fmt.Sprintf("a@%d", v2), fmt.Sprintf("b@%d", v3), fmt.Sprintf("c@%d", v3), fmt.Sprintf("c@%d", v4)}
	if !slices.Equal(got, want) {
		w.Errorf("watched %q, want %q", got, want)
	}
	stop()
}

// testOneMoment reads two records that always change together.
func testOneMoment(w *world) {
	w.do("MSET a 0 b 0")
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 100 {
				if _, err := w.apply(nil, "INCR a", "INCR b"); err != nil {
					w.Error(err)
				}
			}
		})
	}
	for range 400 {
		records, err := w.store.Get(context.Background(), key("a"), key("b"))
		if err != nil || string(records[0].Data) != string(records[1].Data) || records[0].Version != records[1].Version {
			w.Fatalf("%q and %q, %v", records[0].Data, records[1].Data, err)
		}
		reply, _ := w.do("MGET b a")
		if string(reply.Items[0].Text) != string(reply.Items[1].Text) {
			w.Fatalf("MGET: %q and %q", reply.Items[0].Text, reply.Items[1].Text)
		}
	}
	writers.Wait()
	w.want("a", "400")
}

func testCounters(w *world) {
	const clients, each = 8, 100
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			for range each {
				w.do("INCR shared")
				w.do(fmt.Sprintf("INCR own%d", n))
				w.do("HINCRBY hash " + strconv.Itoa(n%2) + " 1")
			}
		})
	}
	all.Wait()
	w.want("shared", strconv.Itoa(clients*each))
	for n := range clients {
		w.want(fmt.Sprintf("own%d", n), strconv.Itoa(each))
	}
	if reply, _ := w.do("HMGET hash 0 1"); string(reply.Items[0].Text) != "400" || string(reply.Items[1].Text) != "400" {
		w.Errorf("the hash counted %s and %s", reply.Items[0].Text, reply.Items[1].Text)
	}
}

// testTransfers moves money by reading, and applying what was read; nothing is lost or made.
func testTransfers(w *world) {
	const accounts, clients, each = 3, 4, 30
	for n := range accounts {
		w.do(fmt.Sprintf("SET account%d 100", n))
	}
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for n := range each {
				from, to := "account"+strconv.Itoa((c+n)%accounts), "account"+strconv.Itoa((c+n+1)%accounts)
				for !w.transfer(from, to) {
				}
			}
		})
	}
	all.Wait()
	sum := 0
	for n := range accounts {
		amount, err := strconv.Atoi(string(w.get(fmt.Sprintf("account%d", n)).Data))
		if err != nil {
			w.Fatal(err)
		}
		sum += amount
	}
	if sum != 100*accounts {
		w.Errorf("there is %d in all", sum)
	}
}

// transfer tries to move one coin; false means that somebody was faster.
func (w *world) transfer(from, to string) bool {
	records, err := w.store.Get(context.Background(), key(from), key(to))
	if err != nil {
		w.Error(err)
		return true
	}
	a, _ := strconv.Atoi(string(records[0].Data))
	b, _ := strconv.Atoi(string(records[1].Data))
	_, err = w.apply([]state.Expect{expect(from, records[0].Version), expect(to, records[1].Version)},
		fmt.Sprintf("SET %s %d", from, a-1), fmt.Sprintf("SET %s %d", to, b+1))
	if _, conflict := errors.AsType[*state.ConflictError](err); conflict {
		return false
	}
	if err != nil {
		w.Error(err)
	}
	return true
}

func testDurable(w *world) {
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for range 20 {
				_, v := w.do(fmt.Sprintf("SET k%d x", n))
				if err := w.store.Durable(context.Background(), v); err != nil {
					w.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := w.store.Durable(context.Background(), 0); err != nil {
		w.Error(err)
	}
	if err := w.store.Durable(context.Background(), 1<<62); forerun.KindOf(err) != forerun.Invalid || err == nil {
		w.Errorf("a version of the future: %v", err)
	}
}

func testClosed(w *world) {
	w.do("SET a 1")
	if err := w.store.Close(); err != nil {
		w.Fatal(err)
	}
	_, _, doErr := w.store.Do(context.Background(), command(space, "GET a"))
	_, getErr := w.store.Get(context.Background(), key("a"))
	_, applyErr := w.apply(nil, "SET a 2")
	errs := []error{doErr, getErr, applyErr}
	for _, err := range w.store.Scan(context.Background(), state.Range{Space: space}) {
		errs = append(errs, err)
	}
	if len(errs) != 4 {
		w.Errorf("a scan of a closed store yields %d times", len(errs)-3)
	}
	for _, err := range errs {
		if err == nil || forerun.KindOf(err) != forerun.Unavailable {
			w.Errorf("a closed store answers %v", err)
		}
	}
}

func testEndedContext(w *world) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, doErr := w.store.Do(ctx, command(space, "SET a 1"))
	_, getErr := w.store.Get(ctx, key("a"))
	_, applyErr := w.store.Apply(ctx, state.Txn{Ops: []state.Command{command(space, "SET a 1")}})
	for _, err := range []error{doErr, getErr, applyErr} {
		if !errors.Is(err, context.Canceled) {
			w.Errorf("with an ended context: %v", err)
		}
	}
	w.want("a", "")
}
