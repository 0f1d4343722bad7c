package speculation

import (
	"context"
	"fmt"

	"forerun.dev/forerun/bench/harness"
)

// ratio is a bar of Figure 14: what was measured at a rate.
type ratio struct {
	hit
	ours float64
}

// measureHits is Figure 14 and Table IV: FaaSChain's applications, and the tree, with branches that go the usual way at a rate. Runs
// for a rough look have the applications at the usual rate alone.
func measureHits(ctx context.Context, b *bench) error {
	for _, h := range hits() {
		tree := &subject{
			slug: "tree", action: "tree", want: `"x":1`, inputs: branching(h.rate), deploy: deployTree(isBranch), settings: "; band=0",
		}
		_, err := b.hit(ctx, "a tree of eight functions, three of them branches", h, tree)
		if err != nil {
			return fmt.Errorf("at %.0f%%: %w", h.rate*100, err)
		}
		if b.quick && !h.isUsual() {
			continue
		}
		all, err := applications(h.rate, b.companies)
		if err != nil {
			return err
		}
		up, err := b.hit(ctx, "FaaSChain", h, of("FaaSChain", all)...)
		if err != nil {
			return fmt.Errorf("at %.0f%%: %w", h.rate*100, err)
		}
		b.ratios = append(b.ratios, ratio{h, up})
	}
	return nil
}

func of(suite string, all []*subject) (own []*subject) {
	for _, s := range all {
		if s.suite == suite {
			own = append(own, s)
		}
	}
	return own
}

// hit adds the rows of some subjects together, at one rate.
func (b *bench) hit(ctx context.Context, name string, h hit, subjects ...*subject) (speedup float64, err error) {
	var ups, uses, squashed, accuracy []float64
	for _, s := range subjects {
		loads, err := b.loadsOf(ctx, fmt.Sprintf("%s-%.0f", s.slug, h.rate*100), s)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.slug, err)
		}
		for _, l := range loads {
			all, off := l.mode["all"], l.mode["off"]
			ups = append(ups, l.speedup("all").mean)
			uses = append(uses, all.cpuPer()/off.cpuPer())
			squashed = append(squashed, all.wastedPer()/off.cpuPer())
			accuracy = append(accuracy, all.ahead.right/(all.ahead.right+all.ahead.wrong))
		}
	}
	cpuTarget, squashedTarget := "", ""
	if h.isUsual() && name == "FaaSChain" {
		cpuTarget, squashedTarget = "<=1.1", "<=0.05"
	}
	name = fmt.Sprintf("hit rate %.0f%%: %s", h.rate*100, name)
	b.row(harness.Row{Case: name, Metric: "mean speedup, loads of 20 and 50%", Unit: "x", Value: harness.Number(mean(ups)), Paper: harness.Number(h.speedup)})
	b.row(harness.Row{
		Case: name, Metric: "processor time beside the baseline's", Unit: "x", Value: harness.Number(mean(uses)), Paper: harness.Number(h.cpu),
		Target: harness.Text(cpuTarget),
	})
	b.row(harness.Row{
		Case: name, Metric: "that of squashed functions, beside the baseline's", Unit: "x", Value: harness.Number(mean(squashed)),
		Target: harness.Text(squashedTarget),
	})
	b.row(harness.Row{Case: name, Metric: "share of functions ahead that were right", Value: harness.Number(mean(accuracy))})
	return mean(ups), nil
}

// loadsOf measures a subject at two loads on a server of its own.
func (b *bench) loadsOf(ctx context.Context, slug string, s *subject) (loads []*loaded, err error) {
	s.slug = slug
	on, err := b.start(ctx, s)
	if err != nil {
		return nil, err
	}
	defer on.stop(b)
	m := &measured{subject: s}
	if err := b.prepare(ctx, on, m); err != nil {
		return nil, err
	}
	err = b.loads(ctx, on, m, []float64{0.2, 0.5}, "off", "all")
	return m.loads, err
}
