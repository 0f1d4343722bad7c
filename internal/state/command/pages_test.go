package command

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/history"
)

// TestPages holds pages against a map, through random edits, and sees that older pages stay what they were.
func TestPages(t *testing.T) {
	for seed, rng := range history.Rounds(t) {
		t.Logf("seed %d", seed)
		comparePages(t, rng)
	}
}

func comparePages(t *testing.T, rng *rand.Rand) {
	t.Helper()
	var p pages
	model := map[string]string{}
	key := func() string { return fmt.Sprintf("%03d", rng.IntN(1000)) }
	for range 300 {
		old, before := p, maps.Clone(model)
		if rng.IntN(20) == 0 {
			from, to := key(), []byte(key())
			if rng.IntN(4) == 0 {
				from = ""
			}
			if rng.IntN(4) == 0 {
				to = nil
			}
			p = p.cleared([]byte(from), to)
			maps.DeleteFunc(model, func(k, _ string) bool { return k >= from && (to == nil || k < string(to)) })
		}
		changes := map[string]edit{}
		for range rng.IntN(300) {
			k := key()
			changes[k] = edit{pair{[]byte(k), []byte(strings.Repeat("x", rng.IntN(9)))}, rng.IntN(3) == 0}
		}
		var edits []edit
		for _, k := range slices.Sorted(maps.Keys(changes)) {
			e := changes[k]
			edits = append(edits, e)
			if model[k] = string(e.value); e.deleted {
				delete(model, k)
			}
		}
		p = p.edited(edits)
		samePages(t, p, model, key(), key())
		samePages(t, old, before, "", "999")
	}
}

func samePages(t *testing.T, p pages, model map[string]string, from, to string) {
	t.Helper()
	size := 0
	for k, v := range model {
		size += len(k) + len(v)
		if got, found := p.get([]byte(k)); !found || string(got) != v {
			t.Fatalf("%s is %q, %v, want %q", k, got, found, v)
		}
	}
	if p.n != len(model) || p.size != size {
		t.Fatalf("%d pairs of %d bytes, want %d of %d", p.n, p.size, len(model), size)
	}
	if _, found := p.get([]byte("none")); found {
		t.Fatal("found what is not there")
	}
	for _, reverse := range []bool{false, true} {
		var got, want []string
		p.scan([]byte(from), []byte(to), reverse, func(e pair) bool {
			got = append(got, string(e.key))
			return len(got) < 100
		})
		for _, k := range slices.Sorted(maps.Keys(model)) {
			if k >= from && k < to {
				want = append(want, k)
			}
		}
		if reverse {
			slices.Reverse(want)
		}
		if want = want[:min(len(want), 100)]; !slices.Equal(got, want) {
			t.Fatalf("from %s to %s, reverse %v: %q, want %q", from, to, reverse, got, want)
		}
	}
}
