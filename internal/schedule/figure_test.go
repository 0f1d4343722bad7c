package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
)

// part of a task in a figure: a phase that needs a class for some columns.
type stage struct {
	name    byte
	class   Class
	columns float64
}

// actor is a task of a figure.
type actor struct {
	id     forerun.ActivationID
	stages []stage
	place  place
	asked  bool // for its present stage
	drawn  strings.Builder
}

// drawFigure plays tasks under a policy and draws them: a line for each task, a column for each step in time. A line of the input is a
// task with its stages: name, class and columns. A stage progresses as fast as it gets the processor time that it needs. In the drawing
// the stage's letter is a stage in front, its small letter one in the back, and a dot one that waits.
func drawFigure(t *testing.T, d *datadriven.TestData) string {
	settings := settingsOf(t, d)
	settings.Processors = max(1, settings.Processors)
	m := New(settings)
	var actors []*actor
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		a := &actor{id: forerun.ActivationID(fields[0])}
		for i := 1; i < len(fields); i++ {
			var s stage
			if _, err := fmt.Sscanf(fields[i], "%c:%d:%f", &s.name, &s.class, &s.columns); err != nil {
				d.Fatalf(t, "%q: %v", fields[i], err)
			}
			a.stages = append(a.stages, s)
		}
		actors = append(actors, a)
	}
	columns, unused := 0, 0.0
	const column = 100 * time.Millisecond
	for ; columns < 200; columns++ {
		if !ask(m, actors, time.Duration(columns)*column) {
			break
		}
		unused += progress(actors, float64(settings.Processors)*float64(Core))
	}
	var out strings.Builder
	for _, a := range actors {
		fmt.Fprintf(&out, "%-4s %s\n", a.id, strings.TrimRight(a.drawn.String(), " "))
	}
	fmt.Fprintf(&out, "%d columns; unused: %.0f%% of the processors\n", columns, 100*unused/float64(columns*settings.Processors)/float64(Core))
	return out.String()
}

// ask tells the machine what actors do next, and reports whether any does something.
func ask(m *Machine, actors []*actor, now time.Duration) (any bool) {
	carryOut := func(decisions []Decision) {
		for _, d := range decisions {
			for _, a := range actors {
				if a.id == d.Activation {
					a.place = map[DecisionKind]place{LetIn: front, ToFront: front, LetInBehind: back, ToBack: back}[d.Kind]
				}
			}
		}
	}
	for _, a := range actors {
		if len(a.stages) == 0 && a.asked {
			a.asked = false
			carryOut(m.Step(now, Ended{Activation: a.id}))
		}
	}
	for _, a := range actors {
		if len(a.stages) > 0 && !a.asked {
			a.asked, a.place = true, waiting
			carryOut(m.Step(now, Asks{Activation: a.id, Tenant: "t", Class: a.stages[0].class}))
		}
		any = any || len(a.stages) > 0
	}
	return any
}

// progress plays one column and returns the slabs that were not used.
func progress(actors []*actor, slabs float64) (unused float64) {
	wants := func(where place) (sum float64) {
		for _, a := range actors {
			if len(a.stages) > 0 && a.place == where {
				sum += float64(a.stages[0].class)
			}
		}
		return sum
	}
	atFront, behind := wants(front), wants(back)
	rate := map[place]float64{front: min(1, slabs/max(1, atFront))}
	left := max(0, slabs-atFront)
	rate[back] = min(1, left/max(1, behind))
	for _, a := range actors {
		switch {
		case len(a.stages) == 0:
			a.drawn.WriteByte(' ')
			continue
		case a.place == waiting:
			a.drawn.WriteByte('.')
			continue
		}
		s := &a.stages[0]
		letter := s.name
		if a.place == back {
			letter |= 'a' - 'A'
		}
		a.drawn.WriteByte(letter)
		if s.columns -= rate[a.place]; s.columns < 1e-9 {
			if a.stages = a.stages[1:]; len(a.stages) > 0 {
				a.asked = false
			}
		}
	}
	return max(0, left-behind)
}
