package speculation

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"forerun.dev/forerun/bench/harness"
)

// finish makes rows of what was measured, plays it on more processors, prints the table and writes the files.
func (b *bench) finish() error {
	b.applicationRows()
	if err := b.testedRows(); err != nil {
		return err
	}
	if err := b.report.Table(os.Stdout); err != nil {
		return err
	}
	if !b.files {
		return nil
	}
	written, err := b.write()
	if err == nil {
		fmt.Printf("written to %s: %s\n", b.out, strings.Join(written, ", "))
	}
	return err
}

// keep writes what is measured so far: a run takes hours, and may be ended before.
func (b *bench) keep() error {
	if !b.files {
		return nil
	}
	apart := len(b.report.Rows)
	b.applicationRows()
	_, err := b.write()
	b.report.Rows = b.report.Rows[:apart]
	return err
}

// write writes the report and the figures, and returns their names.
func (b *bench) write() ([]string, error) {
	if err := b.report.Write(b.out, "speculation"); err != nil {
		return nil, err
	}
	figures, err := b.figures()
	return append([]string{"speculation.json"}, figures...), err
}

// applicationRows are those of each application, and of their suites.
func (b *bench) applicationRows() {
	for _, m := range b.measured {
		b.loadRows(m)
		b.servedRows(m)
		if m.naive != nil {
			b.naiveRows(m)
		}
	}
	b.suiteRows()
}

func (l *loaded) title(m *measured) string { return fmt.Sprintf("%s at %.0f%%", m.slug, l.share*100) }

// baseline is all that was measured of it: in each round before and behind the other modes, if it was twice.
func (l *loaded) baseline() *result {
	off, last := l.mode["off"], l.mode[again]
	if last == nil {
		return off
	}
	both := new(result)
	both.add(off)
	both.add(last)
	return both
}

// speedup compares a mode with the baseline, of which each answer took the mean of both times; NaN if it was not measured.
func (l *loaded) speedup(mode string) harness.Quotient {
	r := l.mode[mode]
	if r == nil {
		r = new(result)
	}
	off := l.mode["off"].ms
	if last := l.mode[again]; last != nil && mode != again {
		off = slices.Clone(off)
		for i := range off {
			off[i] = (off[i] + last.ms[i]) / 2
		}
	}
	return harness.Compare(harness.Mean, off, r.ms, len(r.ms)/max(1, l.rounds))
}

// tail is how much lower the slowest answers are, in percent of the baseline's.
func (l *loaded) tail() float64 {
	return 100 * (1 - harness.Quantile(l.mode["all"].ms, 0.99)/harness.Quantile(l.baseline().ms, 0.99))
}

// leastShare is how much of what Amdahl's law leaves each application is to gain at the first load, effects being in their turn.
const leastShare = ">=0.8"

// boundRows are the shares of both bounds, if they are known; the bounds are the baselines.
func (b *bench) boundRows(name string, speedup float64, of bounds, target string) {
	if of.inTurn == 0 {
		return
	}
	b.row(harness.Row{
		Case: name, Metric: "share of Amdahl's bound, effects in their turn (baseline)", Value: harness.Number(speedup / of.inTurn),
		Baseline: harness.Number(of.inTurn), Target: harness.Text(target),
	})
	b.row(harness.Row{
		Case: name, Metric: "share of Amdahl's bound, all functions at once (baseline)", Value: harness.Number(speedup / of.plain),
		Baseline: harness.Number(of.plain),
	})
}

// loadRows are Figures 11 to 13, application by application.
func (b *bench) loadRows(m *measured) {
	for i, l := range m.loads {
		name, off, all := l.title(m), l.baseline(), l.mode["all"]
		up := l.speedup("all")
		b.row(harness.Row{Case: name, Metric: fmt.Sprintf("speedup, %d requests, %.1f/s", len(all.ms), l.rate), Unit: "x", Value: harness.Number(up.Value), Interval: up.Interval()})
		target := ""
		if i == 0 && m.suite != "synthetic" {
			target = leastShare
		}
		b.boundRows(name, up.Value, m.bounds, target)
		branches := l.speedup("branches")
		b.row(harness.Row{Case: name, Metric: "speedup, branches alone", Unit: "x", Value: harness.Number(branches.Value), Interval: branches.Interval()})
		noise := l.speedup(again)
		b.row(harness.Row{Case: name, Metric: "the baseline beside itself: noise", Unit: "x", Value: harness.Number(noise.Value), Interval: noise.Interval()})
		b.row(harness.Row{Case: name, Metric: "rounds left out: the machine's neighbours disturbed them", Value: harness.Number(float64(l.leftOut))})
		b.row(harness.Row{Case: name, Metric: "share of the processors that neighbours had", Value: harness.Number(all.stolenShare()), Baseline: harness.Number(off.stolenShare())})
		for _, q := range []struct {
			name  string
			share float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			before, after := harness.Quantile(off.ms, q.share), harness.Quantile(all.ms, q.share)
			b.row(harness.Row{Case: name, Metric: q.name, Unit: "ms", Value: harness.Number(after), Baseline: harness.Number(before), Ratio: harness.Number(after / before)})
		}
		b.row(harness.Row{Case: name, Metric: "processor time of a request", Unit: "ms", Value: harness.Number(all.cpuPer()), Baseline: harness.Number(off.cpuPer()), Ratio: harness.Number(all.cpuPer() / off.cpuPer())})
		b.row(harness.Row{Case: name, Metric: "processor time of squashed functions, of a request", Unit: "ms", Value: harness.Number(all.wastedPer())})
		b.row(harness.Row{Case: name, Metric: "ahead and right, of a request", Value: harness.Number(all.ahead.right / float64(len(all.ms)))})
		b.row(harness.Row{Case: name, Metric: "sandboxes started meanwhile", Value: harness.Number(all.cold), Baseline: harness.Number(l.mode["off"].cold)})
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

// of is what was measured of a suite's applications, or of all suites'.
func (b *bench) of(s suite) (own []*measured) {
	for _, m := range b.measured {
		if m.suite == s.name || s.name == whole().name && slices.ContainsFunc(suites(), func(one suite) bool { return one.name == m.suite }) {
			own = append(own, m)
		}
	}
	return own
}

// suiteRows are the averages of the suites and of all their applications: the paper's bars.
func (b *bench) suiteRows() {
	for _, s := range suites() {
		own := b.of(s)
		for i := range s.speedup {
			b.average(s.name, i, "mean speedup", "x", overall(own, i, speedupOf("all")), s.speedup[i], "")
			b.average(s.name, i, "mean speedup, branches alone", "x", overall(own, i, speedupOf("branches")), math.NaN(), "")
			b.average(s.name, i, "p99 lower by", "%", overall(own, i, (*loaded).tail), math.NaN(), "")
		}
		b.average(s.name, 0, "mean speedup, "+naiveBranches+" (paper: all loads)", "x", naively(own, naiveBranches), s.branches, "")
		b.average(s.name, 0, "mean speedup, "+naive+" (paper: all loads)", "x", naively(own, naive), s.memoized, "")
		b.meanRows(s)
	}
	all := whole()
	of := b.of(all)
	for i, targets := range [][2]string{{">=4.6", ">=58.7"}, {"", ">=58.7"}, {"", ">=58.7"}} {
		b.average(all.name, i, "mean speedup", "x", overall(of, i, speedupOf("all")), all.speedup[i], targets[0])
		b.average(all.name, i, "p99 lower by", "%", overall(of, i, (*loaded).tail), math.NaN(), targets[1])
		b.average(all.name, i, "processor time beside the baseline's", "x", overall(of, i, (*loaded).toll), math.NaN(), "<=1.1")
		if worst, upper := slowest(of, i); worst != nil {
			b.average(all.name, i, "lowest upper end of a speedup's interval: "+worst.slug, "x", upper, math.NaN(), ">=0.97")
		}
	}
	b.meanRows(all)
	b.throughputRows()
}

// meanRows are the means of all loads: most of what the paper prints.
func (b *bench) meanRows(s suite) {
	of, cpu := b.of(s), math.NaN()
	if s.name == suites()[0].name {
		cpu = usualCPU
	}
	for _, r := range []struct {
		metric, unit string
		figure       func(*loaded) float64
		paper        float64
	}{
		{"mean speedup", "x", speedupOf("all"), s.all},
		{"p99 lower by", "%", (*loaded).tail, s.tail},
		{"processor time beside the baseline's", "x", (*loaded).toll, cpu},
	} {
		var loads []float64
		for i := range s.speedup {
			loads = append(loads, overall(of, i, r.figure))
		}
		b.average(s.name, meanOfLoads, r.metric, r.unit, harness.Mean(loads), r.paper, "")
	}
}

// toll is the processor time of a request beside the baseline's.
func (l *loaded) toll() float64 { return l.mode["all"].cpuPer() / l.baseline().cpuPer() }

// naively is the mean speedup in a mode in which squashes end sandboxes.
func naively(of []*measured, mode string) float64 {
	var all []float64
	for _, m := range of {
		if m.naive != nil {
			all = append(all, m.naive.speedup(mode).Value)
		}
	}
	return harness.Mean(all)
}

// naiveRows are an application's in these modes.
func (b *bench) naiveRows(m *measured) {
	for _, mode := range m.naiveModes() {
		name, up := m.slug+" at 20%, "+mode, m.naive.speedup(mode)
		b.row(harness.Row{Case: name, Metric: "speedup", Unit: "x", Value: harness.Number(up.Value), Interval: up.Interval()})
		b.row(harness.Row{Case: name, Metric: "sandboxes started meanwhile", Value: harness.Number(m.naive.mode[mode].cold), Baseline: harness.Number(m.naive.mode["off"].cold)})
	}
}

func speedupOf(mode string) func(*loaded) float64 {
	return func(l *loaded) float64 { return l.speedup(mode).Value }
}

// fixed is how many requests are under way where throughputs are compared: one for each processor. With many more the processors
// are what bounds both modes.
const fixed = 2

// leastServed is how many times the baseline's answers there are to be: with so many requests under way, and of those in time.
const leastServed = ">=3.9"

// throughputRows are Table III: the averages of the suites, and where functions do not wait.
func (b *bench) throughputRows() {
	metric := fmt.Sprintf("answers in a second, %d requests under way", fixed)
	var all []float64
	for _, s := range suites() {
		ratios := b.served(func(m *measured) bool { return m.suite == s.name })
		all = append(all, ratios...)
		if len(ratios) > 0 {
			b.row(harness.Row{Case: s.name, Metric: metric, Unit: "x", Value: harness.Number(harness.Mean(ratios)), Paper: harness.Number(s.throughput)})
		}
	}
	if len(all) > 0 {
		b.row(harness.Row{Case: whole().name, Metric: metric, Unit: "x", Value: harness.Number(harness.Mean(all)), Paper: harness.Number(whole().throughput), Target: harness.Text(leastServed)})
	}
	for _, s := range suites() {
		b.effectiveRows(s, "")
	}
	b.effectiveRows(whole(), leastServed)
	if ratios := b.served(func(m *measured) bool { return m.cpu }); len(ratios) > 0 {
		b.row(harness.Row{Case: "functions that do not wait", Metric: metric, Unit: "x", Value: harness.Number(harness.Mean(ratios)), Target: harness.Text(">=0.97")})
	}
}

// effectiveRows are a row of Table III, and what its last figure is to be.
func (b *bench) effectiveRows(s suite, target string) {
	of := b.of(s)
	off, all := effective(of, "off"), effective(of, "all")
	if math.IsNaN(off) || math.IsNaN(all) {
		return
	}
	const metric = "most answers within twice the baseline's time alone"
	b.row(harness.Row{Case: s.name, Metric: metric + ": the baseline's", Unit: "1/s", Value: harness.Number(off), Paper: harness.Number(s.baseline)})
	b.row(harness.Row{Case: s.name, Metric: metric, Unit: "1/s", Value: harness.Number(all), Baseline: harness.Number(off), Paper: harness.Number(s.served)})
	b.row(harness.Row{Case: s.name, Metric: metric + ", beside the baseline's", Unit: "x", Value: harness.Number(all / off), Paper: harness.Number(s.throughput), Target: harness.Text(target)})
}

// effective is the mean over applications of what is effective; NaN if that was not measured of each.
func effective(of []*measured, mode string) float64 {
	var all []float64
	for _, m := range of {
		all = append(all, m.effective(mode))
	}
	return harness.Mean(all)
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

// meanOfLoads is a load's number that stands for all of them.
const meanOfLoads = 3

// average adds a row if its value was measured.
func (b *bench) average(name string, load int, metric, unit string, value, paper float64, target string) {
	if math.IsNaN(value) {
		return
	}
	at := []string{"low load", "medium load", "high load", "mean of all loads"}[load]
	b.row(harness.Row{Case: name + ", " + at, Metric: metric, Unit: unit, Value: harness.Number(value), Paper: harness.Number(paper), Target: harness.Text(target)})
}

// overall is the mean of a figure over applications at the i-th load; NaN if none was measured.
func overall(of []*measured, i int, figure func(*loaded) float64) float64 {
	var all []float64
	for _, m := range of {
		if i < len(m.loads) {
			all = append(all, figure(m.loads[i]))
		}
	}
	return harness.Mean(all)
}

// slowest is the application with the lowest upper end of its speedup's interval at the i-th load; nil if none was measured.
func slowest(of []*measured, i int) (worst *measured, lowest float64) {
	lowest = math.Inf(1)
	for _, m := range of {
		if i >= len(m.loads) {
			continue
		}
		if upper := m.loads[i].speedup("all").Upper; upper < lowest {
			worst, lowest = m, upper
		}
	}
	return worst, lowest
}
