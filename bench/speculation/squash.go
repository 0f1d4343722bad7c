package speculation

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"

	"forerun.dev/forerun/bench/harness"
)

// measureSquash has the worker's own benchmark squash handlers, and reads what it says.
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
	found := squashes(string(out))
	if len(found) == 0 {
		return fmt.Errorf("the worker's benchmark said nothing of squashes: %s", out)
	}
	for _, f := range found {
		b.row(harness.Row{
			Case: "squash of a " + f.language + " function", Metric: "p50 until the sandbox is ready", Unit: "ms",
			Value: harness.Number(f.ready / 1000), Target: harness.Text("<=1.5"),
		})
		b.row(harness.Row{
			Case: "squash of a " + f.language + " function", Metric: "p50 until the next has ended", Unit: "ms",
			Value: harness.Number(f.next / 1000), Baseline: harness.Number(f.plain / 1000),
		})
	}
	return nil
}

// squashed is what the worker's benchmark says of a language, in microseconds: until the sandbox is ready, until the next
// activation has ended, and how long that takes otherwise.
type squashed struct {
	language           string
	ready, next, plain float64
}

// squashes reads lines of benchmarks: a name, how often it was run, and values with their units.
func squashes(text string) (all []squashed) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "BenchmarkSquash/") {
			continue
		}
		language, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "BenchmarkSquash/"), "-")
		s := squashed{language: language, ready: math.NaN(), next: math.NaN(), plain: math.NaN()}
		into := map[string]*float64{"p50-squash-to-ready-us": &s.ready, "p50-squash-and-next-us": &s.next, "p50-plain-us": &s.plain}
		for i := 2; i+1 < len(fields); i += 2 {
			if at := into[fields[i+1]]; at != nil {
				if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
					*at = value
				}
			}
		}
		all = append(all, s)
	}
	return all
}
