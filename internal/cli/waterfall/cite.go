package waterfall

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// references are the numbers of slots in a reason: " #3", but not in the name of a record, which is quoted.
var references = regexp.MustCompile(`"(?:[^"\\]|\\.)*"| #(\d+)`)

// cite numbers the rows and has the reasons name rows, not slots. A slot without a row is named without a number.
func (t *Trace) cite() {
	rows := make(map[int]int)
	for i := range slices.Backward(t.Bars) {
		t.Bars[i].Row = i + 1
		rows[t.Bars[i].Slot] = i + 1 // the first one has 0, and so has what was recorded before there were numbers
	}
	cited := func(reference string) string {
		slot, err := strconv.Atoi(reference[len(" #"):])
		row := rows[slot]
		if err != nil || row == 0 {
			return ""
		}
		t.cites = true
		return fmt.Sprintf(" #%d", row)
	}
	for i := range t.Bars {
		b := &t.Bars[i]
		for _, reason := range []*string{&b.Predicted, &b.InTurn, &b.Stalled, &b.Cause} {
			*reason = references.ReplaceAllStringFunc(*reason, func(s string) string {
				if s[0] == '"' {
					return s
				}
				return cited(s)
			})
		}
	}
}
