package waterfall

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/trace"
)

// example is a sequence: the second ran ahead, a guess for the third was wrong, the fourth was known, the last has a caller's time. The slots have other numbers than the rows.
func example() *trace.Trace {
	return trace.New([]trace.Slot{
		{Name: "chain", ID: "0", Program: true, Line: trace.Line{Queued: 1_000_000, Launched: 1_000_000, Finished: 1_100_000, Committed: 1_100_000}},
		{Name: "a", ID: "1", Depth: 1, Line: trace.Line{Slot: 11, Queued: 1_000_000, Launched: 1_010_000, Finished: 1_050_000, Promoted: 1_010_000, Committed: 1_050_000}},
		{Name: "b", ID: "2", Depth: 1, Line: trace.Line{Slot: 12, Inline: 1, Queued: 1_000_000, Launched: 1_010_000, Finished: 1_040_000, Promoted: 1_050_000, Committed: 1_050_000, Speculative: true, Held: 5_000, Texts: trace.Texts{Predicted: "a #11 gave this", Stalled: "lost #9 wrote \"k #11\""}}},
		{Name: "c", Depth: 1, Line: trace.Line{Slot: 13, Queued: 1_000_000, Launched: 1_010_000, Squashed: 1_050_000, Speculative: true, Kind: "prediction", Texts: trace.Texts{Cause: "b #12 \x1b[31m<gave> more"}}},
		{Name: "d", ID: "3", Depth: 1, Line: trace.Line{Slot: 14, Queued: 1_050_000, Launched: 1_050_000, Finished: 1_050_000, Committed: 1_050_000, Skipped: true, Texts: trace.Texts{Predicted: "it is pure"}}},
		{Name: "e", ID: "4", Depth: 1, Line: trace.Line{Slot: 15, Queued: 1_050_000, Launched: 1_050_000, Finished: 1_100_000, Promoted: 1_050_000, Committed: 1_100_000, Waited: 10_000}},
	}, 130_000)
}

func TestText(t *testing.T) {
	const want = `#1 chain          |____________________|     100ms
#2   a            |..=========         |      40ms
#3   b (inline 1) |..>>>>>>>--         |      30ms  speculative, held for 5ms (lost wrote "k #11"): a #2 gave this
#4   c            |..xxxxxxxxx         |      40ms  squashed: b #3 ?[31m<gave> more
#5   d            |          *         |        0s  skipped: it is pure
#6   e            |          ==========|      50ms

100ms from request to end; in order its functions take about 130ms: 1.3x faster; 40ms wasted. 1 speculative and right, 1 squashed, 1 skipped.
`
	var b strings.Builder
	if err := Text(&b, example(), 20, false); err != nil || b.String() != want {
		t.Errorf("it is (%v)\n%s", err, b.String())
	}
	b.Reset()
	if err := Text(&b, example(), 20, true); err != nil || !strings.Contains(b.String(), green) || strings.Count(b.String(), red) != 1 {
		t.Errorf("in colour (%v)\n%q", err, b.String())
	}
}

// TestGain: a gain is claimed of an invocation that took less than its functions take in order, if that is known and something ran
// speculatively. Functions that ran at the same time make none: they may have waited for the same processor.
func TestGain(t *testing.T) {
	const wall = 10_000
	for _, c := range []struct {
		name        string
		inOrder     int64
		speculative bool
		want        string
	}{
		{"faster", 2 * wall, true, "10ms from request to end; in order its functions take about 20ms: 2.0x faster; 0s wasted. 1 speculative and right, 0 squashed, 0 skipped."},
		{"slower", wall - 1_000, true, "10ms from request to end; in order its functions take about 9ms: it was not faster; 0s wasted. 1 speculative and right, 0 squashed, 0 skipped."},
		{"as fast", wall, true, "10ms from request to end; in order its functions take about 10ms: it was not faster; 0s wasted. 1 speculative and right, 0 squashed, 0 skipped."},
		{"no estimate", 0, true, "10ms from request to end; 0s wasted. 1 speculative and right, 0 squashed, 0 skipped."},
		{"in order", 2 * wall, false, "10ms from request to end; 0s wasted. 0 speculative and right, 0 squashed, 0 skipped."},
	} {
		one := trace.Slot{Line: trace.Line{Queued: 1_000_000, Launched: 1_000_000, Finished: 1_000_000 + wall, Committed: 1_000_000 + wall}}
		two := one
		two.Speculative = c.speculative
		if traced := trace.New([]trace.Slot{one, two}, c.inOrder); traced.Times+" "+traced.Counts != c.want {
			t.Errorf("%s: it says\n%s %s\nnot\n%s", c.name, traced.Times, traced.Counts, c.want)
		}
	}
}

// TestLate: what was asked for ahead and begun in its turn, or never, has not run ahead.
func TestLate(t *testing.T) {
	const want = `#1 chain |____________________|     100ms
#2   a   |===========         |      50ms
#3   b   |..........==========|      50ms  speculative, began in turn: a #2 gave this
#4   c   |...........         |        0s  squashed before it began: a #2 gave more
#5   d   |....................|        0s  speculative, never began: b #3 gave this

100ms from request to end; 0s wasted. 0 speculative and right, 0 squashed, 0 skipped; 1 speculative, began in turn; 1 speculative, never began; 1 squashed before it began.
`
	traced := trace.New([]trace.Slot{
		{Name: "chain", ID: "0", Program: true, Line: trace.Line{Queued: 1_000_000, Launched: 1_000_000, Finished: 1_100_000, Committed: 1_100_000}},
		{Name: "a", ID: "1", Depth: 1, Line: trace.Line{Slot: 1, Queued: 1_000_000, Launched: 1_000_000, Finished: 1_050_000, Promoted: 1_000_000, Committed: 1_050_000}},
		{Name: "b", ID: "2", Depth: 1, Line: trace.Line{Slot: 2, Queued: 1_000_000, Launched: 1_050_000, Finished: 1_100_000, Promoted: 1_050_000, Committed: 1_100_000, Speculative: true, Texts: trace.Texts{Predicted: "a #1 gave this"}}},
		{Name: "c", Depth: 1, Line: trace.Line{Slot: 3, Queued: 1_000_000, Squashed: 1_050_000, Speculative: true, Kind: "prediction", Texts: trace.Texts{Cause: "a #1 gave more"}}},
		{Name: "d", ID: "4", Depth: 1, Line: trace.Line{Slot: 4, Queued: 1_000_000, Promoted: 1_060_000, Finished: 1_100_000, Committed: 1_100_000, Speculative: true, Texts: trace.Texts{Predicted: "b #2 gave this"}}},
	}, 90_000)
	var b strings.Builder
	if err := Text(&b, traced, 20, false); err != nil || b.String() != want {
		t.Errorf("it is (%v)\n%s", err, b.String())
	}
	b.Reset()
	if err := Text(&b, traced, 20, true); err != nil || strings.Contains(b.String(), green) {
		t.Errorf("in colour (%v)\n%q", err, b.String())
	}
	b.Reset()
	if err := SVG(&b, traced); err != nil || strings.Contains(b.String(), styles[trace.RunsAhead].legend) {
		t.Errorf("as a picture (%v)\n%s", err, b.String())
	}
}

func TestSVG(t *testing.T) {
	var b strings.Builder
	if err := SVG(&b, example()); err != nil {
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
	if bars != 6 {
		t.Errorf("%d bars:\n%s", bars, b.String())
	}
	for what, part := range map[string]string{
		"a reason":                           `>squashed: b #3 ?[31m&lt;gave&gt; more</text>`,
		"all of a reason, under the pointer": `<title>b (inline 1), 30ms, speculative, held for 5ms (lost wrote &#34;k #11&#34;): a #2 gave this</title>`,
		"a row's number":                     `text-anchor="end">#3</text>`,
		"a duration":                         `text-anchor="end">40ms</text>`,
		"a diamond":                          fmt.Sprintf(`l6 6l-6 6l-6 -6z" fill="%s"/>`, styles[trace.NotExecuted].fill),
		"the legend":                         ">runs speculatively</text>",
		"the summary":                        "; in order its functions take about 130ms: 1.3x faster; 40ms wasted.</text>",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("there is no %s in\n%s", what, b.String())
		}
	}
}

// TestTimeAxis: the last label is where the longest bar ends.
func TestTimeAxis(t *testing.T) {
	var b strings.Builder
	if err := SVG(&b, example()); err != nil {
		t.Fatal(err)
	}
	span := regexp.MustCompile(`<rect x="(\d+).0" y="[\d.]+" width="(\d+).0" height="3" rx="1" fill="`+styles[trace.Lasts].fill).FindAllStringSubmatch(b.String(), -1)
	label := regexp.MustCompile(`<text x="(\d+)" [^>]*text-anchor="end">100ms</text>`).FindStringSubmatch(b.String())
	if len(span) != 2 || label == nil {
		t.Fatalf("%q and %q are in\n%s", span, label, b.String())
	}
	from, _ := strconv.Atoi(span[1][1]) // the first is the legend's
	wide, _ := strconv.Atoi(span[1][2])
	if end, _ := strconv.Atoi(label[1]); end != from+wide {
		t.Errorf("the bar ends at %d, the axis at %d", from+wide, end)
	}
}

// TestCutNotes: a note for which there is no room is cut, and whole under the pointer.
func TestCutNotes(t *testing.T) {
	why := strings.Repeat("because ", 40) + "so"
	var b strings.Builder
	if err := SVG(&b, trace.New([]trace.Slot{{Name: "x", Line: trace.Line{Queued: 1, Launched: 1, Finished: 2, Texts: trace.Texts{InTurn: why}}}}, 0)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), why) != 1 || !strings.Contains(b.String(), "…</text>") || !strings.Contains(b.String(), why+"</title>") {
		t.Error(b.String())
	}
}

// TestNumbersOfRows: where no reason names a row there are none, and a slot without a row has no number.
func TestNumbersOfRows(t *testing.T) {
	var b strings.Builder
	traced := trace.New([]trace.Slot{{Name: "x", Line: trace.Line{Slot: 4, Queued: 1, Launched: 1, Finished: 2, Texts: trace.Texts{InTurn: "gone #3 did not give what was expected"}}}}, 0)
	if err := Text(&b, traced, 5, false); err != nil || strings.Contains(b.String(), "#") || !strings.Contains(b.String(), "in turn: gone did not") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestOddMoments: whatever a server says of times is drawn.
func TestOddMoments(t *testing.T) {
	for _, bars := range [][]trace.Slot{
		{{Name: "x"}},
		{{Name: "x", Line: trace.Line{Queued: 5, Launched: 3, Finished: 1}}, {Name: "before", Line: trace.Line{Queued: 1, Squashed: 9_000_000_000}}},
		{{Name: strings.Repeat("ü", 99), Line: trace.Line{Queued: 1 << 62, Squashed: 2}}},
	} {
		traced := trace.New(bars, 0)
		if err := errors.Join(Text(io.Discard, traced, 7, true), SVG(io.Discard, traced)); err != nil {
			t.Error(err)
		}
	}
}

// TestDeep: what is called by what is called, and so on, has its name, however deep it is.
func TestDeep(t *testing.T) {
	var bars []trace.Slot
	for depth := range 25 {
		bars = append(bars, trace.Slot{Name: fmt.Sprintf("called-%d", depth), Depth: depth, Line: trace.Line{Queued: 1, Launched: 1, Finished: 2}})
	}
	traced := trace.New(bars, 0)
	var text, picture strings.Builder
	if err := errors.Join(Text(&text, traced, 20, false), SVG(&picture, traced)); err != nil {
		t.Fatal(err)
	}
	for _, b := range bars {
		if !strings.Contains(text.String(), " "+b.Name+" ") && b.Depth > 0 || !strings.Contains(picture.String(), ">"+b.Name+"</text>") {
			t.Errorf("%s is not in\n%s\n%s", b.Name, text.String(), picture.String())
		}
	}
}
