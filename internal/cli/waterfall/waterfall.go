// Package waterfall draws the slots of a trace below each other, each when it
// ran, as text or as SVG.
//
// It promises that no name or reason can bring control characters to a terminal or markup into a picture.
package waterfall

import "forerun.dev/forerun/internal/trace"

// mostLevels are the levels that names are indented for: a deeper slot has room for its name, too.
const mostLevels = 8

// level is how far the name of a slot is indented.
func level(s *trace.Slot) int { return min(s.Depth, mostLevels) }
