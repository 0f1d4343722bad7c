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
