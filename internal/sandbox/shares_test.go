package sandbox

import "testing"

// TestShares: an owner has as much as is left for others.
func TestShares(t *testing.T) {
	const most = 1000
	s := NewShares(most)
	taken := func(owner string) (n int) {
		for s.Take(owner) {
			n++
		}
		return n
	}
	first, second := taken("a"), taken("b")
	if first != most/2 || second != most/4 {
		t.Errorf("the first owner has %d, the second %d", first, second)
	}
	s.Count("c", most/4)
	if s.Fits("a") || s.Fits("c") || !s.Fits("d") {
		t.Error("who has something fits although nothing is left, or who has nothing does not")
	}
	s.Count("c", -most/4)
	s.Count("a", -first)
	if more := taken("b"); second+more != most/2 || len(s.of) != 1 {
		t.Errorf("afterwards the second has %d more, of %v", more, s.of)
	}
}

// TestHalfOfShares: what can wait leaves half of what its owner may have.
func TestHalfOfShares(t *testing.T) {
	s, n := NewShares(1000), 0
	for s.TakeHalf("a") {
		n++
	}
	if n != 250 || !s.Take("a") {
		t.Errorf("what can wait has %d of 1000", n)
	}
}
