package waterfall

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// example is a sequence: the second ran ahead, a guess for the third was wrong, the fourth was known, the last has a caller's time.
func example() *Trace {
	return New([]Bar{
		{Name: "chain", ID: "0", Program: true, Queued: 1_000_000, Launched: 1_000_000, Finished: 1_100_000, Committed: 1_100_000},
		{Name: "a", ID: "1", Depth: 1, Queued: 1_000_000, Launched: 1_010_000, Finished: 1_050_000, Promoted: 1_010_000, Committed: 1_050_000},
		{
			Name: "b", ID: "2", Depth: 1, Queued: 1_000_000, Launched: 1_010_000, Finished: 1_040_000, Promoted: 1_050_000, Committed: 1_050_000,
			Speculative: true, Predicted: "a gave this", Held: 5_000, Stalled: "it cannot be undone",
		},
		{Name: "c", Depth: 1, Queued: 1_000_000, Launched: 1_010_000, Squashed: 1_050_000, Speculative: true, Kind: "prediction", Cause: "b \x1b[31m<gave> more"},
		{Name: "d", ID: "3", Depth: 1, Queued: 1_050_000, Launched: 1_050_000, Finished: 1_050_000, Committed: 1_050_000, Skipped: true, Predicted: "it is pure"},
		{Name: "e", ID: "4", Depth: 1, Queued: 1_050_000, Launched: 1_050_000, Finished: 1_100_000, Promoted: 1_050_000, Committed: 1_100_000, Waited: 10_000},
	})
}

func TestText(t *testing.T) {
	const want = `chain |____________________|     100ms
  a   |..=========         |      40ms
  b   |..>>>>>>>--         |      30ms  ahead, held for 5ms (it cannot be undone): a gave this
  c   |..xxxxxxxxx         |      40ms  squashed: b ?[31m<gave> more
  d   |          *         |        0s  skipped: it is pure
  e   |          ==========|      50ms

100ms from request to end; the functions took 105ms in sum: 5ms saved (1.1x); 40ms wasted. 1 ahead and right, 1 squashed, 1 skipped.
`
	var b strings.Builder
	if err := example().Text(&b, 20, false); err != nil || b.String() != want {
		t.Errorf("it is (%v)\n%s", err, b.String())
	}
	b.Reset()
	if err := example().Text(&b, 20, true); err != nil || !strings.Contains(b.String(), green) || strings.Count(b.String(), red) != 1 {
		t.Errorf("in colour (%v)\n%q", err, b.String())
	}
}

func TestSVG(t *testing.T) {
	var b strings.Builder
	if err := example().SVG(&b); err != nil {
		t.Fatal(err)
	}
	bars := 0
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "title" {
			bars++
		}
	}
	if bars != 6 || !strings.Contains(b.String(), "squashed, b ?[31m&lt;gave&gt; more") {
		t.Errorf("%d bars:\n%s", bars, b.String())
	}
}

// TestOddMoments: whatever a server says of times is drawn.
func TestOddMoments(t *testing.T) {
	for _, bars := range [][]Bar{
		{{Name: "x"}},
		{{Name: "x", Queued: 5, Launched: 3, Finished: 1}, {Name: "before", Queued: 1, Squashed: 9_000_000_000}},
		{{Name: strings.Repeat("ü", 99), Queued: 1 << 62, Squashed: 2}},
	} {
		trace := New(bars)
		if err := errors.Join(trace.Text(io.Discard, 7, true), trace.SVG(io.Discard)); err != nil {
			t.Error(err)
		}
	}
}
