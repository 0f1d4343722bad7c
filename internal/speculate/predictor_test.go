package speculate

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"
)

// went is how often a branch went a way, on a path.
type went struct {
	path       uint64
	way, times int
}

// TestPredict asks for the way of a branch of three on a path.
func TestPredict(t *testing.T) {
	const here, there = 1, 2
	for _, c := range []struct {
		name   string
		band   float64
		taught []went
		want   int // 0: none
	}{
		{"nothing is known", 0, nil, 0},
		{"one of three is more than half", 0, []went{{here, 1, 2}, {here, 2, 6}, {here, 3, 2}}, 2},
		{"the likeliest of three is less than half", 0, []went{{here, 1, 3}, {here, 2, 4}, {here, 3, 3}}, 0},
		{"two of three are as likely", 0, []went{{here, 1, 4}, {here, 2, 4}, {here, 3, 1}}, 0},
		{"it is in the band", 0.25, []went{{here, 1, 5}, {here, 2, 1}, {here, 3, 1}}, 0},
		{"it is at the end of the band", 0.25, []went{{here, 1, 6}, {here, 2, 1}, {here, 3, 1}}, 1},
		{"it is above the band", 0.25, []went{{here, 1, 7}, {here, 2, 1}}, 1},
		{"a path unlike the others", DefaultBand, []went{{there, 1, 20}, {here, 3, fewOnPath}}, 3},
		{"a path that is not known", DefaultBand, []went{{there, 1, 20}}, 1},
		{"a path of which too little is known", DefaultBand, []went{{there, 1, 20}, {here, 3, fewOnPath - 1}}, 1},
		{"a path on which anything happens, unlike the others", DefaultBand, []went{{there, 1, 20}, {here, 1, 1}, {here, 2, 1}, {here, 3, 1}}, 0},
		{"it went another way, perhaps by chance", DefaultBand, []went{{here, 1, 300}, {here, 3, wrongToDoubt - 1}}, 1},
		{"it went another way too often", DefaultBand, []went{{here, 1, 300}, {here, 3, wrongToDoubt}}, 0},
		{"it goes its way again", DefaultBand, []went{{here, 1, 300}, {here, 3, 100}, {here, 1, 1}}, 1},
		{"it goes its way once, then not again", DefaultBand, []went{{here, 1, 300}, {here, 3, wrongToDoubt}, {here, 1, 1}, {here, 3, 1}, {here, 1, 1}}, 0},
		{"it may be changing its ways", DefaultBand, []went{{here, 1, 300}, {here, 3, 200}}, 0},
		{"it has changed its ways", DefaultBand, []went{{here, 1, 300}, {here, 2, 10}, {here, 3, 300}}, 3}, // 300 of 610 would be none
	} {
		t.Run(c.name, func(t *testing.T) {
			p, b := NewPredictor(), Branch{Place: 4}
			for _, o := range c.taught {
				for range o.times {
					p.Learn(Outcome{Branch: b, Path: o.path, Next: o.way, Value: json.RawMessage(strconv.Itoa(o.way)), Likely: 0.5 + c.band})
				}
			}
			value, ok := p.Predict(b, here, 0.5+c.band)
			if ok != (c.want != 0) || ok && string(value) != strconv.Itoa(c.want) {
				t.Errorf("it predicts %s (%v), want %d", value, ok, c.want)
			}
			if value, ok := p.Predict(Branch{Place: 5}, here, 0.5); ok {
				t.Errorf("of another branch it predicts %s", value)
			}
		})
	}
}

// novelties are counted to different bounds.
var novelties = []Novelty{Unasked, Unseen}

// predicted is how often a branch was, and wrongly.
type predicted struct{ made, wrong int }

// follow teaches a branch's outcomes. Each is chosen after the prediction is known. The paths that lead there take turns, each for a
// number of times.
func follow(input Novelty, times, paths, stay int, choose func(guess, ok bool) bool) (s predicted) {
	p, b := NewPredictor(), Branch{Place: 4, Input: input}
	for n := range times {
		path := uint64(n / stay % paths)
		value, ok := p.Predict(b, path, 0.5+DefaultBand)
		guess := string(value) == "true"
		way := choose(guess, ok)
		if ok {
			s.made++
		}
		if ok && way != guess {
			s.wrong++
		}
		o := Outcome{Branch: b, Path: path, Value: json.RawMessage(strconv.FormatBool(way)), Likely: 0.5 + DefaultBand}
		if way {
			o.Next = 1
		}
		p.Learn(o)
	}
	return s
}

// TestAdversary goes against each prediction, and keeps the counts balanced where there is none. Without doubt, 399 of a thousand are
// wrong. On ever new paths that also holds with doubts of paths alone: so many paths push each other out, with their doubts.
func TestAdversary(t *testing.T) {
	against := func(guess, ok bool) bool { return !ok || !guess }
	for _, paths := range []int{1, 2, 10, 64, 128, 1000} {
		for _, stay := range []int{1, 2, 7, 10, 30} {
			for times, most := range map[int]int{1000: 25, 10_000: 170} {
				for _, input := range novelties {
					if s := follow(input, times, paths, stay, against); s.wrong > most {
						t.Errorf("on %d paths, %d times each, inputs %d: it is fooled %d times of %d", paths, stay, input, s.wrong, times)
					}
				}
			}
		}
	}
}

// TestChanceIsNoAdversary: a branch with a fixed rate is nearly always predicted, whatever chance does. On many paths little is known of
// each.
func TestChanceIsNoAdversary(t *testing.T) {
	for rate, least := range map[float64]struct{ onePath, manyPaths int }{1: {9990, 9990}, 0.9: {9980, 9950}, 0.8: {9950, 9800}, 0.7: {9650, 9000}} {
		for _, paths := range []int{1, 2, 10, 64, 128, 1000} {
			for _, input := range novelties {
				random := rand.New(rand.NewPCG(1, 2))
				s := follow(input, 10_000, paths, 1, func(bool, bool) bool { return random.Float64() < rate })
				if s.made < least.manyPaths || paths == 1 && s.made < least.onePath {
					t.Errorf("of a branch that goes one way in %.0f%% of the cases, on %d paths, inputs %d, %d of 10,000 are predicted", rate*100, paths, input, s.made)
				}
			}
		}
	}
}
