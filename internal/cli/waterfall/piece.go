package waterfall

import "forerun.dev/forerun/internal/trace"

// look is what a bar shows of a slot for some time.
type look int

const (
	spans look = iota
	waits
	ended
	runs
	ahead
	squashed
	skipped
)

// looks are how each is drawn: in text, in a picture, and what the picture's legend says.
var looks = [...]struct {
	char   byte
	fill   string
	high   int
	legend string
}{
	spans:    {'_', "#868e96", 3, "workflow"},
	waits:    {'.', "#ced4da", 3, "waits"},
	ended:    {'-', "#8ccf9b", 3, "has ended, and its turn has not come"},
	runs:     {'=', "#2b71b8", 12, "runs in order"},
	ahead:    {'>', "#37a04f", 12, "runs speculatively"},
	squashed: {'x', "#d9463e", 12, "was squashed"},
	skipped:  {'*', "#7d55c7", 12, "not executed: its output was known"},
}

// piece is a part of a bar.
type piece struct {
	look     look
	from, to int64
}

// pieces are the parts of a slot's bar; later ones lie over earlier ones.
func pieces(b *trace.Slot) []piece {
	switch {
	case b.Program:
		return were(piece{spans, b.Queued, b.End()})
	case b.Launched == 0:
		return were(piece{waits, b.Queued, b.End()})
	}
	before, after := piece{waits, b.Queued, b.Launched}, piece{ended, b.Stop(), b.End()}
	switch {
	case b.IsSquashed():
		return were(before, after, piece{squashed, b.Launched, b.Stop()})
	case b.Skipped:
		return were(before, after, piece{skipped, b.Launched, b.Launched})
	case b.RanAhead() && b.Promoted > 0 && b.Promoted < b.Stop():
		return were(before, after, piece{ahead, b.Launched, b.Stop()}, piece{runs, b.Promoted, b.Stop()})
	case b.RanAhead():
		return were(before, after, piece{ahead, b.Launched, b.Stop()})
	}
	return were(before, after, piece{runs, b.Launched, b.Stop()})
}

// were leaves out the pieces that cannot be: one of their moments did not come, or came too early.
func were(pieces ...piece) (list []piece) {
	for _, p := range pieces {
		if p.from > 0 && p.to >= p.from {
			list = append(list, p)
		}
	}
	return list
}
