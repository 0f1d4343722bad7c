package command

import (
	"bytes"
	"math"

	"forerun.dev/forerun/internal/state"
)

func rename(t *txn, args [][]byte) state.Reply {
	r := t.load(args[1])
	switch {
	case !r.exists():
		return failure("ERR no such key")
	case !bytes.Equal(args[1], args[2]):
		t.move(args[1], args[2], r)
	}
	return ok()
}

func renamenx(t *txn, args [][]byte) state.Reply {
	r, other := t.load(args[1]), t.load(args[2])
	switch {
	case !r.exists():
		return failure("ERR no such key")
	case other.exists():
		return integer(0)
	}
	t.move(args[1], args[2], r)
	return integer(1)
}

func (t *txn) move(from, to []byte, r record) {
	t.duplicate(from, to, r)
	t.remove(from, r)
}

// duplicate makes the record of another name equal to one.
func (t *txn) duplicate(from, to []byte, r record) {
	if old := t.load(to); old.exists() {
		t.remove(to, old)
	}
	for _, prefix := range []byte{elementPrefix, orderPrefix} {
		first, last := t.collectionRange(prefix, from)
		var pairs []drawn
		t.scan(first, last, false, len(first), func(element, value []byte) {
			pairs = append(pairs, drawn{t.keep(element), t.keep(value)})
		})
		for _, p := range pairs {
			t.set(append(t.collectionKey(prefix, to, len(p.element)), p.element...), p.value)
		}
	}
	t.save(to, record{kind: r.kind, expires: r.expires, payload: r.payload})
}

func copyRecord(t *txn, args [][]byte) state.Reply {
	replace := false
	for options := args[3:]; len(options) > 0; options = options[1:] {
		switch {
		case is(options[0], "REPLACE"):
			replace = true
		case is(options[0], "DB") && len(options) > 1:
			options = options[1:]
			n, refusal := parseWithin(options[0], math.MinInt32, math.MaxInt32, "")
			switch {
			case refusal != nil:
				return *refusal
			case n != 0:
				return failure("ERR DB index is out of range")
			}
		default:
			return syntaxError()
		}
	}
	if bytes.Equal(args[1], args[2]) {
		return failure("ERR source and destination objects are the same")
	}
	r, other := t.load(args[1]), t.load(args[2])
	if !r.exists() || other.exists() && !replace {
		return integer(0)
	}
	t.duplicate(args[1], args[2], r)
	return integer(1)
}
