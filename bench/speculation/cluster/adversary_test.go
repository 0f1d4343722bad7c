package cluster

import (
	"encoding/json"
	"strconv"
	"testing"

	"forerun.dev/forerun/internal/speculate"
)

// TestAdversaryIsAgainstEachPrediction plays the server.
func TestAdversaryIsAgainstEachPrediction(t *testing.T) {
	server, a := speculate.NewPredictor(), NewAdversary()
	predicted := 0
	for request := range 300 {
		path := uint64(1)
		for _, way := range a.Choose(7) {
			b, next := speculate.Branch{Place: int(path)}, 0
			if way {
				next = 1
			}
			guess, ok := server.Predict(b, path, likely)
			if ok {
				predicted++
			}
			if ok && string(guess) == strconv.FormatBool(way) {
				t.Fatalf("request %d goes as predicted", request)
			}
			server.Learn(speculate.Outcome{Branch: b, Path: path, Next: next, Value: json.RawMessage(strconv.FormatBool(way)), Likely: likely})
			path = 2*path + uint64(next)
		}
	}
	if predicted < 100 {
		t.Errorf("%d predictions in 300 requests: it does not have them made", predicted)
	}
}
