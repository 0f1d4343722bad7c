package harness

import (
	"math"
	"slices"
	"testing"
)

// A bar that is not there takes no room, and a group's name is below the middle of those that are.
func TestBarsAreLaid(t *testing.T) {
	none := math.NaN()
	bars := []Bars{{Values: []float64{1, 2}}, {Values: []float64{none, 3}}, {Values: []float64{4, none}}}
	places, ticks, width := lay([]string{"a", "b"}, bars)
	const first, second = betweenGroups / 2, 2 + 3*betweenGroups/2
	for i, want := range [][]float64{{first, second}, {first + 1, second + 1}, {first + 1, second + 2}} {
		if !slices.Equal(places[i], want) {
			t.Errorf("bars %d begin at %v; want %v", i, places[i], want)
		}
	}
	if ticks[0].Value != first+1 || ticks[1].Value != second+1 || width != 4+2*betweenGroups {
		t.Errorf("ticks %v, width %v", ticks, width)
	}
}
