package test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"forerun.dev/forerun/test/history"
)

// keptPoints are stages of a chain's functions whose processes are kept, and known by a name that they have once they have begun. After
// the first squash another process stands by.
var keptPoints = []string{
	"squashed link2", "held link2", "finished link4", "told link1", "promoting link2", "promoting link4", "applied link2", "applied link4",
	"committed link2", "committed link4", "squashed link4",
}

// TestAheadKept kills kept processes of Python, Node and native programs at each stage of a slot. It kills the serving process, so that the standby
// takes over, or both. Acknowledged effects are there once. Other activations, and later ones, end well. A killed activation leaves nothing.
func TestAheadKept(t *testing.T) {
	needPackages(t)
	needNode(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(history.Seed(t), 7))
	points := newPoints(t)
	pointed := buildPointed(t, points)
	for _, kept := range []*language{
		{name: "node", kind: "nodejs:default", code: source("actions/link.js")},
		{name: "native", kind: "native", code: nativeProgram},
		{name: "python"}, // all functions
	} {
		t.Run(kept.name, func(t *testing.T) {
			w := &staged{T: t, points: points, pointed: pointed, data: filepath.Join(t.TempDir(), "data"), random: random, kept: kept}
			w.begin()
			for i, point := range keptPoints {
				w.kill(point, []string{"process", "handler"}[(i+random.IntN(2))%2])
				w.learn()
			}
			for round := 0; kept.code != nil && w.tookOver == 0 && round < 20; round++ { // the machine was busy: none had been loaded
				w.awaitStandby("link2")
				w.kill("held link2", "process")
				w.learn()
			}
			w.s.records()
			w.mustHaveSent(0)
			w.s.end()
			t.Logf("%d faults, where another stood by: %d; %d invocations went well, %d did not", w.faults, w.tookOver, w.well, w.ill)
			if w.tookOver == 0 && kept.code != nil {
				t.Error("no process had another that stands by")
			}
		})
	}
}
