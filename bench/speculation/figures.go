package speculation

import (
	"fmt"
	"strings"

	"forerun.dev/forerun/bench/harness"
)

// figures draws the paper's Figures 11 to 14, and Table III, for what was measured.
func (b *bench) figures() error {
	var names []string
	for _, m := range b.measured {
		names = append(names, m.slug)
	}
	shares := []string{"20%", "50%", "80%"}
	var ups, tails []harness.Bars
	for i, share := range shares {
		ups = append(ups, harness.Bars{Name: share, Values: b.at(i, func(l *loaded) float64 { return l.speedup("all").mean })})
		tails = append(tails, harness.Bars{Name: share, Values: b.at(i, func(l *loaded) float64 { return 1 - l.tail()/100 })})
	}
	parts := []harness.Bars{
		{Name: "branches", Values: b.at(0, func(l *loaded) float64 { return l.speedup("branches").mean })},
		{Name: "and memoization, and fast squash", Values: b.at(0, func(l *loaded) float64 { return l.speedup("all").mean })},
	}
	served := []harness.Bars{{Name: "off"}, {Name: "all"}}
	for _, m := range b.measured {
		served[0].Values = append(served[0].Values, m.effective("off"))
		served[1].Values = append(served[1].Values, m.effective("all"))
	}
	hits, hitNames := []harness.Bars{{Name: "Forerun"}, {Name: "paper"}}, []string(nil)
	for _, r := range b.ratios {
		hitNames = append(hitNames, fmt.Sprintf("%.0f%%", r.rate*100))
		hits[0].Values, hits[1].Values = append(hits[0].Values, r.ours), append(hits[1].Values, r.speedup)
	}
	var written []string
	for _, f := range []struct {
		name, title, unit string
		groups            []string
		ratios            bool
		bars              []harness.Bars
	}{
		{"speedup", "Mean speedup, by load (Figure 11)", "times", names, true, ups},
		{"breakdown", "Mean speedup at 20% load, by what is predicted (Figure 12)", "times", names, true, parts},
		{"tail", "P99, as a part of the baseline's (Figure 13)", "part", names, true, tails},
		{"throughput", "Answers within the objective (Table III)", "1/s", names, false, served},
		{"hits", "Mean speedup, by the rate at which branches go as usual (Figure 14)", "times", hitNames, true, hits},
	} {
		if len(f.groups) == 0 {
			continue
		}
		if err := harness.Grouped(b.out, "speculation-"+f.name, f.title, f.unit, f.groups, f.ratios, f.bars...); err != nil {
			return err
		}
		written = append(written, "speculation-"+f.name+".svg")
	}
	fmt.Printf("written to %s: speculation.json, %s\n", b.out, strings.Join(written, ", "))
	return nil
}

// at is a figure of each application at the i-th load.
func (b *bench) at(i int, figure func(*loaded) float64) (values []float64) {
	for _, m := range b.measured {
		values = append(values, overall([]*measured{m}, i, figure))
	}
	return values
}
