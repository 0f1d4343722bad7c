package command

import (
	"bytes"
	"slices"
	"strings"
)

// runs are parts of a list: each is in order, and mostly more than twice as long as the next. So something is added, and found, without a look
// at all of it.
type runs[E any] [][]E

// add adds a run, joined with those that are not much longer.
func (r runs[E]) add(run []E, join func(a, b []E) []E) runs[E] {
	last := len(r) - 1
	for ; last >= 0 && len(r[last]) <= 2*len(run); last-- {
		run = join(r[last], run)
	}
	return append(r[:last+1], run)
}

// clone is a copy, which changes by itself.
func (r runs[E]) clone() runs[E] {
	copied := make(runs[E], len(r))
	for i, run := range r {
		copied[i] = slices.Clone(run)
	}
	return copied
}

// merge puts what is in two runs in one, in order.
func merge[E any](a, b []E, compare func(a, b E) int) []E {
	merged := make([]E, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(b[0], a[0]) < 0 {
			a, b = b, a
		}
		merged, a = append(merged, a[0]), a[1:]
	}
	return append(append(merged, a...), b...)
}

func joinKeys(a, b []string) []string { return merge(a, b, strings.Compare) }

// joinSpans makes one span of those that overlap. Those that only meet stay apart: they are of different records.
func joinSpans(a, b []span) []span {
	joined := merge(a, b, func(a, b span) int { return bytes.Compare(a.from, b.from) })
	n := 0
	for _, s := range joined[1:] {
		switch last := &joined[n]; {
		case bytes.Compare(last.to, s.from) <= 0:
			n++
			joined[n] = s
		case bytes.Compare(last.to, s.to) < 0:
			last.to = s.to
		}
	}
	return slices.Clip(joined[:n+1])
}

// within says where the keys of a range, whose end may be open (nil), are in a run.
func within(run []string, from, to []byte) (first, end int) {
	first, _ = slices.BinarySearch(run, string(from))
	end = len(run)
	if to != nil {
		end, _ = slices.BinarySearch(run, string(to))
	}
	return first, max(first, end)
}
