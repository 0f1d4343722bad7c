package command

import (
	"math"
	"strings"

	"forerun.dev/forerun/internal/state"
)

// expiry reads the expiry of a record that is to live: a positive number of units (in milliseconds) from now, or since 1970.
func (t *txn) expiry(arg []byte, unit int64, relative bool) (int64, *state.Reply) {
	n, isInt := parseInt(arg)
	if !isInt {
		refusal := notInteger()
		return 0, &refusal
	}
	refusal := t.badExpiry()
	if n <= 0 || n > math.MaxInt64/unit {
		return 0, &refusal
	}
	n *= unit
	if relative {
		if n > math.MaxInt64-t.now {
			return 0, &refusal
		}
		n += t.now
	}
	return n, nil
}

func expire(t *txn, args [][]byte) state.Reply    { return expireGeneric(t, args, 1000, t.now) }
func pexpire(t *txn, args [][]byte) state.Reply   { return expireGeneric(t, args, 1, t.now) }
func expireat(t *txn, args [][]byte) state.Reply  { return expireGeneric(t, args, 1000, 0) }
func pexpireat(t *txn, args [][]byte) state.Reply { return expireGeneric(t, args, 1, 0) }

func expireGeneric(t *txn, args [][]byte, unit, base int64) state.Reply {
	condition, refusal := parseExpireCondition(args[3:])
	if refusal != nil {
		return *refusal
	}
	when, isInt := parseInt(args[2])
	if !isInt {
		return notInteger()
	}
	if when > math.MaxInt64/unit || when < math.MinInt64/unit || when*unit > math.MaxInt64-base {
		return t.badExpiry()
	}
	when = when*unit + base
	r := t.load(args[1])
	if !r.exists() || !condition.allows(r.expires, when) {
		return integer(0)
	}
	if when <= t.now {
		t.remove(args[1], r)
		return integer(1)
	}
	r.expires = when
	t.save(args[1], r)
	return integer(1)
}

// expireCondition is what EXPIRE demands of the expiry that a record has.
type expireCondition struct{ nx, xx, gt, lt bool }

func parseExpireCondition(args [][]byte) (c expireCondition, refusal *state.Reply) {
	refuse := func(format string, args ...any) (expireCondition, *state.Reply) {
		r := failure(format, args...)
		return c, &r
	}
	for _, arg := range args {
		switch strings.ToUpper(string(arg[:min(len(arg), maxName)])) {
		case "NX":
			c.nx = true
		case "XX":
			c.xx = true
		case "GT":
			c.gt = true
		case "LT":
			c.lt = true
		default:
			return refuse("ERR Unsupported option %s", oneLine(shorten(arg, len(arg))))
		}
	}
	if c.nx && (c.xx || c.gt || c.lt) {
		return refuse("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	if c.gt && c.lt {
		return refuse("ERR GT and LT options at the same time are not compatible")
	}
	return c, nil
}

// allows says whether an expiry (0: none, which is later than any) may be replaced.
func (c expireCondition) allows(old, when int64) bool {
	switch {
	case c.nx && old != 0, c.xx && old == 0, c.gt && (old == 0 || when <= old), c.lt && old != 0 && when >= old:
		return false
	}
	return true
}

func persist(t *txn, args [][]byte) state.Reply {
	r := t.load(args[1])
	if r.expires == 0 {
		return integer(0)
	}
	r.expires = 0
	t.save(args[1], r)
	return integer(1)
}

func ttl(t *txn, args [][]byte) state.Reply  { return remaining(t, args[1], 1000, t.now) }
func pttl(t *txn, args [][]byte) state.Reply { return remaining(t, args[1], 1, t.now) }

func expiretime(t *txn, args [][]byte) state.Reply  { return remaining(t, args[1], 1000, 0) }
func pexpiretime(t *txn, args [][]byte) state.Reply { return remaining(t, args[1], 1, 0) }

// remaining is the time from a moment to a record's expiry, rounded to units; -1 if it has none, -2 if it is not there.
func remaining(t *txn, name []byte, unit, since int64) state.Reply {
	r := t.load(name)
	switch {
	case !r.exists():
		return integer(-2)
	case r.expires == 0:
		return integer(-1)
	}
	ms := max(r.expires-since, 0)
	return integer(ms/unit + (ms%unit+unit/2)/unit)
}
