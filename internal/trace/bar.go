package trace

// Look is what a bar shows of a slot for some time.
type Look string

// The looks. Later ones lie over earlier ones.
const (
	Lasts       Look = "workflow"
	Waits       Look = "waits"
	Ended       Look = "ended" // and its turn has not come
	Runs        Look = "runs"
	RunsAhead   Look = "speculative"
	RunsInVain  Look = "squashed"
	NotExecuted Look = "skipped" // it takes no time
)

// Looks are all of them, in the order of a legend.
var Looks = []Look{Lasts, Waits, Ended, Runs, RunsAhead, RunsInVain, NotExecuted}

// Bar is a part of what is drawn of a slot. Moments are microseconds since 1970.
type Bar struct {
	Look Look  `json:"look"`
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// bars are the parts that are drawn of a slot; later ones lie over earlier ones.
func (s *Slot) bars() []Bar {
	switch {
	case s.Program:
		return were(Bar{Lasts, s.Queued, s.End()})
	case s.Launched == 0:
		return were(Bar{Waits, s.Queued, s.End()})
	}
	before, after := Bar{Waits, s.Queued, s.Launched}, Bar{Ended, s.Stop(), s.End()}
	switch {
	case s.IsSquashed():
		return were(before, after, Bar{RunsInVain, s.Launched, s.Stop()})
	case s.Skipped:
		return were(before, after, Bar{NotExecuted, s.Launched, s.Launched})
	case s.RanAhead() && s.Promoted > 0 && s.Promoted < s.Stop():
		return were(before, after, Bar{RunsAhead, s.Launched, s.Stop()}, Bar{Runs, s.Promoted, s.Stop()})
	case s.RanAhead():
		return were(before, after, Bar{RunsAhead, s.Launched, s.Stop()})
	}
	return were(before, after, Bar{Runs, s.Launched, s.Stop()})
}

// were leaves out the bars that cannot be: one of their moments did not come, or came too early.
func were(bars ...Bar) (list []Bar) {
	for _, b := range bars {
		if b.From > 0 && b.To >= b.From {
			list = append(list, b)
		}
	}
	return list
}
