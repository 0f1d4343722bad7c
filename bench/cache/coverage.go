package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"forerun.dev/forerun/bench/harness"
)

// coverageCode computes for some milliseconds, and answers 50 kB: the paper has 500 MB of inputs and outputs in 10,000 calls.
const coverageCode = `
def main(args):
    total = sum(i * i for i in range(40_000))
    return {"n": args["n"], "total": total, "text": "x" * 50_000}
`

// coverages are the shares of all distinct results for which the table has room, in percent.
func coverages() []int { return []int{0, 25, 50, 75, 100} }

// coverage measures latency and memory by the share of results for which there is room (Figure 20), on a server for each, call by call.
func (b *bench) coverage(ctx context.Context) error {
	distinct, calls := 400, 10_000
	if b.quick {
		distinct, calls = 40, 400
	}
	var all []*subject
	var servers []*side
	for _, percent := range coverages() {
		args := []string{"--speculate", "off", "--cache-rows", strconv.Itoa(max(1, distinct*percent/100))}
		if percent == 0 {
			args = append(args, "--cache", "off")
		}
		s, err := b.start(ctx, args...)
		if err != nil {
			return err
		}
		defer s.stop()
		servers = append(servers, s)
		annotations := append(annotated(), map[string]any{"key": "keep-process", "value": true})
		if err := s.client.Put(ctx, "covered", map[string]any{"exec": map[string]any{"kind": "python:3", "code": coverageCode}, "annotations": annotations}); err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(20, 20)) // the same inputs for each
		var requests []*harness.Request
		for range calls {
			r, err := s.request("covered", fmt.Sprintf(`{"n":%d}`, random.IntN(distinct)), "total")
			if err != nil {
				return err
			}
			requests = append(requests, r)
		}
		all = append(all, newSubject(fmt.Sprintf("coverage of %d%%", percent), requests...))
	}
	if err := interleaved(ctx, calls, 2*distinct, all...); err != nil {
		return err
	}
	latency, memory := make([]float64, len(all)), make([]float64, len(all))
	var groups []string
	for i, s := range all {
		latency[i] = s.mean()
		for _, pid := range harness.Descendants(servers[i].PID()) {
			memory[i] += harness.ProportionalKiB(pid) / 1024
		}
		groups = append(groups, s.name)
		b.row(harness.Row{Case: s.name, Metric: "mean", Unit: "ms", Value: harness.Number(latency[i]), Baseline: harness.Number(latency[0]), Ratio: harness.Number(latency[i] / latency[0])})
		b.row(harness.Row{Case: s.name, Metric: "memory, PSS of server and sandboxes", Unit: "MB", Value: harness.Number(memory[i]), Baseline: harness.Number(memory[0]), Ratio: harness.Number(memory[i] / memory[0])})
	}
	return b.draw(func() error {
		return harness.Grouped(b.out, "cache-coverage", "Latency and memory by coverage, beside the cache off", "ratio", groups, true,
			harness.Bars{Name: "mean latency", Colour: 1, Values: over(latency)}, harness.Bars{Name: "memory", Colour: 2, Values: over(memory)})
	})
}

// over are values by the first.
func over(values []float64) (all []float64) {
	for _, v := range values {
		all = append(all, v/values[0])
	}
	return all
}
