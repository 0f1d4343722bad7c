package command

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/state"
)

// The cursors of SCAN and its like are names here, not numbers: "0" is the beginning and the end, and ">" with a name
// goes on behind that name, whether it is still there or not. A door gives its clients numbers for them.
const (
	cursorStart = "0"
	cursorMark  = '>'
)

// Up to so many elements a collection is shown at once, as Redis shows what it keeps in one piece.
var shownAtOnce = map[state.Type]int64{state.Hash: 512, state.Set: 512, state.SortedSet: 128}

// scanQuery is what SCAN and its like ask for.
type scanQuery struct {
	pattern []byte // nil: all
	count   int64  // how many are looked at
	kind    []byte // TYPE of SCAN; nil: any
}

// parseCursor reads a cursor: the name to go on behind; nil at the beginning.
func parseCursor(arg []byte) (behind []byte, refusal *state.Reply) {
	switch {
	case string(arg) == cursorStart:
		return nil, nil
	case len(arg) > 0 && arg[0] == cursorMark:
		return arg[1:], nil
	}
	return nil, refuse("ERR invalid cursor")
}

func parseScan(options [][]byte, typed bool) (q scanQuery, refusal *state.Reply) {
	q.count = 10
	for ; len(options) > 0; options = options[2:] {
		switch {
		case len(options) < 2:
			return q, refuse("ERR syntax error")
		case is(options[0], "COUNT"):
			if q.count, refusal = parseWithin(options[1], math.MinInt64, math.MaxInt64, ""); refusal != nil {
				return q, refusal
			}
			if q.count < 1 {
				return q, refuse("ERR syntax error")
			}
		case is(options[0], "MATCH"):
			q.pattern = options[1]
			if string(q.pattern) == "*" {
				q.pattern = nil
			}
		case is(options[0], "TYPE") && typed:
			q.kind = options[1]
		default:
			return q, refuse("ERR syntax error")
		}
	}
	return q, nil
}

func (q *scanQuery) takes(t *txn, name []byte) bool {
	return q.pattern == nil || t.matches(q.pattern, name)
}

// page is one reply of SCAN: what was found, and where to go on.
type page struct {
	items []state.Reply
	next  []byte
}

func (p *page) reply() state.Reply {
	next := []byte(cursorStart)
	if p.next != nil {
		next = append([]byte{cursorMark}, p.next...)
	}
	return array([]state.Reply{bulk(next), array(append([]state.Reply{}, p.items...))})
}

func scan(t *txn, args [][]byte) state.Reply {
	behind, refusal := parseCursor(args[1])
	if refusal != nil {
		return *refusal
	}
	q, refusal := parseScan(args[2:], true)
	if refusal != nil {
		return *refusal
	}
	from, to := prefixRange(literalPrefix(q.pattern))
	if behind != nil && bytes.Compare(behind, from) >= 0 {
		from = append(slices.Clip(behind), 0)
	}
	if to != nil && bytes.Compare(from, to) >= 0 {
		return new(page).reply()
	}
	var p page
	left := q.count
	t.records(from, to, func(name []byte, r record) bool {
		if q.takes(t, name) && (q.kind == nil || strings.EqualFold(string(q.kind), typeNames[r.kind])) {
			p.items = append(p.items, bulk(t.keep(name)))
		}
		if left--; left > 0 {
			return true
		}
		p.next = bytes.Clone(name)
		return false
	})
	return p.reply()
}

func hscan(t *txn, args [][]byte) state.Reply { return scanElements(t, args, state.Hash) }
func sscan(t *txn, args [][]byte) state.Reply { return scanElements(t, args, state.Set) }
func zscan(t *txn, args [][]byte) state.Reply { return scanElements(t, args, state.SortedSet) }

func scanElements(t *txn, args [][]byte, kind state.Type) state.Reply {
	behind, refusal := parseCursor(args[2])
	if refusal != nil {
		return *refusal
	}
	r, typed := t.typed(args[1], kind)
	if !typed {
		return wrongType()
	}
	if !r.exists() {
		return new(page).reply()
	}
	q, refusal := parseScan(args[3:], false)
	if refusal != nil {
		return *refusal
	}
	if r.count() <= shownAtOnce[kind] {
		behind, q.count = nil, math.MaxInt64
	}
	p := t.scanPage(args[1], r, behind, q)
	return p.reply()
}

// scanPage collects elements of a record behind a name (nil: from the first).
func (t *txn) scanPage(name []byte, r record, behind []byte, q scanQuery) (p page) {
	from, to := t.elementRange(name)
	prefix := len(from)
	if behind != nil {
		from = append(slices.Concat(from, behind), 0)
	}
	left := q.count
	small := r.count() <= shownAtOnce[r.kind]
	t.walk(from, to, false, prefix, func(element, value []byte) bool {
		if q.takes(t, element) {
			p.items = append(p.items, bulk(t.keep(element)))
			switch r.kind {
			case state.Hash:
				p.items = append(p.items, bulk(t.keep(value)))
			case state.SortedSet:
				p.items = append(p.items, state.Reply{Kind: state.Bulk, Text: scannedScore(scoreOf(value), small)})
			}
		}
		if left--; left > 0 {
			return true
		}
		p.next = bytes.Clone(element)
		return false
	})
	return p
}

// scannedScore writes a score as ZSCAN shows it: in a set that is kept in one piece, Redis has whole numbers as such.
func scannedScore(f float64, small bool) []byte {
	if small && f == math.Trunc(f) && math.Abs(f) <= math.MaxInt64/2 {
		return strconv.AppendInt(nil, int64(f), 10)
	}
	return FormatDouble(f)
}
