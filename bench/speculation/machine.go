package speculation

import (
	"context"
	"fmt"
	"strings"

	"forerun.dev/forerun/bench/harness"
)

// measureMachine has the machine's own benchmarks drive it alone, and reads what they say.
func measureMachine(ctx context.Context, b *bench) error {
	lasting := "2s"
	if b.quick {
		lasting = "200ms"
	}
	found, err := benchmarks(ctx, "./internal/speculate", "^(BenchmarkStep|BenchmarkMemory)$", lasting)
	if err != nil {
		return err
	}
	for _, f := range found {
		b.machineRow(f)
	}
	return nil
}

// machineRow is a row of a benchmark: how fast the machine hears the events of a workload, or what it has grown by.
func (b *bench) machineRow(f benchmark) {
	if workload, ok := strings.CutPrefix(f.name, "BenchmarkStep/"); ok {
		b.row(harness.Row{
			Case: "speculate.Step, " + workload, Metric: "events", Unit: "1/s of a core",
			Value: harness.Number(f.value("events/cpu-s")), Target: harness.Text(">=1000000"),
		})
		return
	}
	first, last := f.value("MB-after-1M"), f.value("MB-after-10M")
	b.row(harness.Row{
		Case: "speculate.Step, no input seen twice", Metric: "memory held after ten million events (baseline: one million)", Unit: "MB",
		Value: harness.Number(last), Baseline: harness.Number(first), Target: harness.Text(fmt.Sprintf("<=%.2f", mostHeld(first))),
	})
}

// mostHeld is how many MB BenchmarkMemory allows after ten million events.
func mostHeld(first float64) float64 { return first*1.05 + 1 }
