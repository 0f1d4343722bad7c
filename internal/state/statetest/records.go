package statetest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

func testRecords(w *world) {
	w.want("a", "")
	_, v := w.do("SET a one")
	if r := w.want("a", "one"); r.Version != v || !r.Expires.IsZero() {
		w.Errorf("the record of version %d is %+v", v, r)
	}
	w.do("HSET h f v")
	if r := w.get("h"); r.Type != state.Hash || r.Version == 0 || r.Data != nil {
		w.Errorf("a hash is %+v", r)
	}
	w.do("SET e x PXAT 2000000")
	if r := w.want("e", "x"); !r.Expires.Equal(time.UnixMilli(2_000_000)) {
		w.Errorf("it expires at %v", r.Expires)
	}
	w.do("DEL a h e")
	records, err := w.store.Get(context.Background(), key("a"), key("h"), key("e"), key("a"))
	if err != nil || len(records) != 4 {
		w.Fatalf("%v, %v", records, err)
	}
	for _, r := range records {
		if r.Version != 0 {
			w.Errorf("a deleted record is %+v", r)
		}
	}
	if none, err := w.store.Get(context.Background()); err != nil || len(none) != 0 {
		w.Errorf("Get of nothing: %v, %v", none, err)
	}
	reply, _, err := w.store.Do(context.Background(), command(space, "NONSENSE"))
	if err != nil || reply.Kind != state.Error {
		w.Errorf("an unknown command: %+v, %v", reply, err)
	}
}

func testScan(w *world) {
	w.do("MSET b 2 a 1 c/1 3 c/2 4 d 5")
	w.do("HSET bb f v")
	for _, other := range []string{"suit", "suites", "suite\x00", "suite\x00\x01", ""} {
		if _, _, err := w.store.Do(context.Background(), command(other, "SET b other")); err != nil {
			w.Fatal(err)
		}
	}
	for _, c := range []struct {
		r    state.Range
		want string
	}{
		{state.Range{}, "a=1 b=2 c/1=3 c/2=4 d=5"},
		{state.Range{Reverse: true}, "d=5 c/2=4 c/1=3 b=2 a=1"},
		{state.Range{From: "b"}, "b=2 c/1=3 c/2=4 d=5"},
		{state.Range{From: "b", To: "d"}, "b=2 c/1=3 c/2=4"},
		{state.Range{From: "b", To: "d", Reverse: true}, "c/2=4 c/1=3 b=2"},
		{state.Range{From: "c/", To: "c0"}, "c/1=3 c/2=4"},
		{state.Range{From: "x"}, ""},
		{state.Range{From: "d", To: "b"}, ""},
	} {
		c.r.Space = space
		if got := w.scan(c.r); got != c.want {
			w.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}

// testScanEnds stops in the middle, writes meanwhile, and goes on with a context that has ended.
func testScanEnds(w *world) {
	for n := range 100 {
		w.do(fmt.Sprintf("SET %03d x", n))
	}
	n := 0
	for e, err := range w.store.Scan(context.Background(), state.Range{Space: space}) {
		if err != nil || e.Name != fmt.Sprintf("%03d", n) {
			w.Fatalf("%+v, %v", e, err)
		}
		if n++; n == 50 {
			break
		}
		w.do("SET 000x later") // not of this moment
	}
	ctx, cancel := context.WithCancel(context.Background())
	n = 0
	for _, err := range w.store.Scan(ctx, state.Range{Space: space}) {
		if n++; n == 10 {
			cancel()
		}
		if err != nil && n <= 10 || err == nil && n > 10 {
			w.Fatalf("entry %d: %v", n, err)
		}
	}
	cancel()
	if n != 11 {
		w.Errorf("after its context has ended, a scan went on to %d", n)
	}
}

func testVersions(w *world) {
	var last forerun.Version
	grow := func(line string) {
		w.Helper()
		_, v := w.do(line)
		if v <= last {
			w.Errorf("%s has version %d after %d", line, v, last)
		}
		last = v
	}
	grow("SET a 1")
	grow("SET b 1")
	grow("SET a 1")
	grow("DEL a")
	grow("SET a 1")
	grow("HSET h f 1")
	grow("DEL h")
	grow("RPUSH h 1")
	if r := w.get("h"); r.Version != last {
		w.Errorf("a record has version %d, its write %d", r.Version, last)
	}
	v, err := w.apply(nil, "SET x 1", "SET y 1")
	if err != nil || v <= last || w.get("x").Version != v || w.get("y").Version != v {
		w.Errorf("a transaction of version %d, %v: %d %d", v, err, w.get("x").Version, w.get("y").Version)
	}
	for _, idle := range []string{"GET x", "DEL missing", "SETNX x 2", "EXPIRE missing 10", "HDEL missing f"} {
		if _, v := w.do(idle); v > w.get("x").Version {
			w.Errorf("%s writes nothing, but has version %d", idle, v)
		}
		w.want("x", "1")
	}
	if _, now := w.do("SET z 1"); now <= v {
		w.Errorf("version %d after %d", now, v)
	}
}

func testExpiry(w *world) {
	w.do("SET a 1 PX 1000")
	old := w.want("a", "1").Version
	w.do("SET b 2")
	w.advance(time.Second)
	w.want("a", "1")
	w.advance(time.Millisecond)
	w.want("a", "")
	if got := w.scan(state.Range{Space: space}); got != "b=2" {
		w.Errorf("a scan sees %q", got)
	}
	_, err := w.apply([]state.Expect{expect("a", old)}, "SET c 1")
	w.conflict(err, "a")
	if _, err := w.apply([]state.Expect{expect("a", 0)}, "SET a new"); err != nil {
		w.Error(err)
	}
	if r := w.want("a", "new"); r.Version <= old || !r.Expires.IsZero() {
		w.Errorf("the new record is %+v, the old one had version %d", r, old)
	}
	w.advance(time.Hour)
	w.want("a", "new")
}

// testExpiredHash looks for what an expired hash may leave to its successor.
func testExpiredHash(w *world) {
	w.do("HSET h old 1")
	w.do("PEXPIRE h 10")
	w.advance(11 * time.Millisecond)
	w.do("HSET h new 1")
	reply, _ := w.do("HGETALL h")
	if len(reply.Items) != 2 || string(reply.Items[0].Text) != "new" {
		w.Errorf("the new hash holds %+v", reply.Items)
	}
	w.advance(time.Hour)
	if reply, _ := w.do("TTL h"); reply.Int != -1 {
		w.Errorf("the new hash has %d s to live", reply.Int)
	}
}

func testBigRecord(w *world) {
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MB
	_, v, err := w.store.Do(context.Background(), state.Command{Space: space, Args: [][]byte{[]byte("SET"), []byte("big"), big}})
	if err == nil {
		err = w.store.Durable(context.Background(), v)
	}
	if err != nil {
		w.Fatal(err)
	}
	if r := w.get("big"); r.Version != v || !bytes.Equal(r.Data, big) {
		w.Errorf("a big record has version %d (written as %d) and %d bytes", r.Version, v, len(r.Data))
	}
	t := state.Txn{Lazy: true, Ops: []state.Command{{Space: space, Args: [][]byte{[]byte("SET"), []byte("big2"), big}}}}
	if v, err = w.store.Apply(context.Background(), t); err != nil {
		w.Fatal(err)
	}
	if r := w.get("big2"); r.Version != v || !bytes.Equal(r.Data, big) {
		w.Errorf("a big lazy record has version %d (written as %d) and %d bytes", r.Version, v, len(r.Data))
	}
}

// testBigHash fills, overwrites and deletes a hash with many fields.
func testBigHash(w *world) {
	var line strings.Builder
	line.WriteString("HSET h")
	for n := range 1000 {
		fmt.Fprintf(&line, " f%d %d", n, n)
	}
	w.do(line.String())
	w.do("HSET hh f 1") // a neighbour
	if reply, _ := w.do("HLEN h"); reply.Int != 1000 {
		w.Errorf("it has %d fields", reply.Int)
	}
	w.do("SET h text")
	w.want("h", "text")
	w.do("DEL h")
	w.do("HSET h only 1")
	if reply, _ := w.do("HGETALL h"); len(reply.Items) != 2 {
		w.Errorf("the new hash has %d items", len(reply.Items))
	}
	if reply, _ := w.do("HGET hh f"); string(reply.Text) != "1" {
		w.Errorf("the neighbour lost its field: %+v", reply)
	}
}

func testOwnSlices(w *world) {
	args := command(space, "SET a text")
	if _, _, err := w.store.Do(context.Background(), args); err != nil {
		w.Fatal(err)
	}
	copy(args.Args[1], "z")
	copy(args.Args[2], "XXXX")
	r := w.want("a", "text")
	copy(r.Data, "XXXX")
	reply, _ := w.do("GET a")
	copy(reply.Text, "XXXX")
	for e, err := range w.store.Scan(context.Background(), state.Range{Space: space}) {
		if err != nil {
			w.Fatal(err)
		}
		copy(e.Data, "XXXX")
	}
	w.want("a", "text")
}
