package speculation

import (
	"context"
	"strings"

	"forerun.dev/forerun/bench/harness"
)

// measureSquash has the worker's own benchmark squash handlers, and reads what it says, in microseconds.
func measureSquash(ctx context.Context, b *bench) error {
	times := "100x"
	if b.quick {
		times = "20x"
	}
	found, err := benchmarks(ctx, "./internal/worker", "BenchmarkSquash$", times)
	if err != nil {
		return err
	}
	for _, f := range found {
		name := "squash of a " + strings.TrimPrefix(f.name, "BenchmarkSquash/") + " function"
		b.row(harness.Row{
			Case: name, Metric: "p50 until the sandbox is ready", Unit: "ms",
			Value: harness.Number(f.value("p50-squash-to-ready-us") / 1000), Target: harness.Text("<=1.5"),
		})
		b.row(harness.Row{
			Case: name, Metric: "p50 until the next has ended", Unit: "ms",
			Value: harness.Number(f.value("p50-squash-and-next-us") / 1000), Baseline: harness.Number(f.value("p50-plain-us") / 1000),
		})
	}
	return nil
}
