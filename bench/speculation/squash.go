package speculation

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"

	"forerun.dev/forerun/bench/harness"
)

// measureSquash has the worker's own benchmark squash handlers, and reads what it says: how long the next activation in the
// sandbox takes beyond one that nothing was squashed before.
func measureSquash(ctx context.Context, b *bench) error {
	times := "100x"
	if b.quick {
		times = "20x"
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "BenchmarkSquash$", "-benchtime", times, "./internal/worker")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the worker's benchmark failed (it is run in the project's folder, as root): %w: %s", err, out)
	}
	found := regexp.MustCompile(`BenchmarkSquash/(\w+)-?\d*\s.*?([\d.]+) p50-plain-us\s+([\d.]+) p50-squash-and-next-us\s+([\d.]+) p99-squash-and-next-us`).FindAllStringSubmatch(string(out), -1)
	if len(found) == 0 {
		return fmt.Errorf("the worker's benchmark said nothing of squashes: %s", out)
	}
	for _, f := range found {
		var us [3]float64
		for i := range us {
			if us[i], err = strconv.ParseFloat(f[i+2], 64); err != nil {
				return err
			}
		}
		target := ""
		if f[1] == "Python" {
			target = "<=1.5"
		}
		b.row(harness.Row{
			Case: "squash of a " + f[1] + " function", Metric: "p50 until the next is ready", Unit: "ms",
			Value: harness.Number((us[1] - us[0]) / 1000), Target: harness.Text(target),
		})
		b.row(harness.Row{
			Case: "squash of a " + f[1] + " function", Metric: "p99 until the next is ready", Unit: "ms", Value: harness.Number((us[2] - us[0]) / 1000),
		})
	}
	return nil
}
