package speculation

import (
	"fmt"
	"math"
	"os"

	"forerun.dev/forerun/bench/harness"
)

// finish makes rows of what was measured, prints the table and writes the files.
func (b *bench) finish() error {
	for _, m := range b.measured {
		b.loadRows(m)
		b.servedRows(m)
	}
	b.suiteRows()
	if err := b.testedRows(); err != nil {
		return err
	}
	if err := b.report.Table(os.Stdout); err != nil {
		return err
	}
	if len(b.only) > 0 {
		return nil
	}
	if err := b.report.Write(b.out, "speculation"); err != nil {
		return err
	}
	return b.figures()
}

func (l *loaded) title(m *measured) string { return fmt.Sprintf("%s at %.0f%%", m.slug, l.share*100) }

// speedup compares a mode with the baseline.
func (l *loaded) speedup(mode string) speedup {
	return compare(l.mode["off"].ms, l.mode[mode].ms, l.rate)
}

// tail is how much lower the slowest answers are, in percent of the baseline's.
func (l *loaded) tail() float64 {
	return 100 * (1 - quantile(l.mode["all"].ms, 0.99)/quantile(l.mode["off"].ms, 0.99))
}

// loadRows are Figures 11 to 13, application by application.
func (b *bench) loadRows(m *measured) {
	for i, l := range m.loads {
		name, off, all := l.title(m), l.mode["off"], l.mode["all"]
		up := l.speedup("all")
		b.row(harness.Row{Case: name, Metric: fmt.Sprintf("speedup, %d requests, %.1f/s", len(all.ms), l.rate), Unit: "x", Value: harness.Number(up.mean), Interval: up.interval()})
		if m.bound > 0 {
			target := ""
			if i == 0 && m.suite != "synthetic" {
				target = ">=0.8"
			}
			b.row(harness.Row{
				Case: name, Metric: "share of Amdahl's bound (baseline), effects in their turn", Value: harness.Number(up.mean / m.bound),
				Baseline: harness.Number(m.bound), Target: harness.Text(target),
			})
		}
		branches := l.speedup("branches")
		b.row(harness.Row{Case: name, Metric: "speedup, branches alone", Unit: "x", Value: harness.Number(branches.mean), Interval: branches.interval()})
		noise := l.speedup(again)
		b.row(harness.Row{Case: name, Metric: "the baseline beside itself: noise", Unit: "x", Value: harness.Number(noise.mean), Interval: noise.interval()})
		b.row(harness.Row{Case: name, Metric: "rounds left out: neighbours had more than 5% of the processors", Value: harness.Number(float64(l.stolen))})
		b.row(harness.Row{Case: name, Metric: "share of the processors that neighbours had", Value: harness.Number(all.stolenShare()), Baseline: harness.Number(off.stolenShare())})
		for _, q := range []struct {
			name  string
			share float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			before, after := quantile(off.ms, q.share), quantile(all.ms, q.share)
			b.row(harness.Row{Case: name, Metric: q.name, Unit: "ms", Value: harness.Number(after), Baseline: harness.Number(before), Ratio: harness.Number(after / before)})
		}
		b.row(harness.Row{Case: name, Metric: "processor time of a request", Unit: "ms", Value: harness.Number(all.cpuPer()), Baseline: harness.Number(off.cpuPer()), Ratio: harness.Number(all.cpuPer() / off.cpuPer())})
		b.row(harness.Row{Case: name, Metric: "time of squashed functions, of a request", Unit: "ms", Value: harness.Number(all.wasted * 1000 / float64(len(all.ms)))})
		b.row(harness.Row{Case: name, Metric: "ahead and right, of a request", Value: harness.Number(all.ahead.right / float64(len(all.ms)))})
		b.row(harness.Row{Case: name, Metric: "sandboxes started meanwhile", Value: harness.Number(all.cold), Baseline: harness.Number(off.cold)})
		b.row(harness.Row{Case: name, Metric: "ahead and wrong, of a request", Value: harness.Number(all.ahead.wrong / float64(len(all.ms)))})
	}
}

// servedRows are Table III, application by application.
func (b *bench) servedRows(m *measured) {
	for _, s := range m.served {
		b.row(harness.Row{
			Case: m.slug, Metric: fmt.Sprintf("answers, %d requests under way", s.inFlight), Unit: "1/s",
			Value: harness.Number(s.rate["all"]), Baseline: harness.Number(s.rate["off"]), Ratio: harness.Number(s.rate["all"] / s.rate["off"]),
		})
	}
	if len(m.served) > 0 {
		off, all := m.effective("off"), m.effective("all")
		b.row(harness.Row{
			Case: m.slug, Metric: fmt.Sprintf("most answers within %.0f ms", 2*m.alone), Unit: "1/s",
			Value: harness.Number(all), Baseline: harness.Number(off), Ratio: harness.Number(all / off),
		})
	}
}

// suites are the paper's, with what it has of each: the speedup at low, medium and high load, and the effective throughput.
func suites() []suite {
	return []suite{
		{"FaaSChain", []float64{5.2, 5.0, 4.9}, 62, 4.1, 2.9, 3.9},
		{"TrainTicket", []float64{4.2, 4.4, 4.3}, 56, 3.8, math.NaN(), 3.5},
		{"Alibaba", []float64{4.4, 4.5, 4.6}, 58, 3.7, math.NaN(), 3.5},
	}
}

type suite struct {
	name       string
	speedup    []float64 // at low, medium and high load
	tail       float64   // percent
	throughput float64
	branches   float64 // speedup of branch prediction alone
	memoized   float64 // with memoization, sandboxes being ended by squashes
}

// suiteRows are the averages of the suites and of all their applications: the paper's bars.
func (b *bench) suiteRows() {
	var of []*measured
	for _, s := range suites() {
		var own []*measured
		for _, m := range b.measured {
			if m.suite == s.name {
				own = append(own, m)
			}
		}
		of = append(of, own...)
		for i := range s.speedup {
			up := overall(own, i, func(l *loaded) float64 { return l.speedup("all").mean })
			b.average(s.name, i, "mean speedup", "x", up, s.speedup[i], "")
			b.average(s.name, i, "mean speedup, branches alone", "x", overall(own, i, func(l *loaded) float64 { return l.speedup("branches").mean }), s.branches, "")
			b.average(s.name, i, "p99 lower by", "%", overall(own, i, (*loaded).tail), s.tail, "")
		}
	}
	for i, target := range []string{">=4.6", "", ""} {
		b.average("all applications", i, "mean speedup", "x", overall(of, i, func(l *loaded) float64 { return l.speedup("all").mean }), 4.6, target)
		b.average("all applications", i, "p99 lower by", "%", overall(of, i, (*loaded).tail), 58.7, ">=58.7")
		b.average("all applications", i, "processor time beside the baseline's", "x", overall(of, i, func(l *loaded) float64 {
			return l.mode["all"].cpuPer() / l.mode["off"].cpuPer()
		}), 1.03, "<=1.1")
	}
	b.throughputRows()
	if lowest := slowest(of); !math.IsNaN(lowest) {
		b.row(harness.Row{Case: "all applications", Metric: "lowest upper end of a speedup's interval, any load", Unit: "x", Value: harness.Number(lowest), Target: harness.Text(">=0.97")})
	}
}

// fixed is how many requests are under way where throughputs are compared: one for each processor. With many more the processors
// are what bounds both modes.
const fixed = 2

// throughputRows are Table III: the averages of the suites, and where functions do not wait.
func (b *bench) throughputRows() {
	metric := fmt.Sprintf("answers in a second, %d requests under way", fixed)
	var all []float64
	for _, s := range suites() {
		ratios := b.served(func(m *measured) bool { return m.suite == s.name })
		all = append(all, ratios...)
		if len(ratios) > 0 {
			b.row(harness.Row{Case: s.name, Metric: metric, Unit: "x", Value: harness.Number(mean(ratios)), Paper: harness.Number(s.throughput)})
		}
	}
	if len(all) > 0 {
		b.row(harness.Row{Case: "all applications", Metric: metric, Unit: "x", Value: harness.Number(mean(all)), Paper: harness.Number(3.9), Target: harness.Text(">=3.9")})
	}
	if ratios := b.served(func(m *measured) bool { return m.cpu }); len(ratios) > 0 {
		b.row(harness.Row{Case: "functions that do not wait", Metric: metric, Unit: "x", Value: harness.Number(mean(ratios)), Target: harness.Text(">=0.97")})
	}
}

// served are the ratios of the throughputs of some applications.
func (b *bench) served(which func(*measured) bool) (ratios []float64) {
	for _, m := range b.measured {
		for _, s := range m.served {
			if s.inFlight == fixed && which(m) {
				ratios = append(ratios, s.rate["all"]/s.rate["off"])
			}
		}
	}
	return ratios
}

// average adds a row if its value was measured.
func (b *bench) average(name string, load int, metric, unit string, value, paper float64, target string) {
	if math.IsNaN(value) {
		return
	}
	at := []string{"low", "medium", "high"}[load]
	b.row(harness.Row{Case: name + ", " + at + " load", Metric: metric, Unit: unit, Value: harness.Number(value), Paper: harness.Number(paper), Target: harness.Text(target)})
}

// overall is the mean of a figure over applications at the i-th load; NaN if none was measured.
func overall(of []*measured, i int, figure func(*loaded) float64) float64 {
	var all []float64
	for _, m := range of {
		if i < len(m.loads) {
			all = append(all, figure(m.loads[i]))
		}
	}
	return mean(all)
}

// slowest is the lowest upper end of an interval; NaN if nothing was measured.
func slowest(of []*measured) float64 {
	lowest := math.NaN()
	for _, m := range of {
		for _, l := range m.loads {
			if upper := l.speedup("all").upper; !(upper >= lowest) {
				lowest = upper
			}
		}
	}
	return lowest
}
