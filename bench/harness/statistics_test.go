package harness

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestArrivalsComeAtTheirRate(t *testing.T) {
	due := Arrivals(1, 200, 50*time.Second)
	if n := len(due); n < 9700 || n > 10300 {
		t.Errorf("%d arrivals in 50 s at 200 in a second", n)
	}
	var squares float64
	for i := 1; i < len(due); i++ {
		if due[i] < due[i-1] || due[i] >= 50*time.Second {
			t.Fatalf("arrival %d is at %v, after %v", i, due[i], due[i-1])
		}
		gap := (due[i] - due[i-1]).Seconds() * 200
		squares += gap * gap / float64(len(due))
	}
	if squares < 1.8 || squares > 2.2 { // an exponential distribution's is 2
		t.Errorf("the mean square of the gaps is %v", squares)
	}
}

func TestIntervalHoldsTheRatio(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	off, all := make([]float64, 400), make([]float64, 400)
	for i := range off {
		off[i], all[i] = 80+40*random.Float64(), 20+10*random.Float64()
	}
	up := Compare(Mean, off, all, 0)
	if up.Value < 3.8 || up.Value > 4.2 || up.Lower >= up.Value || up.Upper <= up.Value || up.Upper-up.Lower > 0.2 {
		t.Errorf("%+v", up)
	}
	if slow := slices.Concat(all[:100], off[100:200], all[:200]); Compare(Mean, off, slow, 100).Lower >= Compare(Mean, off, slow, 0).Lower {
		t.Error("a slow second is one event, not a hundred")
	}
	if none := Compare(Mean, nil, nil, 0); !math.IsNaN(none.Value) || none.Interval() != nil {
		t.Errorf("of nothing: %+v", none)
	}
}
