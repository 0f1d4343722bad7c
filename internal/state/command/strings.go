package command

import (
	"forerun.dev/forerun/internal/state"
)

// MaxString is how long commands make a string (Redis's setting proto-max-bulk-len, 512 MB there): a few bytes of
// SETRANGE must not take the memory of a small server. A door that is to take no longer ones from clients says so itself.
const MaxString = 64 << 20

func get(t *txn, args [][]byte) state.Reply {
	r, ok := t.typed(args[1], state.String)
	return r.text(ok)
}

// text is what GET answers for a record of the right type, or not of the right type.
func (r *record) text(ok bool) state.Reply {
	switch {
	case !ok:
		return wrongType()
	case !r.exists():
		return null()
	}
	return bulk(r.payload)
}

func setnx(t *txn, args [][]byte) state.Reply {
	r := t.load(args[1])
	if r.exists() {
		return integer(0)
	}
	t.setString(args[1], r, args[2], 0)
	return integer(1)
}

func setex(t *txn, args [][]byte) state.Reply  { return setExpiring(t, args, 1000) }
func psetex(t *txn, args [][]byte) state.Reply { return setExpiring(t, args, 1) }

func setExpiring(t *txn, args [][]byte, unit int64) state.Reply {
	expires, refusal := t.expiry(args[2], unit, true)
	if refusal != nil {
		return *refusal
	}
	t.setString(args[1], t.load(args[1]), args[3], expires)
	return ok()
}

func getset(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.String)
	if typed {
		t.setString(args[1], r, args[2], 0)
	}
	return r.text(typed)
}

func getdel(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.String)
	if typed && r.exists() {
		t.remove(args[1], r)
	}
	return r.text(typed)
}

func appendTo(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.String)
	if !typed {
		return wrongType()
	}
	if len(r.payload)+len(args[2]) > MaxString {
		return failure("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	}
	data := t.grown(r.payload, int64(len(r.payload)+len(args[2])))
	if t.err != nil {
		return null()
	}
	copy(data[len(r.payload):], args[2])
	t.setString(args[1], r, data, r.expires)
	return integer(int64(len(data)))
}

func strlen(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.String)
	if !typed {
		return wrongType()
	}
	return integer(int64(len(r.payload)))
}

func getrange(t *txn, args [][]byte) state.Reply {
	from, ok1 := parseInt(args[2])
	to, ok2 := parseInt(args[3])
	if !ok1 || !ok2 {
		return notInteger()
	}
	r, typed := t.typed(args[1], state.String)
	if !typed {
		return wrongType()
	}
	n := int64(len(r.payload))
	if from < 0 && to < 0 && from > to {
		return bulk(nil)
	}
	from, to = rangeOf(from, max(to, -n), n)
	if n == 0 || from > to {
		return bulk(nil)
	}
	return bulk(r.payload[from : to+1])
}

func setrange(t *txn, args [][]byte) state.Reply {
	offset, isInt := parseInt(args[2])
	if !isInt {
		return notInteger()
	}
	if offset < 0 {
		return failure("ERR offset is out of range")
	}
	r, typed := t.typed(args[1], state.String)
	if !typed {
		return wrongType()
	}
	if len(args[3]) == 0 {
		return integer(int64(len(r.payload)))
	}
	if offset > MaxString-int64(len(args[3])) {
		return failure("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	}
	data := t.grown(r.payload, offset+int64(len(args[3])))
	if t.err != nil {
		return null()
	}
	copy(data[offset:], args[3])
	t.setString(args[1], r, data, r.expires)
	return integer(int64(len(data)))
}

func mget(t *txn, args [][]byte) state.Reply {
	items := make([]state.Reply, 0, len(args)-1)
	for _, name := range args[1:] {
		r, typed := t.typed(name, state.String)
		if !typed {
			r = record{}
		}
		t.show(r.payload)
		items = append(items, r.text(true))
	}
	return array(items)
}

func mset(t *txn, args [][]byte) state.Reply {
	if len(args)%2 == 0 {
		return t.wrongArity()
	}
	for i := 1; i < len(args); i += 2 {
		t.setString(args[i], t.load(args[i]), args[i+1], 0)
	}
	return ok()
}

func msetnx(t *txn, args [][]byte) state.Reply {
	if len(args)%2 == 0 {
		return t.wrongArity()
	}
	for i := 1; i < len(args); i += 2 {
		if r := t.load(args[i]); r.exists() {
			return integer(0)
		}
	}
	mset(t, args)
	return integer(1)
}
