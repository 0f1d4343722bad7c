package speculation

import (
	"fmt"
	"runtime"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/speculation/cluster"
	"forerun.dev/forerun/bench/workloads"
)

// Two processors bound what running ahead can gain: all the functions of a request that begin at once share them. So each
// application is also played on the paper's cluster, with what its functions were measured to take: their time of the
// processors, all that the platform does for them included, and how long they wait for companies. That it is played on this
// machine's processors, too, tells how much the simulation is to be believed.

// tested is a measured application, to be played.
func (m *measured) tested() (*cluster.Application, error) {
	costs := costsOf(m.profile, m.loads[0].baseline().cpuPer())
	return cluster.Tested(m.slug, m.profile.Composition, m.profile.Entry, m.profile.Calls, costs, workloads.DefaultHitRate)
}

// costsOf are the costs of functions that take cpu (ms) of the processors together, for one request. What one waits that did not
// run in the profile is the mean of the others.
func costsOf(p *workloads.Profile, cpu float64) map[string]cluster.Cost {
	var runs, wait float64
	for _, f := range p.Profiles {
		runs, wait = runs+f.Share, wait+f.Share*f.Wait
	}
	costs := make(map[string]cluster.Cost)
	for _, f := range p.Profiles {
		if f.Share == 0 {
			f.Wait = wait / runs
		}
		name := f.Name
		if p.Composition != nil {
			name = p.Slug + "-" + name
		}
		costs[name] = cluster.Cost{CPU: milliseconds(cpu / runs), Wait: milliseconds(f.Wait), Acts: f.Acts > 0}
	}
	return costs
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// simulated is what an application gains on so many processors: at each of its loads, and with a request under way for each processor.
type simulated struct {
	speedup, tail []float64
	served        float64
}

func (m *measured) simulate(processors int) (s simulated, err error) {
	a, err := m.tested()
	if err != nil {
		return s, err
	}
	for _, l := range m.loads {
		off, all := playAt(processors, a, l.share, "off", 0), playAt(processors, a, l.share, "all", 0)
		s.speedup = append(s.speedup, harness.Mean(off.MS)/harness.Mean(all.MS))
		s.tail = append(s.tail, 100*(1-harness.Quantile(all.MS, 0.99)/harness.Quantile(off.MS, 0.99)))
	}
	s.served = servedAt(processors, a, "all") / servedAt(processors, a, "off")
	return s, nil
}

// servedAt is how many answers an application gives in a second in a mode, with a request under way for each processor.
func servedAt(processors int, a *cluster.Application, mode string) float64 {
	return cluster.Play(cluster.Run{Application: a, Mode: mode, Processors: processors, InFlight: processors, Requests: played}).PerSecond
}

// servedMetric is what it is called.
func servedMetric(processors int) string {
	return fmt.Sprintf("answers, %d requests under way", processors)
}

// testedRows are the measured applications on this machine's processors and on the paper's, and their averages.
func (b *bench) testedRows() error {
	var here, there []simulated
	for _, m := range b.measured {
		if m.profile == nil || len(m.loads) == 0 {
			continue
		}
		few, err := m.simulate(runtime.NumCPU())
		if err != nil {
			return err
		}
		many, err := m.simulate(processors)
		if err != nil {
			return err
		}
		here, there = append(here, few), append(there, many)
		for i, l := range m.loads {
			b.row(harness.Row{Case: b.on(runtime.NumCPU(), l.title(m)), Metric: "mean speedup (measured)", Unit: "x", Value: harness.Number(few.speedup[i]), Baseline: harness.Number(l.speedup("all").Value)})
			b.row(harness.Row{Case: b.on(runtime.NumCPU(), l.title(m)), Metric: "p99 lower by (measured)", Unit: "%", Value: harness.Number(few.tail[i]), Baseline: harness.Number(l.tail())})
			b.row(harness.Row{Case: b.on(processors, l.title(m)), Metric: "mean speedup", Unit: "x", Value: harness.Number(many.speedup[i])})
			b.row(harness.Row{Case: b.on(processors, l.title(m)), Metric: "p99 lower by", Unit: "%", Value: harness.Number(many.tail[i])})
		}
		b.row(harness.Row{Case: b.on(runtime.NumCPU(), m.slug), Metric: servedMetric(runtime.NumCPU()), Unit: "x", Value: harness.Number(few.served)})
		b.row(harness.Row{Case: b.on(processors, m.slug), Metric: servedMetric(processors), Unit: "x", Value: harness.Number(many.served)})
		b.boundRows(b.on(processors, m.loads[0].title(m)), many.speedup[0], m.bounds, leastShare)
	}
	b.testedAverages(runtime.NumCPU(), here, "", "", "")
	b.testedAverages(processors, there, ">=4.6", ">=58.7", leastServed)
	return nil
}

// testedAverages are those of all applications on so many processors, with the bars of the lowest load's speedup, of p99 and of the
// answers in a second.
func (b *bench) testedAverages(processors int, all []simulated, up, tail, served string) {
	if len(all) == 0 {
		return
	}
	const what = "all measured applications, "
	var ups, tails, answers []float64
	loads := []string{"low", "medium", "high"}
	measured := loads[:len(all[0].speedup)]
	for i, load := range measured {
		var own, lower []float64
		for _, s := range all {
			own, lower = append(own, s.speedup[i]), append(lower, s.tail[i])
		}
		ups, tails = append(ups, harness.Mean(own)), append(tails, harness.Mean(lower))
		name := b.on(processors, what+load+" load")
		b.row(harness.Row{Case: name, Metric: "mean speedup", Unit: "x", Value: harness.Number(ups[i]), Target: harness.Text(up)})
		b.row(harness.Row{Case: name, Metric: "p99 lower by", Unit: "%", Value: harness.Number(tails[i]), Target: harness.Text(tail)})
		up = ""
	}
	name, paper := b.on(processors, what+"mean of all loads"), whole()
	if len(measured) == len(loads) {
		b.row(harness.Row{Case: name, Metric: "mean speedup", Unit: "x", Value: harness.Number(harness.Mean(ups)), Paper: harness.Number(paper.all)})
		b.row(harness.Row{Case: name, Metric: "p99 lower by", Unit: "%", Value: harness.Number(harness.Mean(tails)), Paper: harness.Number(paper.tail)})
	}
	for _, s := range all {
		answers = append(answers, s.served)
	}
	b.row(harness.Row{
		Case: b.on(processors, "all measured applications"), Metric: servedMetric(processors), Unit: "x",
		Value: harness.Number(harness.Mean(answers)), Paper: harness.Number(paper.throughput), Target: harness.Text(served),
	})
}

func (b *bench) on(processors int, what string) string {
	return fmt.Sprintf("simulated, %d cores: %s", processors, what)
}
