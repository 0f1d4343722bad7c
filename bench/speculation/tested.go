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
	costs := costsOf(m.profile, m.loads[0].mode["off"].cpuPer())
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

// simulated is what an application gains at each of its loads on so many processors.
type simulated struct {
	speedup, tail []float64
}

func (m *measured) simulate(processors int) (s simulated, err error) {
	a, err := m.tested()
	if err != nil {
		return s, err
	}
	for _, l := range m.loads {
		off, all := playAt(processors, a, l.share, "off", 0), playAt(processors, a, l.share, "all", 0)
		s.speedup = append(s.speedup, mean(off.MS)/mean(all.MS))
		s.tail = append(s.tail, 100*(1-quantile(all.MS, 0.99)/quantile(off.MS, 0.99)))
	}
	return s, nil
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
			b.row(harness.Row{Case: b.on(runtime.NumCPU(), l.title(m)), Metric: "mean speedup (measured)", Unit: "x", Value: harness.Number(few.speedup[i]), Baseline: harness.Number(l.speedup("all").mean)})
			b.row(harness.Row{Case: b.on(runtime.NumCPU(), l.title(m)), Metric: "p99 lower by (measured)", Unit: "%", Value: harness.Number(few.tail[i]), Baseline: harness.Number(l.tail())})
			b.row(harness.Row{Case: b.on(processors, l.title(m)), Metric: "mean speedup", Unit: "x", Value: harness.Number(many.speedup[i])})
			b.row(harness.Row{Case: b.on(processors, l.title(m)), Metric: "p99 lower by", Unit: "%", Value: harness.Number(many.tail[i])})
		}
		b.boundRows(b.on(processors, m.loads[0].title(m)), many.speedup[0], m.bounds, leastShare)
	}
	b.testedAverages(runtime.NumCPU(), here, "", "")
	b.testedAverages(processors, there, ">=4.6", ">=58.7")
	return nil
}

// testedAverages are those of all applications on so many processors, with the bars of the lowest load's speedup and of p99.
func (b *bench) testedAverages(processors int, all []simulated, up, tail string) {
	if len(all) == 0 {
		return
	}
	const what = "all measured applications, "
	var ups, tails []float64
	for i, load := range []string{"low", "medium", "high"} {
		var own, lower []float64
		for _, s := range all {
			own, lower = append(own, s.speedup[i]), append(lower, s.tail[i])
		}
		ups, tails = append(ups, mean(own)), append(tails, mean(lower))
		name := b.on(processors, what+load+" load")
		b.row(harness.Row{Case: name, Metric: "mean speedup", Unit: "x", Value: harness.Number(ups[i]), Target: harness.Text(up)})
		b.row(harness.Row{Case: name, Metric: "p99 lower by", Unit: "%", Value: harness.Number(tails[i]), Target: harness.Text(tail)})
		up = ""
	}
	name, paper := b.on(processors, what+"mean of all loads"), whole()
	b.row(harness.Row{Case: name, Metric: "mean speedup", Unit: "x", Value: harness.Number(mean(ups)), Paper: harness.Number(paper.all)})
	b.row(harness.Row{Case: name, Metric: "p99 lower by", Unit: "%", Value: harness.Number(mean(tails)), Paper: harness.Number(paper.tail)})
}

func (b *bench) on(processors int, what string) string {
	return fmt.Sprintf("simulated, %d cores: %s", processors, what)
}
