package command

import (
	"encoding/binary"

	"forerun.dev/forerun/internal/state"
)

// A list's items lie under consecutive numbers; the payload of its head is the number of the first item and that
// behind the last. A list begins in the middle of all numbers, so that it can grow at both ends.
const listOrigin = uint64(1) << 63

// bounds are the numbers of a list's items: from first up to end, exclusive.
type bounds struct{ first, end uint64 }

func (r *record) bounds() bounds {
	if len(r.payload) != 16 {
		return bounds{listOrigin, listOrigin}
	}
	return bounds{binary.BigEndian.Uint64(r.payload), binary.BigEndian.Uint64(r.payload[8:])}
}

func (b bounds) len() int64 { return int64(b.end - b.first) }

func itemNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// settleList writes the head of a list; an empty one is removed.
func (t *txn) settleList(name []byte, r record, b bounds) {
	if b.len() == 0 {
		t.remove(name, r)
		return
	}
	r.kind = state.List
	r.payload = binary.BigEndian.AppendUint64(itemNumber(b.first), b.end)
	t.save(name, r)
}

func lpush(t *txn, args [][]byte) state.Reply  { return push(t, args, true, false) }
func rpush(t *txn, args [][]byte) state.Reply  { return push(t, args, false, false) }
func lpushx(t *txn, args [][]byte) state.Reply { return push(t, args, true, true) }
func rpushx(t *txn, args [][]byte) state.Reply { return push(t, args, false, true) }

func push(t *txn, args [][]byte, left, onlyExisting bool) state.Reply {
	r, typed := t.typed(args[1], state.List)
	if !typed {
		return wrongType()
	}
	if onlyExisting && !r.exists() {
		return integer(0)
	}
	b := r.bounds()
	for _, item := range args[2:] {
		if left {
			b.first--
			t.setNewElement(args[1], itemNumber(b.first), item)
		} else {
			t.setNewElement(args[1], itemNumber(b.end), item)
			b.end++
		}
	}
	t.settleList(args[1], r, b)
	return integer(b.len())
}

func lpop(t *txn, args [][]byte) state.Reply { return pop(t, args, true) }
func rpop(t *txn, args [][]byte) state.Reply { return pop(t, args, false) }

func pop(t *txn, args [][]byte, left bool) state.Reply {
	if len(args) > 3 {
		return t.wrongArity()
	}
	count := int64(1)
	if len(args) == 3 {
		var isInt bool
		if count, isInt = parseInt(args[2]); !isInt || count < 0 {
			return failure("ERR value is out of range, must be positive")
		}
	}
	r, typed := t.typed(args[1], state.List)
	switch {
	case !typed:
		return wrongType()
	case !r.exists() && len(args) == 3:
		return state.Reply{Kind: state.NilArray}
	case !r.exists():
		return null()
	}
	items := t.popItems(args[1], r, count, left)
	if len(args) == 2 {
		return items[0]
	}
	return array(items)
}

// popItems takes up to count items from one end of a list.
func (t *txn) popItems(name []byte, r record, count int64, left bool) []state.Reply {
	b := r.bounds()
	taken := b
	count = min(count, b.len())
	items := []state.Reply{}
	for range count {
		n := b.first
		if left {
			b.first++
		} else {
			b.end--
			n = b.end
		}
		item, _ := t.element(name, itemNumber(n))
		items = append(items, bulk(item))
		if t.show(item); t.err != nil {
			return items
		}
	}
	if left {
		taken.end = b.first
	} else {
		taken.first = b.end
	}
	if count > 0 {
		t.dropItems(name, taken)
		t.settleList(name, r, b)
	}
	return items
}

func llen(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.List)
	if !typed {
		return wrongType()
	}
	return integer(r.bounds().len())
}

func lindex(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.List)
	switch {
	case !typed:
		return wrongType()
	case !r.exists():
		return null()
	}
	i, isInt := parseInt(args[2])
	if !isInt {
		return notInteger()
	}
	b := r.bounds()
	if i < 0 {
		i += b.len()
	}
	if i < 0 || i >= b.len() {
		return null()
	}
	item, _ := t.element(args[1], itemNumber(b.first+uint64(i)))
	return bulk(item)
}

func lrange(t *txn, args [][]byte) state.Reply {
	from, ok1 := parseInt(args[2])
	to, ok2 := parseInt(args[3])
	if !ok1 || !ok2 {
		return notInteger()
	}
	r, typed := t.typed(args[1], state.List)
	if !typed {
		return wrongType()
	}
	b := r.bounds()
	from, to = rangeOf(from, to, b.len())
	items := []state.Reply{}
	if from > to {
		return array(items)
	}
	prefix := len(t.elementKey(args[1], nil))
	first := t.elementKey(args[1], itemNumber(b.first+uint64(from)))
	end := t.elementKey(args[1], itemNumber(b.first+uint64(to)+1))
	t.scan(first, end, false, prefix, func(_, item []byte) { items = append(items, bulk(t.keep(item))) })
	return array(items)
}
