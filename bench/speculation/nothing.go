package speculation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/harness"
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
		{slug: "branches like coins", action: "tree", want: want, inputs: branching(0.5), deploy: deployTree},
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
		up := compare(all, off, 0)
		b.row(harness.Row{
			Case: "nothing to predict: " + name, Metric: fmt.Sprintf("mean beside the baseline's, %d requests", len(all)), Unit: "x",
			Value: harness.Number(up.mean), Interval: up.interval(), Baseline: harness.Number(1), Target: harness.Text("<=1.03"),
		})
		b.progress("%s: %.2f -> %.2f ms", name, mean(off), mean(all))
	}
	return nil
}

// warmedBy is how many requests are sent in each mode before any counts.
const warmedBy = 40

// inTurn sends requests one at a time, each in both modes.
func (b *bench) inTurn(ctx context.Context, s *subject) (off, all []float64, err error) {
	on, err := b.start(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	defer on.stop(b)
	n := 300
	if b.quick {
		n = 60
	}
	for i := range n + warmedBy {
		modes := []string{"off", "all"}
		if i%2 == 1 {
			modes[0], modes[1] = modes[1], modes[0]
		}
		for _, mode := range modes {
			requests, err := on.requests(uint64(i), 1, mode)
			if err != nil {
				return nil, nil, err
			}
			time.Sleep(10 * time.Millisecond) // what the one before left to do is not this one's
			begin := time.Now()
			if err := on.clients.send(ctx, requests[0]); err != nil {
				return nil, nil, err
			}
			took := float64(time.Since(begin)) / float64(time.Millisecond)
			switch {
			case i < warmedBy:
			case mode == "off":
				off = append(off, took)
			default:
				all = append(all, took)
			}
		}
	}
	return off, all, nil
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

// deployTree puts the functions and the composition.
func deployTree(ctx context.Context, c *server.Client, _ *server.Server) error {
	for depth := range treeDepth {
		for _, side := range []string{"a", "b"} {
			if err := c.PutPython(ctx, fmt.Sprintf("tree-%d%s", depth, side), fmt.Sprintf(step, depth)); err != nil {
				return err
			}
		}
	}
	return c.Put(ctx, "tree", map[string]any{
		"exec":        map[string]any{"kind": "nodejs:default", "code": "// the annotation holds it"},
		"annotations": []any{map[string]any{"key": "conductor", "value": tree(0, "a")}},
	})
}

// tree is the composition from a depth on, on a side of the branch before.
func tree(depth int, side string) map[string]any {
	action := map[string]any{"type": "action", "name": fmt.Sprintf("/_/tree-%d%s", depth, side)}
	switch {
	case depth == treeDepth-1:
		return action
	case isBranch(depth):
		return map[string]any{"type": "if", "test": action, "consequent": tree(depth+1, "a"), "alternate": tree(depth+1, "b")}
	}
	return map[string]any{"type": "if", "test": action, "consequent": tree(depth+1, side), "alternate": map[string]any{"type": "empty"}}
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
