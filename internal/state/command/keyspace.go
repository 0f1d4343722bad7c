package command

import (
	"bytes"
	"math/rand/v2"

	"forerun.dev/forerun/internal/state"
)

// records calls f with the records of the space whose names are in a range (to nil: up to its end) and that have not
// expired, in the order of names, until f returns false. The name is valid only during the call.
func (t *txn) records(from, to []byte, f func(name []byte, r record) bool) {
	prefix := len(spaceKey(metaPrefix, t.space, 0))
	first, last := RecordRange(t.space, string(from), string(to))
	t.walk(first, last, false, prefix, func(name, stored []byte) bool {
		r, ok := decodeRecord(stored)
		if !ok {
			t.err = ErrDamaged
			return false
		}
		return r.gone(t.now) || f(name, r)
	})
}

func keys(t *txn, args [][]byte) state.Reply {
	items := []state.Reply{}
	from, to := prefixRange(literalPrefix(args[1]))
	all := string(args[1]) == "*"
	t.records(from, to, func(name []byte, _ record) bool {
		if all || t.matches(args[1], name) {
			items = append(items, bulk(t.keep(name)))
		}
		return true
	})
	return array(items)
}

// matches is Match, as long as somebody waits for it.
func (t *txn) matches(pattern, name []byte) bool {
	t.work(len(pattern))
	return matchWhile(pattern, name, func(steps int) bool {
		t.work(steps)
		return t.err == nil
	})
}

func dbsize(t *txn, _ [][]byte) state.Reply {
	n := int64(0)
	t.records(nil, nil, func([]byte, record) bool {
		n++
		return true
	})
	return integer(n)
}

// randomkey draws a record: the n-th that it meets takes the place of the one before with a chance of 1 in n.
func randomkey(t *txn, _ [][]byte) state.Reply {
	reply := null()
	n := int64(0)
	t.records(nil, nil, func(name []byte, _ record) bool {
		n++
		if rand.Int64N(n) == 0 {
			reply = bulk(bytes.Clone(name))
		}
		return true
	})
	return reply
}

// flush removes all records of the space. What the index of expiries says of them is swept when its time comes.
func flush(t *txn, args [][]byte) state.Reply {
	if len(args) > 2 || len(args) == 2 && !is(args[1], "ASYNC") && !is(args[1], "SYNC") {
		return syntaxError()
	}
	for _, prefix := range []byte{metaPrefix, elementPrefix, orderPrefix} {
		from := spaceKey(prefix, t.space, 0)
		t.overlay.Clear(from, after(bytes.Clone(from)))
	}
	return ok()
}
