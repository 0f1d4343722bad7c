package statetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	commands "forerun.dev/forerun/internal/state/command"
)

// fetch takes images of records.
func (w *world) fetch(names ...string) []state.Fetched {
	w.Helper()
	var keys []forerun.Key
	for _, name := range names {
		keys = append(keys, key(name))
	}
	fetched, err := w.store.Fetch(context.Background(), keys...)
	if err != nil || len(fetched) != len(keys) {
		w.Fatalf("%d images of %d, %v", len(fetched), len(keys), err)
	}
	return fetched
}

// onImages executes a line on images of what it reads.
func (w *world) onImages(line string, images ...state.Image) state.Reply {
	w.Helper()
	o, _ := new(commands.Executor).Execute(commands.NewStep(space, w.clock(), bytes.Fields([]byte(line))), images)
	if o.Err != nil {
		w.Fatal(o.Err)
	}
	return o.Replies[0]
}

func testFetch(w *world) {
	w.do("SET s text")
	w.do("HSET h f 1 g 2")
	w.do("RPUSH l a b")
	w.do("SADD m x")
	w.do("ZADD z 1 a 2 b")
	w.do("SET e gone PX 10")
	w.advance(time.Second)
	names := []string{"s", "h", "l", "m", "z", "e", "none"}
	fetched := w.fetch(names...)
	for i, line := range []string{"GET s", "HGETALL h", "LRANGE l 0 -1", "SMEMBERS m", "ZRANGE z 0 -1 WITHSCORES"} {
		want, _ := w.do(line)
		if got := w.onImages(line, fetched[i].Image); fmt.Sprint(got) != fmt.Sprint(want) {
			w.Errorf("%s: %v, want %v", line, got, want)
		}
	}
	for i, f := range fetched {
		if there := i < 5; f.Image.Absent() == there || f.Version != w.get(names[i]).Version || (f.Version != 0) != there || f.Image.Size() <= 0 {
			w.Errorf("%s: absent %v, version %d, size %d", names[i], f.Image.Absent(), f.Version, f.Image.Size())
		}
	}
	w.do("APPEND s more")
	w.do("DEL h")
	if got := w.onImages("MGET s", fetched[0].Image); string(got.Items[0].Text) != "text" {
		w.Errorf("the image has become %s", got.Items[0].Text)
	}
	if got := w.onImages("HLEN h", fetched[1].Image); got.Int != 2 {
		w.Errorf("%d fields are left in the image", got.Int)
	}
	_, v := w.do("SET e soon PX 10")
	w.advance(time.Second)
	_, _, err := w.exec([]state.Expect{expect("s", w.get("s").Version), expect("e", v)}, "SET other x")
	w.conflict(err, "e") // what has expired is another version
	if f := w.fetch(); len(f) != 0 {
		w.Errorf("%d images of nothing", len(f))
	}
}

func testFetchTooLarge(w *world) {
	w.do("SET small x")
	big := state.Command{Space: space, Args: [][]byte{[]byte("SET"), []byte("big"), make([]byte, 20<<20)}}
	if _, _, err := w.store.Do(context.Background(), big); err != nil {
		w.Fatal(err)
	}
	if f := w.fetch("small", "big"); f[1].Image.Size() < 20<<20 {
		w.Errorf("%d bytes", f[1].Image.Size())
	}
	big.Args[1] = []byte("big2")
	if _, _, err := w.store.Do(context.Background(), big); err != nil {
		w.Fatal(err)
	}
	if _, err := w.store.Fetch(context.Background(), key("big"), key("big2")); forerun.KindOf(err) != forerun.TooLarge || err == nil {
		w.Errorf("two that are too large together: %v", err)
	}
}

// testFetchOneMoment fetches two hashes that always change together.
func testFetchOneMoment(w *world) {
	if _, err := w.apply(nil, "HSET a n 0 m 0", "HSET b n 0 m 0"); err != nil {
		w.Fatal(err)
	}
	var writers sync.WaitGroup
	defer writers.Wait()
	for range 4 {
		writers.Go(func() {
			for range 100 {
				if _, err := w.apply(nil, "HINCRBY a n 1", "HINCRBY b n 1", "HINCRBY a m 1", "HINCRBY b m 1"); err != nil {
					w.Error(err)
				}
			}
		})
	}
	for range 400 {
		f := w.fetch("a", "b")
		a, b := fmt.Sprint(w.onImages("HVALS a", f[0].Image)), fmt.Sprint(w.onImages("HVALS b", f[1].Image))
		if a != b || f[0].Version != f[1].Version {
			w.Fatalf("%s@%d and %s@%d", a, f[0].Version, b, f[1].Version)
		}
	}
}

// observe executes lines as one step.
func (w *world) observe(expect []state.Expect, lines ...string) (state.Observed, error) {
	ops := make([]state.Command, len(lines))
	for i, line := range lines {
		ops[i] = command(space, line)
	}
	return w.store.Observe(context.Background(), expect, ops)
}

func testObserve(w *world) {
	_, a := w.do("SET a 1")
	_, b := w.do("HSET b f 1")
	w.do("SET old x PX 10")
	w.advance(time.Second)
	for _, c := range []struct {
		lines, reads, wrote string
		exact               bool
	}{
		{"GET a", "a", "", true},
		{"TTL a", "a", "", false},
		{"SET c 1", "", "c", true},
		{"INCR a; MGET a b; SET d 1; DEL none", "a b none", "a d", true},
		{"LPUSH a x; NONSENSE; GET e", "a e", "", true},
		{"INCRBY old 0; GETEX b", "old b", "old", true},
		{"DEL old", "old", "old", true},
		{"KEYS *", "", "", false},
		{"FLUSHDB; SET a 1", "", "a b c d", false},
		{"SET a 1; FLUSHDB", "", "a", false},
	} {
		before := map[string]forerun.Version{}
		for _, name := range strings.Fields(c.reads) {
			before[name] = w.get(name).Version
		}
		o, err := w.observe(nil, strings.Split(c.lines, "; ")...)
		if err != nil || len(o.Replies) != strings.Count(c.lines, ";")+1 || o.Exact != c.exact {
			w.Errorf("%s: %+v, %v", c.lines, o, err)
		}
		var reads, wrote []string
		for _, e := range o.Reads {
			if reads = append(reads, e.Key.Name); e.Version != before[e.Key.Name] {
				w.Errorf("%s: %s had version %d, not %d", c.lines, e.Key.Name, before[e.Key.Name], e.Version)
			}
		}
		for _, k := range o.Wrote {
			if wrote = append(wrote, k.Name); w.get(k.Name).Version != o.Version && w.get(k.Name).Version != 0 {
				w.Errorf("%s: %s has version %d, not %d", c.lines, k.Name, w.get(k.Name).Version, o.Version)
			}
		}
		if strings.Join(reads, " ") != c.reads || strings.Join(wrote, " ") != c.wrote {
			w.Errorf("%s: read %q, want %q, wrote %q, want %q", c.lines, reads, c.reads, wrote, c.wrote)
		}
	}
	_, err := w.observe([]state.Expect{expect("a", a), expect("b", b)}, "SET a 2")
	w.conflict(err, "a", "b")
	_, v := w.do("SET a 3")
	o, err := w.observe([]state.Expect{expect("a", v), expect("b", 0)}, "SET b 4")
	if err != nil || !slices.Equal(o.Reads, []state.Expect{expect("a", v), expect("b", 0)}) {
		w.Errorf("what was expected was read: %+v, %v", o, err)
	}
}
