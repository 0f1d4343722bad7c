package speculation

import (
	"fmt"
	"math"
	"slices"

	"forerun.dev/forerun/bench/harness"
)

// figures draws the paper's Figures 11 to 14, and Tables III and IV, for what was measured: bars of each application, of each suite's mean, and
// beside those what the paper prints of it. It returns the names of the files.
func (b *bench) figures() (written []string, err error) {
	all := b.groups()
	for _, f := range []struct {
		name, title string
		groups      groups
		bars        []harness.Bars
	}{
		{"speedup", "Mean speedup, by load (Figure 11)", all, all.speedups()},
		{"breakdown", "Mean speedup at 20% load, by what is done for it (Figure 12)", all, all.parts()},
		{"tail", "P99, as a part of the baseline's (Figure 13)", all, all.tails()},
		{"throughput", "Answers within twice the baseline's time alone, beside the baseline's (Table III)", all, all.throughputs()},
		{"hits", "Mean speedup, by hit rate and, in brackets, the one in effect (Figure 14)", b.rates(), b.hitRates()},
		{"cost", "Processor time beside the baseline's, by hit rate (Table IV)", b.rates(), b.hitCosts()},
	} {
		if !slices.ContainsFunc(f.bars, measuredAny) {
			continue
		}
		name := "speculation-" + f.name
		if err := harness.Grouped(b.out, name, f.title, "times", f.groups.names(), true, f.bars...); err != nil {
			return nil, err
		}
		written = append(written, name+".svg")
	}
	return written, nil
}

// measuredAny reports whether bars are some of what was measured.
func measuredAny(b harness.Bars) bool {
	return !b.Hollow && slices.ContainsFunc(b.Values, func(v float64) bool { return !math.IsNaN(v) })
}

// group is bars beside each other: of an application, or of the mean of some.
type group struct {
	name  string
	of    []*measured
	paper suite // what it prints of them
}

type groups []group

// groups are the applications, the suites of which some were measured, and all suites together.
func (b *bench) groups() (all groups) {
	none := math.NaN()
	nothing := suite{
		speedup: [3]float64{none, none, none}, branches: none, memoized: none, all: none, tail: none, baseline: none, served: none, throughput: none,
	}
	for _, m := range b.measured {
		all = append(all, group{m.slug, []*measured{m}, nothing})
	}
	for _, s := range append(suites(), whole()) {
		if of := b.of(s); len(of) > 0 {
			all = append(all, group{s.name, of, s})
		}
	}
	return all
}

func (g groups) names() (names []string) {
	for _, one := range g {
		names = append(names, one.name)
	}
	return names
}

// ours are bars of what was measured, papers of what the paper prints.
func (g groups) ours(name string, colour int, figure func(*group) float64) harness.Bars {
	bars := harness.Bars{Name: name, Colour: colour}
	for i := range g {
		bars.Values = append(bars.Values, figure(&g[i]))
	}
	return bars
}

func (g groups) papers(name string, colour int, figure func(*suite) float64) harness.Bars {
	bars := g.ours(name, colour, func(one *group) float64 { return figure(&one.paper) })
	bars.Hollow = true
	return bars
}

// meanColour is that of bars that the paper has for all loads together.
const meanColour = 3

// shares are the loads' of the capacity.
func shares() []string { return []string{"20%", "50%", "80%"} }

// speedups are Figure 11.
func (g groups) speedups() (bars []harness.Bars) {
	for i, load := range []string{"low", "medium", "high"} {
		ours := g.ours("Forerun, "+shares()[i], i, func(one *group) float64 {
			return overall(one.of, i, speedupOf("all"))
		})
		bars = append(bars, ours, g.papers("paper, "+load+" load", i, func(s *suite) float64 { return s.speedup[i] }))
	}
	return append(bars, g.papers("paper, mean of all loads", meanColour, func(s *suite) float64 { return s.all }))
}

// parts are Figure 12: without its last part squashes end sandboxes.
func (g groups) parts() (bars []harness.Bars) {
	for i, part := range []struct {
		name  string
		ours  func(of []*measured) float64
		paper func(*suite) float64
	}{
		{"branches", func(of []*measured) float64 { return naively(of, naiveBranches) }, func(s *suite) float64 { return s.branches }},
		{"and memoization", func(of []*measured) float64 { return naively(of, naive) }, func(s *suite) float64 { return s.memoized }},
		{"and fast squash", func(of []*measured) float64 { return overall(of, 0, speedupOf("all")) }, func(s *suite) float64 { return s.all }},
	} {
		ours := g.ours("Forerun: "+part.name, i, func(one *group) float64 { return part.ours(one.of) })
		bars = append(bars, ours, g.papers("paper, mean of all loads: "+part.name, i, part.paper))
	}
	return bars
}

// tails are Figure 13.
func (g groups) tails() (bars []harness.Bars) {
	for i, share := range shares() {
		bars = append(bars, g.ours("Forerun, "+share, i, func(one *group) float64 { return 1 - overall(one.of, i, (*loaded).tail)/100 }))
	}
	return append(bars, g.papers("paper, mean of all loads", meanColour, func(s *suite) float64 { return 1 - s.tail/100 }))
}

// throughputs are Table III's ratios: its machines answer more in a second than this one.
func (g groups) throughputs() []harness.Bars {
	return []harness.Bars{
		g.ours("Forerun", 1, func(one *group) float64 { return effective(one.of, "all") / effective(one.of, "off") }),
		g.papers("paper", 1, func(s *suite) float64 { return s.throughput }),
	}
}

// rates are the groups of Figure 14.
func (b *bench) rates() (all groups) {
	for _, r := range b.ratios {
		all = append(all, group{name: fmt.Sprintf("%.0f%% (%.1f%%) %s", r.rate*100, r.effective*100, r.of)})
	}
	return all
}

// byRate are bars of what was measured at each rate, and of what the paper has there.
func (b *bench) byRate(ours, paper func(*ratio) float64) []harness.Bars {
	all := []harness.Bars{{Name: "Forerun", Colour: 1}, {Name: "paper", Colour: 1, Hollow: true}}
	for i := range b.ratios {
		all[0].Values = append(all[0].Values, ours(&b.ratios[i]))
		all[1].Values = append(all[1].Values, paper(&b.ratios[i]))
	}
	return all
}

// hitRates are Figure 14.
func (b *bench) hitRates() []harness.Bars {
	return b.byRate(func(r *ratio) float64 { return r.ours }, func(r *ratio) float64 { return r.speedup })
}

// hitCosts are Table IV.
func (b *bench) hitCosts() []harness.Bars {
	return b.byRate(func(r *ratio) float64 { return r.uses }, func(r *ratio) float64 { return r.cpu })
}
