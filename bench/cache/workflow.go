package cache

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/bench/workloads"
)

const (
	images  = 97
	pixels  = 128 // of a side
	classes = 10
	words   = 5
	texts   = 20
)

// faasWorkflow makes the suite.
func faasWorkflow(bool) (*suite, error) {
	code, err := workloads.Workflow()
	if err != nil {
		return nil, err
	}
	return &suite{
		name: "FaaSWorkflow", slug: "faasworkflow", users: 10, code: []*workloads.Application{code}, setup: setupImages, first: firstOfWorkflow,
		paper: suitePaper{served: 32.2, openWhisk: 18.6, faasCache: 22.4, hits: 0.66, target: ">=1.75"},
		// A round of DForge, then Prediction or SetCompute, one to three.
		apps: []application{
			{"regression", 100, drawRegression, latencyPaper{61, 460, 51, 300}},
			{"transform", 100, drawTransform, latencyPaper{61, 460, 48, 290}},
			{"tree", 100, drawTree, latencyPaper{61, 480, 56, 370}},
			{"rule_match", 100, func(r *rand.Rand) script { return single(match(r.IntN(words), r.IntN(texts))) }, latencyPaper{48, 270, 16, 82}},
			{"Prediction", 25, func(r *rand.Rand) script { return single(predict(r.IntN(images))) }, latencyPaper{1324, 5200, 27, 210}},
			{"SetCompute", 75, func(*rand.Rand) script { return single(compute()) }, latencyPaper{1399, 2200, 192, 400}},
		},
	}, nil
}

func setupImages(ctx context.Context, door redis.UniversalClient) error {
	random := rand.New(rand.NewPCG(97, 1))
	bytes := func(n int) []byte {
		all := make([]byte, n)
		for i := range all {
			all[i] = byte(random.Uint32())
		}
		return all
	}
	pipe := door.Pipeline()
	for n := range images {
		pipe.Set(ctx, fmt.Sprintf("image:%d", n), bytes(pixels*pixels), 0)
	}
	pipe.Set(ctx, "model", bytes(classes*16*16), 0)
	_, err := pipe.Exec(ctx)
	return err
}

// firstOfWorkflow asks for what can repeat, and starts the other functions.
func firstOfWorkflow() (all []script) {
	random := rand.New(rand.NewPCG(1, 1))
	for n := range images {
		all = append(all, single(predict(n)))
	}
	for word := range words {
		for n := range texts {
			all = append(all, single(match(word, n)))
		}
	}
	return append(all, single(compute()), drawRegression(random), drawTransform(random), drawTree(random))
}

// normal are numbers of a normal distribution, which do not come again.
func normal(r *rand.Rand, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = math.Round(r.NormFloat64()*1e6) / 1e6
	}
	return all
}

// forge is a request to a function of DForge.
func forge(function string, input map[string]any) ask {
	return ask{app: function, action: "faas-" + function, input: input, calls: happens(called("faas-"+function, input, nil))}
}

func drawRegression(r *rand.Rand) script {
	return single(forge("regression", map[string]any{"x": normal(r, 200), "y": normal(r, 200)}))
}

func drawTransform(r *rand.Rand) script {
	return single(forge("transform", map[string]any{"values": normal(r, 400)}))
}

func drawTree(r *rand.Rand) script {
	var rows []any
	for range 60 {
		rows = append(rows, map[string]any{"features": normal(r, 3), "label": r.IntN(2)})
	}
	return single(forge("tree", map[string]any{"rows": rows}))
}

func match(word, n int) ask {
	return forge("rule_match", map[string]any{
		"word": []string{"forerun", "cache", "record", "version", "function"}[word],
		"text": strings.Repeat(fmt.Sprintf("text %d has functions that read records, and caches of them; ", n), 30),
	})
}

// predict is asked of an image.
func predict(n int) ask {
	return ask{app: "Prediction", action: "faas-prediction", input: map[string]any{"image": n}, calls: happens(
		called("faas-resize", n, records(fmt.Sprintf("image:%d", n))), called("faas-predict", n, records("model")), called("faas-render", n, nil))}
}

func compute() ask {
	return ask{app: "SetCompute", action: "faas-setcompute", input: map[string]any{}, calls: happens(
		called("faas-compute", 0, nil), called("faas-find", 0, nil), called("faas-check", 0, nil))}
}
