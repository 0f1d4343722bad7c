package command

import (
	"bytes"
	"math"

	"forerun.dev/forerun/internal/state"
)

// items calls f with the items of a list and their places, from the beginning or the end, until f returns false.
func (t *txn) items(name []byte, b bounds, reverse bool, f func(place int64, item []byte) bool) {
	if b.len() == 0 {
		return
	}
	from, to := t.elementKey(name, itemNumber(b.first)), t.elementKey(name, itemNumber(b.end))
	prefix := len(from) - len(itemNumber(0))
	place, step := int64(0), int64(1)
	if reverse {
		place, step = b.len()-1, -1
	}
	t.walk(from, to, reverse, prefix, func(_, item []byte) bool {
		goesOn := f(place, item)
		place += step
		return goesOn
	})
}

// slice copies the items at places from..to (inclusive).
func (t *txn) slice(name []byte, b bounds, from, to int64) [][]byte {
	var items [][]byte
	t.items(name, bounds{b.first + uint64(from), b.first + uint64(to) + 1}, false, func(_ int64, item []byte) bool {
		items = append(items, t.keep(item))
		return true
	})
	return items
}

func lset(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.List)
	switch {
	case typed && !r.exists():
		return failure("ERR no such key")
	case !typed:
		return wrongType()
	}
	place, isInt := parseInt(args[2])
	if !isInt {
		return notInteger()
	}
	b := r.bounds()
	if place < 0 {
		place += b.len()
	}
	if place < 0 || place >= b.len() {
		return failure("ERR index out of range")
	}
	t.setElement(args[1], itemNumber(b.first+uint64(place)), args[3])
	t.settleList(args[1], r, b)
	return ok()
}

func ltrim(t *txn, args [][]byte) state.Reply {
	from, to, refusal := parseRanks(args[2], args[3])
	if refusal != nil {
		return *refusal
	}
	r, typed := t.typed(args[1], state.List)
	switch {
	case !typed:
		return wrongType()
	case !r.exists():
		return ok()
	}
	b := r.bounds()
	from, to = rangeOf(from, to, b.len())
	if from > to {
		t.remove(args[1], r)
		return ok()
	}
	kept := bounds{b.first + uint64(from), b.first + uint64(to) + 1}
	t.dropItems(args[1], bounds{b.first, kept.first})
	t.dropItems(args[1], bounds{kept.end, b.end})
	t.settleList(args[1], r, kept) // all of it too: to those who watch, Redis has changed it
	return ok()
}

// dropItems deletes a part of a list.
func (t *txn) dropItems(name []byte, b bounds) {
	if n := b.len(); n > maxSingly || n*int64(len(name)) > maxSinglySize {
		t.overlay.Clear(t.elementKey(name, itemNumber(b.first)), t.elementKey(name, itemNumber(b.end)))
		return
	}
	for n := b.first; n < b.end; n++ {
		t.deleteElement(name, itemNumber(n))
	}
}

func linsert(t *txn, args [][]byte) state.Reply {
	after := is(args[2], "AFTER")
	if !after && !is(args[2], "BEFORE") {
		return syntaxError()
	}
	r, typed := t.typed(args[1], state.List)
	switch {
	case !typed:
		return wrongType()
	case !r.exists():
		return integer(0)
	}
	b := r.bounds()
	at := int64(-1)
	t.items(args[1], b, false, func(place int64, item []byte) bool {
		if bytes.Equal(item, args[3]) {
			at = place
		}
		return at < 0
	})
	if at < 0 {
		return integer(-1)
	}
	if after {
		at++
	}
	b = t.insertItem(args[1], b, at, args[4])
	t.settleList(args[1], r, b)
	return integer(b.len())
}

// insertItem makes room at a place by moving the items on its shorter side.
func (t *txn) insertItem(name []byte, b bounds, at int64, item []byte) bounds {
	if at < b.len()/2 {
		moved := t.slice(name, b, 0, at-1)
		b.first--
		t.setItems(name, b.first, moved)
	} else {
		moved := t.slice(name, b, at, b.len()-1)
		b.end++
		t.setItems(name, b.first+uint64(at)+1, moved)
	}
	t.setElement(name, itemNumber(b.first+uint64(at)), item)
	return b
}

func (t *txn) setItems(name []byte, first uint64, items [][]byte) {
	for i, item := range items {
		t.setElement(name, itemNumber(first+uint64(i)), item)
	}
}

func lrem(t *txn, args [][]byte) state.Reply {
	count, refusal := parseWithin(args[2], math.MinInt64, math.MaxInt64, "")
	if refusal != nil {
		return *refusal
	}
	r, typed := t.typed(args[1], state.List)
	switch {
	case !typed:
		return wrongType()
	case !r.exists():
		return integer(0)
	}
	b := r.bounds()
	gone := t.places(args[1], b, args[3], count)
	if len(gone) > 0 {
		t.settleList(args[1], r, t.removeItems(args[1], b, gone))
	}
	return integer(int64(len(gone)))
}

// places finds the places of up to count items that are equal to one, from the end if count is negative; 0 is all.
func (t *txn) places(name []byte, b bounds, wanted []byte, count int64) map[int64]bool {
	places := make(map[int64]bool)
	t.items(name, b, count < 0, func(place int64, item []byte) bool {
		if bytes.Equal(item, wanted) {
			t.show(nil)
			places[place] = true
		}
		n := int64(len(places))
		return count == 0 || n != count && n != -count
	})
	return places
}

// removeItems closes up what remains of a list behind the first place that is gone.
func (t *txn) removeItems(name []byte, b bounds, gone map[int64]bool) bounds {
	first := int64(math.MaxInt64)
	for place := range gone {
		first = min(first, place)
	}
	var kept [][]byte
	for i, item := range t.slice(name, b, first, b.len()-1) {
		if !gone[first+int64(i)] {
			kept = append(kept, item)
		}
	}
	t.setItems(name, b.first+uint64(first), kept)
	end := b.end - uint64(len(gone))
	t.dropItems(name, bounds{end, b.end})
	return bounds{b.first, end}
}

func rpoplpush(t *txn, args [][]byte) state.Reply { return moveItem(t, args[1], args[2], false, true) }

func lmove(t *txn, args [][]byte) state.Reply {
	fromLeft, toLeft := is(args[3], "LEFT"), is(args[4], "LEFT")
	if !fromLeft && !is(args[3], "RIGHT") || !toLeft && !is(args[4], "RIGHT") {
		return syntaxError()
	}
	return moveItem(t, args[1], args[2], fromLeft, toLeft)
}

func moveItem(t *txn, from, to []byte, fromLeft, toLeft bool) state.Reply {
	r, typed := t.typed(from, state.List)
	switch {
	case !typed:
		return wrongType()
	case !r.exists():
		return null()
	}
	if _, typed := t.typed(to, state.List); !typed {
		return wrongType()
	}
	item := t.popItems(from, r, 1, fromLeft)[0]
	target, _ := t.typed(to, state.List) // which may be the same list, and gone
	b := target.bounds()
	if bytes.Equal(from, to) && !target.exists() {
		target = record{expires: r.expires, indexed: 0}
	}
	if toLeft {
		b.first--
		t.setNewElement(to, itemNumber(b.first), item.Text)
	} else {
		t.setNewElement(to, itemNumber(b.end), item.Text)
		b.end++
	}
	t.settleList(to, target, b)
	return item
}

// positionQuery is what LPOS asks for.
type positionQuery struct {
	rank, count, most int64
	many              bool // COUNT was given: the reply is a list
}

func parsePosition(args [][]byte) (q positionQuery, refusal *state.Reply) {
	q = positionQuery{rank: 1, count: 1}
	for ; len(args) > 0 && refusal == nil; args = args[2:] {
		switch {
		case len(args) < 2:
			return q, refuse("ERR syntax error")
		case is(args[0], "RANK"):
			q.rank, refusal = parseWithin(args[1], -math.MaxInt64, math.MaxInt64, "")
			if refusal == nil && q.rank == 0 {
				refusal = refuse("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
			}
		case is(args[0], "COUNT"):
			q.many = true
			q.count, refusal = parseWithin(args[1], 0, math.MaxInt64, "ERR COUNT can't be negative")
		case is(args[0], "MAXLEN"):
			q.most, refusal = parseWithin(args[1], 0, math.MaxInt64, "ERR MAXLEN can't be negative")
		default:
			return q, refuse("ERR syntax error")
		}
	}
	return q, refusal
}

func lpos(t *txn, args [][]byte) state.Reply {
	q, refusal := parsePosition(args[3:])
	if refusal != nil {
		return *refusal
	}
	r, typed := t.typed(args[1], state.List)
	if !typed {
		return wrongType()
	}
	found := []state.Reply{}
	skip, looked := max(q.rank, -q.rank)-1, int64(0)
	t.items(args[1], r.bounds(), q.rank < 0, func(place int64, item []byte) bool {
		looked++
		if bytes.Equal(item, args[2]) {
			if skip == 0 {
				t.show(nil)
				found = append(found, integer(place))
			} else {
				skip--
			}
		}
		return (q.count == 0 || int64(len(found)) < q.count) && (q.most == 0 || looked < q.most)
	})
	switch {
	case q.many:
		return array(found)
	case len(found) == 0:
		return null()
	}
	return found[0]
}
