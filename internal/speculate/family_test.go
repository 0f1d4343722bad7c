package speculate

import (
	"encoding/json"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// TestFamilies: early reads are counted for a whole family of records. At the bound, reads of that family are stalled
// for a while.
func TestFamilies(t *testing.T) {
	p := NewPredictor()
	producer, consumer := forerun.Digest{1}, forerun.Digest{2}
	blames := func(names ...string) {
		for _, name := range names {
			p.Blame(Blame{Producer: producer, Consumer: consumer, Key: key(name)})
		}
	}
	read := func(name string) blame { return blame{producer: producer, consumer: consumer, key: key(name)} }
	stalls := func(want bool, names ...string) {
		t.Helper()
		for _, name := range names {
			if got := p.isListed(read(name)); got != want {
				t.Errorf("%s is stalled: %v", name, got)
			}
		}
	}
	blames("app:ticket:ada", "app:ticket:bob")
	stalls(false, "app:ticket:ada", "app:ticket:eve")
	blames("app:ticket:cyd")
	stalls(true, "app:ticket:ada", "app:ticket:eve")
	stalls(false, "app:seats:ada", "ticket")
	if p.isListed(blame{producer: consumer, consumer: producer, key: key("app:ticket:ada")}) {
		t.Error("another pair's reads are stalled")
	}
	for range stallsToRetry {
		stalls(true, "app:ticket:eve")
		p.spend(read("app:ticket:eve"))
	}
	stalls(false, "app:ticket:eve")

	blames("x:1", "y:1", "z:1", "x:2", "y:2", "z:2") // of no kind
	stalls(false, "x:1", "y:1", "z:1", "x:3")
	blames("one", "one", "one")
	stalls(true, "one")
	stalls(false, "one:two", "on")
	for i := range stallsToRetry {
		stalls(true, "one")
		if p.spend(read("one")); i == stallsToRetry-1 {
			stalls(false, "one")
		}
	}
}

func TestCommonPrefix(t *testing.T) {
	for _, c := range [][3]string{
		{"a:b", "a:c", "a:"},
		{"user17", "user18", ""},
		{"a:", "a:b:c", "a:"},
		{"a/b/1", "a/b/2", "a/b/"},
		{"", "a", ""},
		{"a:1", "b:1", ""},
		{"k-é", "k-è", "k-"},
		{"t:user1:x", "t:user2:x", "t:"},
	} {
		if got := commonPrefix(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q begin with %q; want %q", c[0], c[1], got, c[2])
		}
	}
}

// isListed tells whether a read is to be stalled.
func (p *Predictor) isListed(b blame) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listed(b) != nil
}

// TestEarlyReadsAreForgiven: only squashes in a row are listed, but for a read now and then; of one record as of a whole family.
func TestEarlyReadsAreForgiven(t *testing.T) {
	for name, names := range map[string][]string{"a record": {"k", "k", "k", "k"}, "records of a kind": {"k:1", "k:2", "k:3", "k:4"}} {
		for between, want := range map[int]bool{0: true, trustToForgive - 1: true, trustToForgive: false} {
			p := NewPredictor()
			b := Blame{Producer: forerun.Digest{1}, Consumer: forerun.Digest{2}}
			read := func(name string) blame { return blame{producer: b.Producer, consumer: b.Consumer, key: key(name)} }
			for _, name := range names[:squashesToStall] {
				b.Key = key(name)
				p.Blame(b)
				for range between {
					p.trust(read(name))
				}
			}
			if got := p.isListed(read(names[3])); got != want {
				t.Errorf("%s, %d reads that went well between squashes: stalled %v", name, between, got)
			}
		}
	}
}

// TestReadsAreTrustedOnce: a read that is looked at again and again while it is fetched went well once, when its slot was promoted.
func TestReadsAreTrustedOnce(t *testing.T) {
	m, p := ahead(), NewPredictor()
	m.predictor = p
	p.Blame(Blame{Producer: digest("f"), Consumer: digest("g"), Key: key("k")})
	trusted := func() int {
		return p.blamed[blame{producer: digest("f"), consumer: digest("g"), key: key("k")}].trusted
	}
	m.Step(Read{Slot: 2, Op: 1, Keys: []forerun.Key{key("k")}, Command: []string{"get", "k"}})
	for n := range 25 {
		m.Step(LoadChanged{Depth: 10 + n})
	}
	m.Step(Fetched{Slot: 2, Op: 1, Records: []Record{{Key: key("k"), Image: str("1"), Version: 1}}})
	m.Step(Output{Slot: 2, Result: forerun.Result{Value: json.RawMessage(`{}`)}})
	if n := trusted(); n != 0 {
		t.Errorf("the read counts %d times before it is known that it went well", n)
	}
	m.Step(Output{Slot: 1, Result: forerun.Result{Value: json.RawMessage(`{"f":1}`)}})
	m.Step(Promoted{Slots: []SlotID{2}, Version: 1})
	if n := trusted(); n != 1 {
		t.Errorf("the read counts %d times", n)
	}
}
