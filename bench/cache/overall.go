package cache

import (
	"fmt"
	"math"
	"strings"

	"forerun.dev/forerun/bench/harness"
)

// overall adds the rows over all applications that were measured, speculation being off.
func (b *bench) overall() {
	passes := map[string][]ratio{}
	var names []string
	for _, r := range b.ratios {
		name := r.pass + ", speculation " + r.speculate
		if passes[name] == nil {
			names = append(names, name)
		}
		passes[name] = append(passes[name], r)
	}
	for _, name := range names {
		b.overallRows(fmt.Sprintf("%d applications, %s", len(passes[name]), name), passes[name])
	}
}

func (b *bench) overallRows(name string, all []ratio) {
	best, tail := math.Inf(1), math.Inf(1)
	var means, tails []float64
	var worse []string
	for _, r := range all {
		best, tail = min(best, r.mean.Value), min(tail, r.p99.Value)
		means, tails = append(means, r.mean.Value), append(tails, r.p99.Value)
		if r.mean.Lower > 1 || r.p99.Lower > 1 {
			worse = append(worse, r.name)
		}
	}
	for _, row := range []struct {
		metric, target string
		value          float64
	}{
		{"mean beside the cache off, the best", "<=0.03", best},
		{"p99 beside the cache off, the best", "<=0.05", tail},
		{"mean beside the cache off, on average", "<=0.4", harness.Mean(means)},
		{"p99 beside the cache off, on average", "<=0.55", harness.Mean(tails)},
		{"applications with an interval above 1", "<=0", float64(len(worse))},
	} {
		b.row(harness.Row{Case: name, Metric: row.metric, Value: harness.Number(row.value), Target: harness.Text(row.target)})
	}
	if worse != nil {
		b.progress("an interval is above 1: %s", strings.Join(worse, "; "))
	}
}
