package command

import (
	"bytes"
	"math"
	"slices"

	"forerun.dev/forerun/internal/state"
)

// sets finds several sets; ok is false if one of the records has another type.
func (t *txn) sets(names [][]byte) (records []record, ok bool) {
	for _, name := range names {
		r, typed := t.typed(name, state.Set)
		if !typed {
			return nil, false
		}
		records = append(records, r)
	}
	return records, true
}

// combination computes a set of several; it stops at limit members (0: none).
type combination func(t *txn, names [][]byte, records []record, limit int64) [][]byte

func sinter(t *txn, args [][]byte) state.Reply { return showSets(t, args[1:], intersect) }
func sunion(t *txn, args [][]byte) state.Reply { return showSets(t, args[1:], unite) }
func sdiff(t *txn, args [][]byte) state.Reply  { return showSets(t, args[1:], subtract) }

func sinterstore(t *txn, args [][]byte) state.Reply { return storeSets(t, args, intersect) }
func sunionstore(t *txn, args [][]byte) state.Reply { return storeSets(t, args, unite) }
func sdiffstore(t *txn, args [][]byte) state.Reply  { return storeSets(t, args, subtract) }

func showSets(t *txn, names [][]byte, combine combination) state.Reply {
	records, typed := t.sets(names)
	if !typed {
		return wrongType()
	}
	items := []state.Reply{}
	for _, member := range combine(t, names, records, 0) {
		items = append(items, bulk(member))
	}
	return state.Reply{Kind: state.SetReply, Items: items}
}

func storeSets(t *txn, args [][]byte, combine combination) state.Reply {
	records, typed := t.sets(args[2:])
	if !typed {
		return wrongType()
	}
	members := combine(t, args[2:], records, 0)
	if old := t.load(args[1]); old.exists() {
		t.remove(args[1], old)
	}
	for _, member := range members {
		t.setElement(args[1], member, nil)
	}
	if len(members) > 0 {
		t.settle(args[1], state.Set, record{}, int64(len(members)))
	}
	return integer(int64(len(members)))
}

// intersect looks up the members of the smallest set in the others.
func intersect(t *txn, names [][]byte, records []record, limit int64) [][]byte {
	smallest := 0
	for i, r := range records {
		if r.count() < records[smallest].count() {
			smallest = i
		}
	}
	var common [][]byte
	if records[smallest].count() == 0 {
		return nil
	}
	from, to := t.elementRange(names[smallest])
	t.walk(from, to, false, len(from), func(member, _ []byte) bool {
		for i, name := range names {
			if i == smallest {
				continue
			}
			if _, found := t.element(name, member); !found {
				return t.err == nil
			}
		}
		common = append(common, t.keep(member))
		return int64(len(common)) != limit
	})
	return common
}

func unite(t *txn, names [][]byte, records []record, _ int64) (all [][]byte) {
	known := make(map[string]bool)
	for i, name := range names {
		if !records[i].exists() {
			continue
		}
		t.elements(name, func(member, _ []byte) {
			if !known[string(member)] {
				known[string(member)] = true
				all = append(all, t.keep(member))
			}
		})
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}

func subtract(t *txn, names [][]byte, records []record, _ int64) (left [][]byte) {
	if !records[0].exists() {
		return nil
	}
	var others [][]byte // which are there: the members of one that has expired may be, too
	for i, name := range names[1:] {
		if records[i+1].exists() {
			others = append(others, name)
		}
	}
	t.elements(names[0], func(member, _ []byte) {
		if !slices.ContainsFunc(others, func(name []byte) bool {
			_, found := t.element(name, member)
			return found || t.err != nil
		}) {
			left = append(left, t.keep(member))
		}
	})
	return left
}

func sintercard(t *txn, args [][]byte) state.Reply {
	names, options, refusal := parseNames(args[1:])
	if refusal != nil {
		return *refusal
	}
	limit, refusal := parseLimit(options)
	if refusal != nil {
		return *refusal
	}
	records, typed := t.sets(names)
	if !typed {
		return wrongType()
	}
	return integer(int64(len(intersect(t, names, records, limit))))
}

// parseNames reads a number of keys and the keys, and returns what follows them.
func parseNames(args [][]byte) (names, rest [][]byte, refusal *state.Reply) {
	n, refusal := parseWithin(args[0], 1, math.MaxInt64, "ERR numkeys should be greater than 0")
	if refusal != nil {
		return nil, nil, refusal
	}
	if n > int64(len(args)-1) {
		return nil, nil, refuse("ERR Number of keys can't be greater than number of args")
	}
	return args[1 : 1+n], args[1+n:], nil
}

// parseLimit reads options of which LIMIT is the only one; 0 is no limit.
func parseLimit(options [][]byte) (limit int64, refusal *state.Reply) {
	for ; len(options) > 0; options = options[2:] {
		if len(options) < 2 || !is(options[0], "LIMIT") {
			return 0, refuse("ERR syntax error")
		}
		if limit, refusal = parseWithin(options[1], 0, math.MaxInt64, "ERR LIMIT can't be negative"); refusal != nil {
			return 0, refusal
		}
	}
	return limit, nil
}

func smove(t *txn, args [][]byte) state.Reply {
	from, ok1 := t.typed(args[1], state.Set)
	if ok1 && !from.exists() {
		return integer(0)
	}
	to, ok2 := t.typed(args[2], state.Set)
	if !ok1 || !ok2 {
		return wrongType()
	}
	_, found := t.element(args[1], args[3])
	if !found || bytes.Equal(args[1], args[2]) {
		return truth(found)
	}
	t.deleteElement(args[1], args[3])
	t.settle(args[1], state.Set, from, from.count()-1)
	if _, there := t.element(args[2], args[3]); !there { // else it has not changed, for those that watch it
		t.setElement(args[2], args[3], nil)
		t.settle(args[2], state.Set, to, to.count()+1)
	}
	return integer(1)
}
