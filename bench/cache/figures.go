package cache

import (
	"strings"

	"forerun.dev/forerun/bench/harness"
)

// figures draws each application beside itself with the cache off, as the paper's figures 10 and 11, and the suites under load.
func (b *bench) figures() error {
	var groups []string
	var means, tails, paperMeans, paperTails []float64
	for _, r := range b.ratios {
		if r.speculate != "off" || r.pass != seen {
			continue
		}
		groups = append(groups, r.app)
		means, tails = append(means, r.mean.Value), append(tails, r.p99.Value)
		paperMeans, paperTails = append(paperMeans, r.paper.keptMean/r.paper.mean), append(paperTails, r.paper.keptP99/r.paper.p99)
	}
	if err := harness.Grouped(b.out, "cache-latency", "Latency beside the cache off (Figures 10 and 11)", "ratio", groups, true,
		harness.Bars{Name: "mean", Colour: 1, Values: means}, harness.Bars{Name: "paper, mean", Colour: 1, Hollow: true, Values: paperMeans},
		harness.Bars{Name: "p99", Colour: 2, Values: tails}, harness.Bars{Name: "paper, p99", Colour: 2, Hollow: true, Values: paperTails},
	); err != nil {
		return err
	}
	groups = nil
	var bars [4][]float64
	for _, l := range b.loads {
		groups = append(groups, strings.TrimSuffix(l.name, ", speculation off"))
		for i, v := range []float64{l.served, l.cpu, l.memory, l.paper} {
			bars[i] = append(bars[i], v)
		}
	}
	return harness.Grouped(b.out, "cache-load", "Suites under load, beside the cache off (Figures 12 and 14 to 18)", "ratio", groups, true,
		harness.Bars{Name: "requests in a second", Colour: 1, Values: bars[0]}, harness.Bars{Name: "paper, beside FaasCache", Colour: 1, Hollow: true, Values: bars[3]},
		harness.Bars{Name: "processor time of a request", Colour: 2, Values: bars[1]}, harness.Bars{Name: "memory", Colour: 3, Values: bars[2]})
}
