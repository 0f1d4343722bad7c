package statetest

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// testWholeSpace looks at a space and removes all of it, beside another.
func testWholeSpace(w *world) {
	w.do("SET a 1 PX 1000")
	w.do("HSET h f v")
	_, v := w.do("SET b 2")
	if _, _, err := w.store.Do(context.Background(), command("elsewhere", "SET c 3")); err != nil {
		w.Fatal(err)
	}
	if reply, rests := w.do("KEYS *"); len(reply.Items) != 3 || rests < v {
		w.Errorf("%d keys, which rest on version %d", len(reply.Items), rests)
	}
	var gone []string
	stop := w.store.Watch(func(k forerun.Key, _ forerun.Version) { gone = append(gone, k.Space+"/"+k.Name) })
	w.do("FLUSHDB")
	stop()
	if slices.Sort(gone); !slices.Equal(gone, []string{"suite/a", "suite/b", "suite/h"}) {
		w.Errorf("told of %q", gone)
	}
	if reply, _ := w.do("DBSIZE"); reply.Int != 0 {
		w.Errorf("%d records are left", reply.Int)
	}
	w.want("a", "")
	if reply, _ := w.do("HGETALL h"); len(reply.Items) != 0 {
		w.Error("a field is left")
	}
	if reply, _, err := w.store.Do(context.Background(), command("elsewhere", "GET c")); err != nil || string(reply.Text) != "3" {
		w.Errorf("elsewhere: %s, %v", reply.Text, err)
	}
}

// testWholeSpaceIsOneMoment counts records while others are added and removed together.
func testWholeSpaceIsOneMoment(w *world) {
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			for i := range 40 {
				name := strconv.Itoa(n*100 + i)
				if _, _, err := w.exec(nil, "SET x"+name+" 1", "SET y"+name+" 1"); err != nil {
					w.Error(err)
				}
				if reply, _ := w.do("DBSIZE"); reply.Int%2 != 0 {
					w.Errorf("%d records", reply.Int)
				}
				replies, _, err := w.exec(nil, "DBSIZE", "DEL x"+name+" y"+name, "DBSIZE")
				if err != nil || replies[0].Int != replies[2].Int+2 {
					w.Errorf("%v, %v", replies, err)
				}
			}
		})
	}
	all.Wait()
}

// testSortIsOneMoment sorts by records that its arguments do not name.
func testSortIsOneMoment(w *world) {
	w.do("RPUSH l a b")
	w.do("MSET w_a 1 w_b 2")
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := range 100 {
				w.do("MSET w_a " + strconv.Itoa(i) + " w_b " + strconv.Itoa(i))
			}
		})
		all.Go(func() {
			for range 100 {
				reply, _ := w.do("SORT l BY none GET w_*")
				stored, _, err := w.exec(nil, "SORT l BY none GET w_* STORE d", "LRANGE d 0 -1")
				if err != nil {
					w.Error(err)
					return
				}
				for _, items := range [][]state.Reply{reply.Items, stored[1].Items} {
					if a, b := string(items[0].Text), string(items[1].Text); a != b && a+b != "12" {
						w.Errorf("%s and %s", a, b)
					}
				}
			}
		})
	}
	all.Wait()
}
