package command

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"forerun.dev/forerun/internal/state"
)

// parseScore reads a double as strictly as Redis: what C's strtod reads completely, but for NaN and what does not fit.
// Infinities are allowed.
func parseScore(b []byte) (float64, bool) {
	f, fits, ok := parseDouble(b)
	return f, ok && fits
}

// parseDouble reads what C's strtod reads completely, but for NaN. What does not fit becomes infinite or 0.
func parseDouble(b []byte) (f float64, fits, ok bool) {
	if !isFloat(b) {
		return 0, false, false
	}
	text := string(b)
	if hexadecimal := bytes.ContainsAny(b, "xX"); hexadecimal && !bytes.ContainsAny(b, "pP") {
		text += "p0" // which Go demands
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false, false
	}
	return f, err == nil && (f != 0 || isZero(b)), true
}

// isZero says whether a number that is written right has no digit but zeros before its exponent.
func isZero(b []byte) bool {
	exponent, digits := "eE", "123456789"
	if bytes.ContainsAny(b, "xX") {
		exponent, digits = "pP", "123456789abcdefABCDEF"
	}
	if i := bytes.IndexAny(b, exponent); i >= 0 {
		b = b[:i]
	}
	return !bytes.ContainsAny(b, digits)
}

// bound is an end of a range of scores.
type bound struct {
	score     float64
	exclusive bool
}

// parseBound reads an end of a range, which is less strict than a score: it may begin with blanks, and nothing is 0.
func parseBound(b []byte) (bound, bool) {
	var e bound
	if len(b) > 0 && b[0] == '(' {
		e.exclusive, b = true, b[1:]
	}
	var ok bool
	e.score, _, ok = parseLoosely(b)
	return e, ok
}

// parseLoosely reads a double as C's strtod does up to the end of a string: blanks may come before it, and nothing is 0.
func parseLoosely(b []byte) (f float64, fits, ok bool) {
	b, _, _ = bytes.Cut(b, []byte{0})
	if len(b) == 0 {
		return 0, true, true
	}
	return parseDouble(bytes.TrimLeft(b, " \t\n\v\f\r"))
}

// scoreRange is a range of scores.
type scoreRange struct{ low, high bound }

func parseScoreRange(low, high []byte) (r scoreRange, refusal *state.Reply) {
	var ok1, ok2 bool
	r.low, ok1 = parseBound(low)
	r.high, ok2 = parseBound(high)
	if !ok1 || !ok2 {
		return r, refuse("ERR min or max is not a float")
	}
	return r, nil
}

// scores is the stretch of members whose scores are in a range.
func (z *sortedSet) scores(r scoreRange) stretch {
	at := func(e bound, behind bool) []byte {
		ordered := scoreBits(e.score)
		if behind {
			ordered++ // no score is the highest of all numbers
		}
		key := z.t.collectionKey(orderPrefix, z.name, scoreSize)
		for shift := 56; shift >= 0; shift -= 8 {
			key = append(key, byte(ordered>>shift))
		}
		return key
	}
	return stretch{at(r.low, r.low.exclusive), at(r.high, !r.high.exclusive)}
}

// count is the number of members whose scores are in a range.
func (z *sortedSet) count(r scoreRange) int64 {
	s := z.scores(r)
	if bytes.Compare(s.from, s.to) >= 0 {
		return 0
	}
	prefix := len(z.t.collectionKey(orderPrefix, z.name, 0))
	return z.before(s.to[prefix:]) - z.before(s.from[prefix:])
}

// lexBound is an end of a range of members.
type lexBound struct {
	member    []byte
	exclusive bool
	infinite  int // -1 before all members, 1 behind them; 0: member says
}

func parseLexBound(b []byte) (lexBound, bool) {
	switch {
	case len(b) == 0:
	case b[0] == '(' || b[0] == '[':
		return lexBound{member: b[1:], exclusive: b[0] == '('}, true
	case len(b) == 1 && b[0] == '-':
		return lexBound{infinite: -1}, true
	case len(b) == 1 && b[0] == '+':
		return lexBound{infinite: 1}, true
	}
	return lexBound{}, false
}

// compare says where a member lies from a bound: -1 before it, 1 behind it, 0 on it.
func (e lexBound) compare(member []byte) int {
	if e.infinite != 0 {
		return -e.infinite
	}
	return bytes.Compare(member, e.member)
}

// lexRange is a range of members, for sets whose scores are all the same.
type lexRange struct{ low, high lexBound }

func parseLexRange(low, high []byte) (r lexRange, refusal *state.Reply) {
	var ok1, ok2 bool
	r.low, ok1 = parseLexBound(low)
	r.high, ok2 = parseLexBound(high)
	if !ok1 || !ok2 {
		return r, refuse("ERR min or max not valid string range item")
	}
	return r, nil
}

func (r lexRange) behindLow(member []byte) bool {
	c := r.low.compare(member)
	return c > 0 || c == 0 && !r.low.exclusive
}

func (r lexRange) beforeHigh(member []byte) bool {
	c := r.high.compare(member)
	return c < 0 || c == 0 && !r.high.exclusive
}

// empty says whether no member can be in the range.
func (r lexRange) empty() bool {
	low, high := r.low, r.high
	if low.infinite != 0 || high.infinite != 0 {
		return low.infinite > high.infinite || low.infinite == high.infinite && low.infinite != 0
	}
	c := bytes.Compare(low.member, high.member)
	return c > 0 || c == 0 && (low.exclusive || high.exclusive)
}

// members calls f with the members in a range of names until it returns false. If their scores are all the same it
// reads no others. If not, Redis leaves the result open; this is what it finds in a small set: from the first member in
// the range on, those before the first that is not.
func (z *sortedSet) members(r lexRange, reverse bool, f func(m scored) bool) {
	first, ok1 := z.end(false)
	last, ok2 := z.end(true)
	if !ok1 || !ok2 || r.empty() {
		return
	}
	if first.score == last.score {
		z.walk(z.between(r, first.score), reverse, f)
		return
	}
	if !r.behindLow(last.member) || !r.beforeHigh(first.member) {
		return
	}
	begins, goesOn := r.behindLow, r.beforeHigh
	if reverse {
		begins, goesOn = r.beforeHigh, r.behindLow
	}
	begun := false
	z.walk(z.all(), reverse, func(m scored) bool {
		begun = begun || begins(m.member)
		return !begun || goesOn(m.member) && f(m)
	})
}

// between is the stretch of members in a range of names that have a score.
func (z *sortedSet) between(r lexRange, score float64) stretch {
	s := z.scores(scoreRange{bound{score: score}, bound{score: score}})
	if r.low.infinite == 0 {
		s.from = z.orderKey(score, r.low.member)
		if r.low.exclusive {
			s.from = append(s.from, 0)
		}
	}
	if r.high.infinite == 0 {
		s.to = z.orderKey(score, r.high.member)
		if !r.high.exclusive {
			s.to = append(s.to, 0)
		}
	}
	return s
}

// finite makes what is not a number 0, as Redis does where scores are combined.
func finite(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// FormatDouble writes a score as Redis does: up to 17 digits, without an exponent where that is not long.
func FormatDouble(f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return []byte("inf")
	case math.IsInf(f, -1):
		return []byte("-inf")
	case math.IsNaN(f):
		return []byte("nan")
	}
	return strconv.AppendFloat(nil, f, 'g', 17, 64)
}
