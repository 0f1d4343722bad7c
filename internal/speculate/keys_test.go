package speculate

import (
	"slices"
	"strconv"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// filling writes as many records as it is told to, and replies how many it read.
type filling struct{}

func (filling) Execute(command any, reads []Image) (reply any, writes []Image) {
	return len(reads), slices.Repeat([]Image{str("1")}, command.(int))
}

func (filling) Over(Image) bool { return false }

func manyKeys(prefix string, n int) (keys []forerun.Key) {
	for i := range n {
		keys = append(keys, key(prefix+strconv.Itoa(i)))
	}
	return keys
}

// TestManyKeys has a speculative slot write and read very many records while the head writes as many others. The cost
// must not grow with the product of both numbers, nor with the product of reads and events before the fetch. Either
// would take minutes.
func TestManyKeys(t *testing.T) {
	const many, times, events = 100_000, 4, 10_000
	m := ahead()
	m.records = filling{}
	own := manyKeys("own", many)
	m.Step(Write{Slot: 2, Op: 1, Keys: own, Command: many})
	reads, writes := slices.Concat(own, manyKeys("read", many)), manyKeys("other", many)
	var fetches []Fetch
	for n := range OpID(times) {
		fetches = append(fetches, m.Step(Read{Slot: 2, Op: 2 + n, Keys: reads, Command: 0})[0].(Fetch))
	}
	for n := range OpID(times) {
		m.Step(Write{Slot: 1, Op: 1 + n, Keys: writes, Command: many})
	}
	for range events {
		m.Step(LoadChanged{Depth: DefaultDepth})
	}
	for _, f := range fetches {
		e := Fetched{Slot: f.Slot, Op: f.Op}
		for _, k := range f.Keys {
			e.Records = append(e.Records, Record{Key: k, Image: str("-")})
		}
		if a := m.Step(e); len(f.Keys) != many || len(a) != 1 || a[0].(Reply).Data != len(reads) {
			t.Errorf("%d records are fetched, and then there is %.100v", len(f.Keys), a)
		}
	}
}

// TestManyKeysInDoubt has a speculative slot read very many records while the head writes the last of them. The machine
// must not search all of them at each event until that write is done.
func TestManyKeysInDoubt(t *testing.T) {
	const many, events = 100_000, 10_000
	m := ahead()
	m.records = filling{}
	last := []forerun.Key{key("last")}
	m.Step(Write{Slot: 1, Op: 1, Keys: last, Command: 1})
	if s, ok := m.Step(Read{Slot: 2, Op: 1, Keys: slices.Concat(manyKeys("read", many), last), Command: 0})[0].(Stall); !ok || s.Slot != 2 {
		t.Fatalf("it does not wait: %+v", s)
	}
	for range events {
		m.Step(LoadChanged{Depth: DefaultDepth})
	}
	if f, ok := m.Step(Done{Slot: 1, Op: 1, Wrote: last})[0].(Fetch); !ok || len(f.Keys) != many+1 {
		t.Errorf("when that is done %d records are fetched", len(f.Keys))
	}
}

// TestFetchedKeysAreInTheirPlaces has a slot read records of which it has some, and one twice.
func TestFetchedKeysAreInTheirPlaces(t *testing.T) {
	m := ahead()
	m.Step(Write{Slot: 2, Op: 1, Keys: []forerun.Key{key("b")}, Command: []string{"set", "b", "B"}})
	m.Step(Read{Slot: 2, Op: 2, Keys: []forerun.Key{key("a"), key("b"), key("c"), key("a")}, Command: []string{"get"}})
	a, c := Record{Key: key("a"), Image: str("A")}, Record{Key: key("c"), Image: str("-")}
	if got := m.Step(Fetched{Slot: 2, Op: 2, Records: []Record{a, c, a}}); got[0].(Reply).Data != "A B - A" {
		t.Errorf("%+v", got)
	}
}
