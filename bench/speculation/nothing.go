package speculation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/speculation/cluster"
	"forerun.dev/forerun/test/server"
)

// passes hands its input on; fickle gives something else each time.
const (
	passes = "def main(args):\n    return args\n"
	fickle = "import time\n\ndef main(args):\n    return {'x': 1, 'n': time.time_ns()}\n"
)

// nothings are applications in which nothing can be predicted, or all that is predicted is wrong.
func nothings() []*subject {
	var last atomic.Uint64
	fresh := each(func(uint64, int) any { return map[string]uint64{"x": 1, "n": last.Add(1)} })
	same := each(func(uint64, int) any { return map[string]uint64{"x": 1} })
	const want = `"x":1`
	return []*subject{
		{slug: "cold tables, functions that do nothing", action: "sequence", want: want, inputs: fresh, deploy: deploySequence(passes)},
		{slug: "cold tables, functions that wait", action: "sequence", want: want, inputs: fresh, deploy: deploySequence("import time\n" + passes[:len(passes)-len("    return args\n")] + "    time.sleep(0.010)\n    return args\n")},
		{slug: "outputs that are never as before", action: "sequence", want: want, inputs: same, deploy: deploySequence(fickle)},
		{slug: "branches like coins", action: "tree", want: want, inputs: branching(0.5), deploy: deployTree(isBranch)},
		{slug: "branches that go against each prediction", action: "tree", want: want, inputs: against(cluster.NewAdversary()), deploy: deployTree(always), settings: anyLoad},
	}
}

// measureNothing compares the modes request by request, one at a time, where there is nothing to gain.
func measureNothing(ctx context.Context, b *bench) error {
	for i, s := range nothings() {
		name := s.slug
		s.slug = fmt.Sprintf("nothing-%d", i)
		off, all, err := b.inTurn(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		name = "nothing to predict: " + name
		up, requests := harness.Compare(harness.Mean, all.ms, off.ms, 0), float64(len(all.ms))
		b.row(harness.Row{
			Case: name, Metric: fmt.Sprintf("mean beside the baseline's, %.0f requests", requests), Unit: "x",
			Value: harness.Number(up.Value), Interval: up.Interval(), Baseline: harness.Number(1), Target: harness.Text("<=1.03"),
		})
		b.row(harness.Row{Case: name, Metric: "ahead and right, of a request", Value: harness.Number(all.ahead.right / requests)})
		b.row(harness.Row{Case: name, Metric: "ahead and wrong, of a request", Value: harness.Number(all.ahead.wrong / requests)})
		b.progress("%s: %.2f -> %.2f ms; %v", name, harness.Mean(off.ms), harness.Mean(all.ms), all.ahead)
	}
	return nil
}

// warmedBy is how many requests are sent in each mode before any counts.
const warmedBy = 40

// inTurn sends requests one at a time, each in both modes.
func (b *bench) inTurn(ctx context.Context, s *subject) (off, all *result, err error) {
	on, err := b.start(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	defer on.stop(b)
	n := 300
	if b.quick {
		n = 60
	}
	if _, _, err := on.inTurn(ctx, 0, warmedBy); err != nil {
		return nil, nil, err
	}
	before, err := on.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if off, all, err = on.inTurn(ctx, warmedBy, warmedBy+n); err != nil {
		return nil, nil, err
	}
	after, err := on.read(ctx)
	all.ahead.add(after.outcomes, before.outcomes)
	return off, all, err
}

// inTurn sends a request of each stream from one to another in both modes, by turns.
func (s *started) inTurn(ctx context.Context, from, to int) (off, all *result, err error) {
	off, all = new(result), new(result)
	for i := from; i < to; i++ {
		modes := []string{"off", "all"}
		if i%2 == 1 {
			modes[0], modes[1] = modes[1], modes[0]
		}
		for _, mode := range modes {
			took, err := s.alone(ctx, uint64(i), mode)
			if err != nil {
				return nil, nil, err
			}
			into := all
			if mode == "off" {
				into = off
			}
			into.ms = append(into.ms, took)
		}
	}
	return off, all, nil
}

// alone sends the first request of a stream, and measures the milliseconds until its answer.
func (s *started) alone(ctx context.Context, stream uint64, mode string) (took float64, err error) {
	requests, err := s.requests(stream, 1, mode)
	if err != nil {
		return 0, err
	}
	time.Sleep(10 * time.Millisecond) // what the one before left to do is not this one's
	begin := time.Now()
	err = s.clients.send(ctx, requests[0])
	return float64(time.Since(begin)) / float64(time.Millisecond), err
}

// The tree is an application of eight functions in a row, like FaaSChain's average, three of them branches; each is given the same
// input, as after a branch in SpecFaaS, so that nothing but its branches need be predicted. A branch goes the way that the input says.
const (
	treeDepth = 8
	step      = `import time

def main(args):
    time.sleep(0.010)
    return {'value': args['ways'][%d], 'x': 1}
`
)

// isBranch says which functions of the tree are branches; the others always go the same way.
func isBranch(depth int) bool { return depth == 1 || depth == 3 || depth == 5 }

// always makes a branch of each.
func always(int) bool { return true }

// deployTree puts the functions and the composition, some of which are branches.
func deployTree(branches func(depth int) bool) func(context.Context, *server.Client, *server.Server) error {
	return func(ctx context.Context, c *server.Client, _ *server.Server) error {
		for depth := range treeDepth {
			for _, side := range []string{"a", "b"} {
				if err := c.PutPython(ctx, fmt.Sprintf("tree-%d%s", depth, side), fmt.Sprintf(step, depth)); err != nil {
					return err
				}
			}
		}
		return c.Put(ctx, "tree", map[string]any{
			"exec":        map[string]any{"kind": "nodejs:default", "code": "// the annotation holds it"},
			"annotations": []any{map[string]any{"key": "conductor", "value": tree(0, "a", branches)}},
		})
	}
}

// tree is the composition from a depth on, on a side of the branch before.
func tree(depth int, side string, branches func(depth int) bool) map[string]any {
	action := map[string]any{"type": "action", "name": fmt.Sprintf("/_/tree-%d%s", depth, side)}
	switch {
	case depth == treeDepth-1:
		return action
	case branches(depth):
		return map[string]any{"type": "if", "test": action, "consequent": tree(depth+1, "a", branches), "alternate": tree(depth+1, "b", branches)}
	}
	return map[string]any{"type": "if", "test": action, "consequent": tree(depth+1, side, branches), "alternate": map[string]any{"type": "empty"}}
}

// branching makes inputs of which each branch goes the usual way at a rate. No input comes twice.
func branching(rate float64) func(stream uint64, n int) ([]any, error) {
	var last atomic.Uint64
	return each(func(stream uint64, i int) any {
		random := rand.New(rand.NewPCG(stream, uint64(i)))
		ways := make([]bool, treeDepth)
		for depth := range ways {
			ways[depth] = !isBranch(depth) || random.Float64() < rate
		}
		return map[string]any{"ways": ways, "id": last.Add(1)}
	})
}

// against makes inputs whose branches an adversary chooses. A stream's are the same in both modes, as without running ahead they teach
// the server nothing; no input comes twice.
func against(a *cluster.Adversary) func(stream uint64, n int) ([]any, error) {
	var chosen []bool
	var of, last uint64
	return each(func(stream uint64, _ int) any {
		if chosen == nil || stream != of {
			of, chosen = stream, append(a.Choose(treeDepth-1), true)
		}
		last++
		return map[string]any{"ways": chosen, "id": last}
	})
}
