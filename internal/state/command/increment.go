package command

import (
	"math"
	"strconv"

	"forerun.dev/forerun/internal/state"
)

func incr(t *txn, args [][]byte) state.Reply { return increment(t, args[1], 1) }
func decr(t *txn, args [][]byte) state.Reply { return increment(t, args[1], -1) }

func incrby(t *txn, args [][]byte) state.Reply {
	by, isInt := parseInt(args[2])
	if !isInt {
		return notInteger()
	}
	return increment(t, args[1], by)
}

func decrby(t *txn, args [][]byte) state.Reply {
	by, isInt := parseInt(args[2])
	if !isInt {
		return notInteger()
	}
	if by == math.MinInt64 {
		return failure("ERR decrement would overflow")
	}
	return increment(t, args[1], -by)
}

func increment(t *txn, name []byte, by int64) state.Reply {
	r, typed := t.typed(name, state.String)
	if !typed {
		return wrongType()
	}
	var n int64
	if r.exists() {
		var isInt bool
		if n, isInt = parseInt(r.payload); !isInt {
			return notInteger()
		}
	}
	sum, fits := addInt(n, by)
	if !fits {
		return failure("ERR increment or decrement would overflow")
	}
	t.setString(name, r, strconv.AppendInt(nil, sum, 10), r.expires)
	return integer(sum)
}

func incrbyfloat(t *txn, args [][]byte) state.Reply {
	r, typed := t.typed(args[1], state.String)
	if !typed {
		return wrongType()
	}
	old := []byte("0")
	if r.exists() {
		old = r.payload
	}
	n, ok1 := parseFloat(old)
	by, ok2 := parseFloat(args[2])
	if !ok1 || !ok2 {
		return notFloat()
	}
	sum, fits := addFloat(n, by)
	if !fits {
		return failure("ERR increment would produce NaN or Infinity")
	}
	data := formatFloat(sum)
	t.setString(args[1], r, data, r.expires)
	return bulk(data)
}
