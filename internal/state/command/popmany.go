package command

import (
	"math"

	"forerun.dev/forerun/internal/state"
)

// popQuery is what LMPOP and ZMPOP ask for.
type popQuery struct {
	names [][]byte
	first bool // from the beginning, not from the end
	count int64
}

// parsePop reads a number of keys, the keys, one of two words and perhaps COUNT.
func parsePop(args [][]byte, first, last string) (q popQuery, refusal *state.Reply) {
	n, refusal := parseWithin(args[0], 1, math.MaxInt64, "ERR numkeys should be greater than 0")
	if refusal != nil {
		return q, refusal
	}
	if n > int64(len(args)-2) {
		return q, refuse("ERR syntax error")
	}
	q = popQuery{names: args[1 : 1+n], first: is(args[1+n], first), count: 1}
	if !q.first && !is(args[1+n], last) {
		return q, refuse("ERR syntax error")
	}
	switch rest := args[2+n:]; {
	case len(rest) == 0:
		return q, nil
	case len(rest) < 2 || !is(rest[0], "COUNT"):
		return q, refuse("ERR syntax error")
	default:
		if q.count, refusal = parseWithin(rest[1], 1, math.MaxInt64, "ERR count should be greater than 0"); refusal == nil && len(rest) > 2 {
			refusal = refuse("ERR syntax error")
		}
		return q, refusal
	}
}

// popMany carries out what is asked for, within a timeout (nil: none). As in Redis the timeout is looked at last.
func popMany(t *txn, args [][]byte, timeout []byte, first, last string, pop func(t *txn, q popQuery) state.Reply) state.Reply {
	q, refusal := parsePop(args, first, last)
	if refusal == nil && timeout != nil {
		_, refusal = parseTimeout(timeout)
	}
	if refusal != nil {
		return *refusal
	}
	return pop(t, q)
}

func lmpop(t *txn, args [][]byte) state.Reply {
	return popMany(t, args[1:], nil, "LEFT", "RIGHT", popFromLists)
}

func blmpop(t *txn, args [][]byte) state.Reply {
	return popMany(t, args[2:], args[1], "LEFT", "RIGHT", popFromLists)
}

func zmpop(t *txn, args [][]byte) state.Reply {
	return popMany(t, args[1:], nil, "MIN", "MAX", popFromSortedSets)
}

func bzmpop(t *txn, args [][]byte) state.Reply {
	return popMany(t, args[2:], args[1], "MIN", "MAX", popFromSortedSets)
}

func popFromLists(t *txn, q popQuery) state.Reply {
	for _, name := range q.names {
		r, typed := t.typed(name, state.List)
		switch {
		case !typed:
			return wrongType()
		case r.exists():
			return array([]state.Reply{bulk(name), array(t.popItems(name, r, q.count, q.first))})
		}
	}
	return nullArray()
}

func popFromSortedSets(t *txn, q popQuery) state.Reply {
	for _, name := range q.names {
		z, typed := t.sortedSet(name)
		if !typed {
			return wrongType()
		}
		if z.n == 0 {
			continue
		}
		members := z.collect(z.all(), !q.first, q.count)
		z.take(members)
		items := make([]state.Reply, 0, len(members))
		for _, m := range members {
			items = append(items, array([]state.Reply{bulk(m.member), double(m.score)}))
		}
		return array([]state.Reply{bulk(name), array(items)})
	}
	return nullArray()
}
