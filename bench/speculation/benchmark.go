package speculation

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
)

// benchmark is a line of what a package's own benchmarks say: a name, and values by their units.
type benchmark struct {
	name   string
	values map[string]float64
}

// value is what the line has of a unit; NaN if it has nothing.
func (b benchmark) value(unit string) float64 {
	if v, ok := b.values[unit]; ok {
		return v
	}
	return math.NaN()
}

// benchmarks runs benchmarks of a package.
func benchmarks(ctx context.Context, folder, pattern, lasting string) ([]benchmark, error) {
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchtime", lasting, folder).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("the benchmarks of %s failed (they are run in the project's folder, as root): %w: %s", folder, err, out)
	}
	found := readBenchmarks(string(out))
	if len(found) == 0 {
		return nil, fmt.Errorf("the benchmarks of %s said nothing: %s", folder, out)
	}
	return found, nil
}

// readBenchmarks reads lines: a name with the number of processors behind it, how often it was run, and values with their units.
func readBenchmarks(text string) (all []benchmark) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		b := benchmark{values: make(map[string]float64)}
		b.name, _, _ = strings.Cut(fields[0], "-")
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				b.values[fields[i+1]] = value
			}
		}
		all = append(all, b)
	}
	return all
}
