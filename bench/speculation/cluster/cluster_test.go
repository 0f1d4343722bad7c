package cluster

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func cost() Cost {
	return Cost{CPU: 2 * time.Millisecond, Call: time.Millisecond, Wait: 8 * time.Millisecond}
}

func mean(all []float64) (sum float64) {
	for _, x := range all {
		sum += x / float64(len(all))
	}
	return sum
}

// play asks one request at a time of a machine without bounds.
func play(a *Application, mode string) Played {
	return Play(Run{Application: a, Mode: mode, Processors: 1000, Rate: 1, Requests: 400})
}

func TestWithoutSpeculationTimesAddUp(t *testing.T) {
	composed, err := Composed("composed", 8, 3, 1, cost())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*Application{composed, Called("called", 12, 4, 3, cost())} {
		took, cpu := a.Alone()
		p := play(a, "off")
		if want := took.Seconds() * 1000; math.Abs(mean(p.MS)-want) > 0.001 {
			t.Errorf("%s: a request takes %v ms, not %v", a.Name, mean(p.MS), want)
		}
		if math.Abs(p.CPU-cpu.Seconds()) > 1e-9 || p.Squashed != 0 {
			t.Errorf("%s: %v s of processors, %v squashed; want %v and none", a.Name, p.CPU, p.Squashed, cpu.Seconds())
		}
	}
}

func TestAllThatIsPredictedRunsAtOnce(t *testing.T) {
	a, err := Composed("composed", 8, 3, 1, cost())
	if err != nil {
		t.Fatal(err)
	}
	took, _ := a.Alone()
	p := play(a, "all")
	if up := took.Seconds() * 1000 / mean(p.MS); up < 5 || up > 8 {
		t.Errorf("eight functions take %v ms, alone %v: %.1fx", mean(p.MS), took, up)
	}
	called := Called("called", 12, 4, 3, cost())
	took, _ = called.Alone()
	if up := took.Seconds() * 1000 / mean(play(called, "all").MS); up < 3 {
		t.Errorf("twelve functions that call each other: %.1fx", up)
	}
}

func TestWhatIsPredictedWrongIsSquashed(t *testing.T) {
	sure, err := Composed("composed", 8, 3, 1, cost())
	if err != nil {
		t.Fatal(err)
	}
	unsure, err := Composed("composed", 8, 3, 0.7, cost())
	if err != nil {
		t.Fatal(err)
	}
	a, b := play(sure, "all"), play(unsure, "all")
	if a.Squashed != 0 || b.Squashed == 0 || mean(b.MS) <= mean(a.MS) {
		t.Errorf("sure: %v ms, %v s squashed; unsure: %v ms, %v s", mean(a.MS), a.Squashed, mean(b.MS), b.Squashed)
	}
	lazy := Play(Run{Application: unsure, Mode: "all", Processors: 1000, Rate: 1, Requests: 400, Lazy: true})
	if more := lazy.Squashed - b.Squashed; more <= 0 || math.Abs(lazy.CPU-b.CPU-more) > 1e-9 {
		t.Errorf("run to their ends squashed functions take %v s of %v, else %v of %v", lazy.Squashed, lazy.CPU, b.Squashed, b.CPU)
	}
	if off := play(unsure, "off"); mean(b.MS) >= mean(off.MS) {
		t.Errorf("ahead %v ms, else %v ms", mean(b.MS), mean(off.MS))
	}
}

func TestApplicationsHaveTheShapeTheyAreAskedFor(t *testing.T) {
	for _, c := range []struct{ n, callees, depth int }{{11, 5, 3}, {18, 3, 5}, {24, 4, 4}} {
		a := Called("called", c.n, c.callees, c.depth, cost())
		var depth func(string) int
		reached := 0
		depth = func(name string) int {
			reached++
			deepest := 0
			for _, callee := range a.functions[name].calls {
				deepest = max(deepest, depth(callee))
			}
			if len(a.functions[name].calls) > c.callees {
				t.Errorf("%s has %d callees", name, len(a.functions[name].calls))
			}
			return deepest + 1
		}
		if d := depth("f0"); d != c.depth || reached != c.n {
			t.Errorf("%+v: depth %d, %d functions", c, d, reached)
		}
	}
}

// TestEffectsAreInTheirTurn: what waits for an effect waits for it when it is the head, and no sooner.
func TestEffectsAreInTheirTurn(t *testing.T) {
	const composition = `{"type":"if","test":{"type":"action","name":"/_/a"},"consequent":{"type":"action","name":"/_/b"},"alternate":{"type":"action","name":"/_/c"}}`
	wait := Cost{CPU: 2 * time.Millisecond, Wait: 10 * time.Millisecond}
	act := wait
	act.Acts = true
	for name, c := range map[string]struct {
		b  Cost
		ms float64
	}{"both at once": {wait, 12}, "an effect after what goes before": {act, 23}} {
		a, err := Tested(name, json.RawMessage(composition), "", nil, map[string]Cost{"a": wait, "b": c.b, "c": wait}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := mean(play(a, "all").MS); math.Abs(got-c.ms) > 0.1 {
			t.Errorf("%s: %v ms, not %v", name, got, c.ms)
		}
		if took, _ := a.Alone(); took != 24*time.Millisecond {
			t.Errorf("%s: %v without speculation", name, took)
		}
	}
}

func TestRequestsUnderWay(t *testing.T) {
	a := Called("called", 12, 4, 3, cost())
	took, _ := a.Alone()
	p := Play(Run{Application: a, Processors: 1000, InFlight: 7, Requests: 700})
	if want := 7 / took.Seconds(); math.Abs(p.PerSecond-want) > want/50 {
		t.Errorf("%v answers in a second, not %v", p.PerSecond, want)
	}
}
