package speculation

import (
	"context"
	"fmt"

	"forerun.dev/forerun/bench/harness"
)

// hit is a row of Table IV, with what the paper has.
type hit struct {
	rate    float64
	speedup float64
	cpu     float64 // beside the baseline's
}

func hits() []hit { return []hit{{1, 5.2, 1}, {0.9, 5.0, 1.03}, {0.7, 4.6, 1.08}, {0.5, 4.0, 1.15}} }

// measureHits is Figure 14 and Table IV: the tree, with branches that go as predicted at a rate.
func measureHits(ctx context.Context, b *bench) error {
	for _, h := range hits() {
		if err := b.hit(ctx, h); err != nil {
			return fmt.Errorf("at %.0f%%: %w", h.rate*100, err)
		}
	}
	return nil
}

func (b *bench) hit(ctx context.Context, h hit) error {
	s := &subject{slug: fmt.Sprintf("hits-%.0f", h.rate*100), action: "tree", want: `"x":1`, inputs: branching(h.rate), deploy: deployTree, settings: "; band=0"}
	on, err := b.start(ctx, s)
	if err != nil {
		return err
	}
	defer on.stop(b)
	m := &measured{subject: s}
	if err := b.prepare(ctx, on, m); err != nil {
		return err
	}
	var ups, uses, squashed, accuracy []float64
	for _, share := range []float64{0.2, 0.5} {
		l, err := b.load(ctx, on, m, share)
		if err != nil {
			return err
		}
		all, off := l.mode["all"], l.mode["off"]
		ups = append(ups, l.speedup("all").mean)
		uses = append(uses, all.cpuPer()/off.cpuPer())
		squashed = append(squashed, all.ahead.wrong/float64(len(all.ms)*treeDepth)) // as if each had run to its end
		accuracy = append(accuracy, all.ahead.right/(all.ahead.right+all.ahead.wrong))
	}
	name := fmt.Sprintf("hit rate %.0f%%", h.rate*100)
	cpuTarget, squashedTarget := "", ""
	if h.rate == 0.9 {
		cpuTarget, squashedTarget = "<=1.1", "<=0.05"
	}
	b.row(harness.Row{Case: name, Metric: "mean speedup, loads of 20 and 50%", Unit: "x", Value: harness.Number(mean(ups)), Paper: harness.Number(h.speedup)})
	b.row(harness.Row{Case: name, Metric: "processor time beside the baseline's", Unit: "x", Value: harness.Number(mean(uses)), Paper: harness.Number(h.cpu), Target: harness.Text(cpuTarget)})
	b.row(harness.Row{Case: name, Metric: "of squashed functions, at most, beside the baseline's", Unit: "x", Value: harness.Number(mean(squashed)), Target: harness.Text(squashedTarget)})
	b.row(harness.Row{Case: name, Metric: "share of functions ahead that were right", Value: harness.Number(mean(accuracy))})
	return nil
}
