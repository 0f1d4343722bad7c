package waterfall

import "forerun.dev/forerun/internal/trace"

// style is how a bar is drawn: in text, in a picture, and what the picture's legend says.
type style struct {
	char   byte
	fill   string
	high   int
	legend string
}

var styles = map[trace.Look]style{
	trace.Lasts:       {'_', "#868e96", 3, "workflow"},
	trace.Waits:       {'.', "#ced4da", 3, "waits"},
	trace.Ended:       {'-', "#8ccf9b", 3, "has ended, and its turn has not come"},
	trace.Runs:        {'=', "#2b71b8", 12, "runs in order"},
	trace.RunsAhead:   {'>', "#37a04f", 12, "runs speculatively"},
	trace.RunsInVain:  {'x', "#d9463e", 12, "was squashed"},
	trace.NotExecuted: {'*', "#7d55c7", 12, "not executed: its output was known"},
}
