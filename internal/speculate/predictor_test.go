package speculate

import (
	"encoding/json"
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
		{"it is in the band", 0.25, []went{{here, 1, 6}, {here, 2, 1}, {here, 3, 1}}, 0},
		{"it is above the band", 0.25, []went{{here, 1, 7}, {here, 2, 1}}, 1},
		{"a path unlike the others", DefaultBand, []went{{there, 1, 20}, {here, 3, fewOnPath}}, 3},
		{"a path that is not known", DefaultBand, []went{{there, 1, 20}}, 1},
		{"a path of which too little is known", DefaultBand, []went{{there, 1, 20}, {here, 3, fewOnPath - 1}}, 1},
		{"a path on which anything happens, unlike the others", DefaultBand, []went{{there, 1, 20}, {here, 1, 1}, {here, 2, 1}, {here, 3, 1}}, 0},
		{"it has changed its ways, but seldom", DefaultBand, []went{{here, 1, 300}, {here, 3, 100}}, 1},
		{"it may be changing its ways", DefaultBand, []went{{here, 1, 300}, {here, 3, 200}}, 0},
		{"it has changed its ways", DefaultBand, []went{{here, 1, 300}, {here, 2, 10}, {here, 3, 300}}, 3}, // 300 of 610 would be none
	} {
		t.Run(c.name, func(t *testing.T) {
			p, b := NewPredictor(), Branch{Place: 4}
			for _, o := range c.taught {
				for range o.times {
					p.Learn(Outcome{Branch: b, Path: o.path, Next: o.way, Value: json.RawMessage(strconv.Itoa(o.way))})
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
