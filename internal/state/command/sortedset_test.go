package command

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestNothingIsLeftOfSortedSets removes large sorted sets in all ways, and looks at what is still stored.
func TestNothingIsLeftOfSortedSets(t *testing.T) {
	for _, removal := range []string{
		"DEL z", "ZREMRANGEBYRANK z 0 -1", "ZPOPMIN z 1000", "ZREMRANGEBYSCORE z -inf inf", "GETEX z\nPEXPIREAT z 1", "ZDIFFSTORE z 2 z z",
		"PEXPIREAT z 2000\nlater\nZREM z missing",
	} {
		m := &machine{memory: memory{}, now: time.UnixMilli(1000)}
		for _, name := range []string{"z", "zz"} { // a neighbour, whose members stay
			for n := range 300 {
				if _, err := m.run("ZADD", name, fmt.Sprint(n%7), fmt.Sprint(n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := len(m.memory)
		for _, line := range strings.Split(removal, "\n") {
			if line == "later" {
				m.now = m.now.Add(time.Minute)
				continue
			}
			if _, err := m.run(strings.Fields(line)...); err != nil {
				t.Fatal(err)
			}
		}
		if 2*len(m.memory) != before {
			t.Errorf("after %q %d of %d pairs are stored, not half of them", removal, len(m.memory), before)
		}
	}
}

func TestScoresAreInOrder(t *testing.T) {
	scores := []float64{math.Inf(-1), -math.MaxFloat64, -1.5, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, 1.5, 1e300, math.Inf(1)}
	var stored []string
	for _, score := range scores {
		b := orderedScore(score)
		if got := scoreOf(b[:]); got != score {
			t.Errorf("%g comes back as %g", score, got)
		}
		stored = append(stored, string(b[:]))
	}
	if !slices.IsSorted(stored) {
		t.Errorf("not in order: %q", stored)
	}
	if orderedScore(math.Copysign(0, -1)) != orderedScore(0) {
		t.Error("there are two zeros")
	}
}

// TestRanksOfLargeSets compares ranks, and members at ranks, with a set that grows and shrinks by random.
func TestRanksOfLargeSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := &machine{memory: memory{}}
	scores := map[string]float64{}
	for round := range 60 {
		growing := round%20 < 12
		for range 100 {
			member := strconv.Itoa(rng.IntN(3000))
			if _, there := scores[member]; there && !growing {
				delete(scores, member)
				_, _ = m.run("ZREM", "z", member)
				continue
			}
			scores[member] = float64(rng.IntN(40))
			_, _ = m.run("ZADD", "z", strconv.Itoa(int(scores[member])), member)
		}
		var sorted []scored
		for member, score := range scores {
			sorted = append(sorted, scored{[]byte(member), score})
		}
		slices.SortFunc(sorted, scored.compare)
		for range 20 {
			at := rng.IntN(len(sorted))
			member := string(sorted[at].member)
			if reply, _ := m.run("ZRANK", "z", member); reply.Int != int64(at) {
				t.Fatalf("round %d: member %s has rank %s, want %d of %d", round, member, show(reply), at, len(sorted))
			}
			if reply, _ := m.run("ZRANGE", "z", strconv.Itoa(at), strconv.Itoa(at)); show(reply) != "["+strconv.Quote(member)+"]" {
				t.Fatalf("round %d: at rank %d is %s, want %s", round, at, show(reply), member)
			}
		}
	}
}
