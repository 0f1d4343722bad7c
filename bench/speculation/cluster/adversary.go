package cluster

import (
	"encoding/json"
	"strconv"

	"forerun.dev/forerun/internal/speculate"
)

// Adversary chooses where branches go: against what a server predicts, which it knows by a predictor of its own that hears the same.
// Where nothing is predicted they go one way, so that something will be.
type Adversary struct{ predictor *speculate.Predictor }

// NewAdversary returns one of a server that knows nothing yet.
func NewAdversary() *Adversary { return &Adversary{speculate.NewPredictor()} }

// likely is from which share on a server predicts that is not told otherwise.
const likely = 0.5 + speculate.DefaultBand

// Choose returns the ways of the branches of a request, one behind the other. Each is at a place of its own on each path, as in a tree.
func (a *Adversary) Choose(branches int) (ways []bool) {
	path := uint64(1)
	for range branches {
		branch := speculate.Branch{Place: int(path)}
		guess, ok := a.predictor.Predict(branch, path, likely)
		way := !ok || string(guess) == "false"
		o := speculate.Outcome{Branch: branch, Path: path, Value: json.RawMessage(strconv.FormatBool(way)), Likely: likely}
		path *= 2
		if way {
			o.Next = 1
			path++
		}
		a.predictor.Learn(o)
		ways = append(ways, way)
	}
	return ways
}
