package worker

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// manySquashed is how many activations TestThousandSquashed squashes: more than 1,000 in all, as many in each stage. Node and native
// programs have fewer, as processes start for them. FORERUN_SOAK_TIMES=100 has 1,000 of each.
var manySquashed = []struct {
	language    string
	activations int
}{{"Python", 450}, {"kept Python", 405}, {"Node", 75}, {"native", 75}}

// The test squashes a few at a time, each with some effects at once.
const (
	squashedAtOnce  = 5
	squashingStages = 3
	effectsAtOnce   = 5
	betweenTwoKinds = 3 // steps in the list of effects, so that what starts processes is spread
)

// manyEffects is an action that has all effects of its language; the input says which it tries at once.
func manyEffects(language string) (a *forerun.Action, names []string) {
	var text strings.Builder
	if language == "Node" {
		names = slices.Sorted(maps.Keys(nodeEffects))
		for _, name := range names {
			fmt.Fprintf(&text, "%q: a => %s,\n", name, nodeEffects[name])
		}
		return inNode("Promise.all(a.effects.map(e => ({" + text.String() + "})[e](a))).then(got => got.map(g => g.trim()).join())"), names
	}
	names = slices.Sorted(maps.Keys(pythonEffects))
	text.WriteString("\n    all = {}")
	for _, name := range names {
		fmt.Fprintf(&text, "\n    def one(a):%s\n    all[%q] = one", strings.ReplaceAll(pythonEffects[name], "\n", "\n    "), name)
	}
	text.WriteString(`
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor() as pool: return ",".join(got.strip() for got in pool.map(lambda e: all[e](a), a["effects"]))`)
	switch language {
	case "native":
		return inNative(text.String()), names
	case "kept Python":
		return keep(inPython(text.String())), names
	}
	return inPython(text.String()), names
}

// TestThousandSquashed squashes activations before they reach out, on their way there, and when they wait there: where each has a
// process of its own, and where that is kept.
func TestThousandSquashed(t *testing.T) {
	o := newOutside(t)
	times, err := strconv.Atoi(os.Getenv("FORERUN_SOAK_TIMES"))
	for _, of := range manySquashed {
		if err == nil {
			of.activations = 10 * times
		}
		t.Run(of.language, func(t *testing.T) { squashMany(t, o, of.language, of.activations) })
	}
	if n := o.reached("squashed"); n > 0 {
		t.Errorf("%d times something of a squashed activation has reached the outside", n)
	}
}

func squashMany(t *testing.T, o *outside, language string, activations int) {
	a, effects := manyEffects(language)
	if discover().Check(a.Exec.Kind) != nil {
		t.Skip("this machine does not have the language")
	}
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = squashedAtOnce })
	calls := newCalls(t)
	g.ServeAPI(calls)
	m := many{matrix{g, calls, o, a}, effects}
	waves, waited := activations/squashedAtOnce, 0
	for wave := range waves {
		waited += m.squash(wave)
	}
	for i := range effects { // each of them does reach the outside, behind what was squashed
		_, h := m.begin(a, m.input(i, 1, "after"))
		calls.next()
		calls.answer <- "go"
		m.check(h, "after")
	}
	t.Logf("%d activations were squashed, with %d effects; a third of them while something waited, with %d calls, questions and datagrams in all",
		waves*squashedAtOnce, waves*squashedAtOnce*effectsAtOnce, waited)
}

type many struct {
	matrix
	effects []string
}

// input has an activation try some effects, from the n-th on.
func (m *many) input(n, count int, word string) string {
	input := map[string]any{}
	if err := json.Unmarshal([]byte(m.o.input(word)), &input); err != nil {
		panic(err)
	}
	var chosen []string
	for i := range count {
		chosen = append(chosen, m.effects[(n+i*betweenTwoKinds)%len(m.effects)])
	}
	input["effects"] = chosen
	b, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// squash begins some activations, and squashes them in one of three stages. It returns how much of what they sent waited by then, if they
// had come to that.
func (m *many) squash(wave int) (waited int) {
	m.t.Helper()
	runs := make([]*forerun.Run, squashedAtOnce)
	for i := range runs {
		runs[i], _ = m.ahead(m.a, m.input(wave*squashedAtOnce+i, effectsAtOnce, "squashed"))
	}
	for range runs {
		m.calls.next()
	}
	const before, way = 0, 1
	stage := wave % squashingStages
	if stage != before {
		for range runs {
			m.calls.answer <- "go"
		}
	}
	if stage != before && stage != way {
		for _, r := range runs {
			waited += m.awaitGate(r)
		}
	}
	for _, r := range runs {
		m.Squash(r.Activation)
	}
	if stage == before {
		for range runs {
			m.calls.nextCut()
		}
	}
	return waited
}
