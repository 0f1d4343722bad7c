package command

import (
	"strconv"

	"forerun.dev/forerun/internal/state"
)

func hset(t *txn, args [][]byte) state.Reply {
	created, refusal := setFields(t, args)
	if refusal != nil {
		return *refusal
	}
	return integer(created)
}

func hmset(t *txn, args [][]byte) state.Reply {
	if _, refusal := setFields(t, args); refusal != nil {
		return *refusal
	}
	return ok()
}

// setFields writes the pairs of fields and values that follow the key, and returns how many fields are new.
func setFields(t *txn, args [][]byte) (created int64, refusal *state.Reply) {
	if len(args)%2 != 0 {
		r := t.wrongArity()
		return 0, &r
	}
	r, typed := t.typed(args[1], state.Hash)
	if !typed {
		w := wrongType()
		return 0, &w
	}
	for i := 2; i < len(args); i += 2 {
		if _, found := t.element(args[1], args[i]); !found {
			created++
		}
		t.setElement(args[1], args[i], args[i+1])
	}
	t.settle(args[1], state.Hash, r, r.count()+created)
	return created, nil
}

func hsetnx(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.Hash)
	if !typed {
		return wrongType()
	}
	if r.exists() {
		if _, found := t.element(args[1], args[2]); found {
			return integer(0)
		}
	}
	t.setElement(args[1], args[2], args[3])
	t.settle(args[1], state.Hash, r, r.count()+1)
	return integer(1)
}

// field reads one field of a hash that may not be there; ok is false if the record is no hash.
func (t *txn) field(name, field []byte) (r record, value []byte, found, ok bool) {
	r, ok = t.typed(name, state.Hash)
	if ok && r.exists() {
		value, found = t.element(name, field)
	}
	return r, value, found, ok
}

func hget(t *txn, args [][]byte) state.Reply {
	_, value, found, typed := t.field(args[1], args[2])
	switch {
	case !typed:
		return wrongType()
	case !found:
		return null()
	}
	return bulk(value)
}

func hmget(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.Hash)
	if !typed {
		return wrongType()
	}
	items := make([]state.Reply, 0, len(args)-2)
	for _, field := range args[2:] {
		item := null()
		if r.exists() {
			if value, found := t.element(args[1], field); found {
				t.show(value)
				item = bulk(value)
			}
		}
		items = append(items, item)
	}
	return array(items)
}

func hstrlen(t *txn, args [][]byte) state.Reply {
	_, value, _, typed := t.field(args[1], args[2])
	if !typed {
		return wrongType()
	}
	return integer(int64(len(value)))
}

func hexists(t *txn, args [][]byte) state.Reply {
	_, _, found, typed := t.field(args[1], args[2])
	if !typed {
		return wrongType()
	}
	return truth(found)
}

func hlen(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.Hash)
	if !typed {
		return wrongType()
	}
	return integer(r.count())
}

func hgetall(t *txn, args [][]byte) state.Reply {
	return fields(t, args[1], state.MapReply, func(items []state.Reply, field, value []byte) []state.Reply {
		return append(items, bulk(t.keep(field)), bulk(t.keep(value)))
	})
}

func hkeys(t *txn, args [][]byte) state.Reply {
	return fields(t, args[1], state.Array, func(items []state.Reply, field, _ []byte) []state.Reply {
		return append(items, bulk(t.keep(field)))
	})
}

func hvals(t *txn, args [][]byte) state.Reply {
	return fields(t, args[1], state.Array, func(items []state.Reply, _, value []byte) []state.Reply {
		return append(items, bulk(t.keep(value)))
	})
}

// fields collects something of each field of a hash.
func fields(t *txn, name []byte, kind state.ReplyKind, add func(items []state.Reply, field, value []byte) []state.Reply) state.Reply {
	r, typed := t.typed(name, state.Hash)
	if !typed {
		return wrongType()
	}
	items := []state.Reply{}
	if r.exists() {
		t.elements(name, func(field, value []byte) { items = add(items, field, value) })
	}
	return state.Reply{Kind: kind, Items: items}
}

func hdel(t *txn, args [][]byte) state.Reply { return removeMembers(t, args, state.Hash) }

// removeMembers removes elements of a hash or a set, and says how many there were.
func removeMembers(t *txn, args [][]byte, kind state.Type) state.Reply {
	r, typed := t.typed(args[1], kind)
	if !typed {
		return wrongType()
	}
	if !r.exists() {
		return integer(0)
	}
	n := int64(0)
	for _, member := range args[2:] {
		if _, found := t.element(args[1], member); found {
			t.deleteElement(args[1], member)
			n++
		}
	}
	if n > 0 {
		t.settle(args[1], kind, r, r.count()-n)
	}
	return integer(n)
}

func hincrby(t *txn, args [][]byte) state.Reply {
	by, isInt := parseInt(args[3])
	if !isInt {
		return notInteger()
	}
	r, value, found, typed := t.field(args[1], args[2])
	if !typed {
		return wrongType()
	}
	var n int64
	if found {
		if n, isInt = parseInt(value); !isInt {
			return failure("ERR hash value is not an integer")
		}
	}
	sum, fits := addInt(n, by)
	if !fits {
		return failure("ERR increment or decrement would overflow")
	}
	t.replaceField(args[1], args[2], r, found, strconv.AppendInt(nil, sum, 10))
	return integer(sum)
}

func hincrbyfloat(t *txn, args [][]byte) state.Reply {
	by, isFloat := parseFloat(args[3])
	if !isFloat {
		return notFloat()
	}
	if by.IsInf() {
		return failure("ERR value is NaN or Infinity")
	}
	r, value, found, typed := t.field(args[1], args[2])
	if !typed {
		return wrongType()
	}
	if !found {
		value = []byte("0")
	}
	n, isFloat := parseFloat(value)
	if !isFloat {
		return failure("ERR hash value is not a float")
	}
	sum, fits := addFloat(n, by)
	if !fits {
		return failure("ERR increment would produce NaN or Infinity")
	}
	text := formatFloat(sum)
	t.replaceField(args[1], args[2], r, found, text)
	return bulk(text)
}

// replaceField writes a field that was found or not.
func (t *txn) replaceField(name, field []byte, r record, found bool, value []byte) {
	t.setElement(name, field, value)
	n := r.count()
	if !found {
		n++
	}
	t.settle(name, state.Hash, r, n)
}
