package speculation

import (
	"context"
	"fmt"

	"forerun.dev/forerun/bench/harness"
)

// ratio is a bar of Figure 14: what was measured of something at a rate.
type ratio struct {
	hit
	of        string
	effective float64 // share of the functions that ran ahead and were right: beside branches, outputs are predicted
	ours      float64
	uses      float64 // processor time, beside the baseline's
}

// name says of what it is and, as what is asked for again is known, which rate came of it.
func (r *ratio) name() string {
	return fmt.Sprintf("hit rate %.0f%%, in effect %.1f%%: %s", r.rate*100, r.effective*100, r.of)
}

// predicted are subjects whose branches go the usual way at a rate, to be averaged.
type predicted struct {
	of       string
	subjects []*subject
}

// measureHits is Figure 14 and Table IV: FaaSChain's applications, and the tree, with branches that go the usual way at a rate.
func measureHits(ctx context.Context, b *bench) error {
	for _, h := range hits() {
		all, err := b.atRate(h)
		if err != nil {
			return err
		}
		for _, p := range all {
			r, err := b.hit(ctx, h, p)
			if err != nil {
				return fmt.Errorf("%s at %.0f%%: %w", p.of, h.rate*100, err)
			}
			b.ratios = append(b.ratios, r)
		}
	}
	return nil
}

// atRate are those of a rate. FaaSChain's mistakes are fresh, and again as few make them: most of those are known, and the rate in effect is
// above the one at which branches go the usual way. A rough look has the fresh alone.
func (b *bench) atRate(h hit) ([]predicted, error) {
	all := []predicted{{"tree", []*subject{{
		slug: "tree", action: "tree", want: `"x":1`, inputs: branching(h.rate), deploy: deployTree(isBranch), settings: "; band=0",
	}}}}
	for _, k := range []struct {
		name, slug string
		draw       drawing
	}{
		{"FaaSChain, fresh mistakes", "-fresh", fresh(h.rate)},
		{"FaaSChain", "", usual(h.rate)},
	} {
		if b.quick && k.slug == "" {
			continue
		}
		apps, err := applications(k.draw, b.companies)
		if err != nil {
			return nil, err
		}
		own := of("FaaSChain", apps)
		for _, s := range own {
			s.slug += k.slug
		}
		all = append(all, predicted{k.name, own})
	}
	return all, nil
}

func of(suite string, all []*subject) (own []*subject) {
	for _, s := range all {
		if s.suite == suite {
			own = append(own, s)
		}
	}
	return own
}

// hit measures some subjects together, at one rate.
func (b *bench) hit(ctx context.Context, h hit, p predicted) (ratio, error) {
	var ups, uses, squashed []float64
	var ahead outcomes
	for _, s := range p.subjects {
		loads, err := b.loadsOf(ctx, fmt.Sprintf("%s-%.0f", s.slug, h.rate*100), s)
		if err != nil {
			return ratio{}, fmt.Errorf("%s: %w", s.slug, err)
		}
		for _, l := range loads {
			all, off := l.mode["all"], l.baseline()
			ups = append(ups, l.speedup("all").Value)
			uses = append(uses, all.cpuPer()/off.cpuPer())
			squashed = append(squashed, all.wastedPer()/off.cpuPer())
			ahead.add(all.ahead, outcomes{})
		}
	}
	r := ratio{h, p.of, ahead.rate(), harness.Mean(ups), harness.Mean(uses)}
	b.hitRows(r, harness.Mean(squashed))
	return r, nil
}

// hitRows are what was measured at a rate, and at the usual one what it is to be.
func (b *bench) hitRows(r ratio, squashed float64) {
	name, cpuTarget, squashedTarget := r.name(), "", ""
	if r.isUsual() {
		cpuTarget, squashedTarget = "<=1.1", "<=0.05"
	}
	b.row(harness.Row{Case: name, Metric: "mean speedup, loads of 20 and 50%", Unit: "x", Value: harness.Number(r.ours), Paper: harness.Number(r.speedup)})
	b.row(harness.Row{
		Case: name, Metric: "processor time beside the baseline's", Unit: "x", Value: harness.Number(r.uses), Paper: harness.Number(r.cpu),
		Target: harness.Text(cpuTarget),
	})
	b.row(harness.Row{
		Case: name, Metric: "that of squashed functions, beside the baseline's", Unit: "x", Value: harness.Number(squashed),
		Target: harness.Text(squashedTarget),
	})
	b.row(harness.Row{Case: name, Metric: "effective hit rate: right, of the functions that ran ahead", Value: harness.Number(r.effective)})
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
