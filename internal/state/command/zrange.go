package command

import (
	"math"
	"strings"

	"forerun.dev/forerun/internal/state"
)

// rangeKind says what the ends of a range of a sorted set are.
type rangeKind byte

const (
	anyKind rangeKind = iota // as the options say
	byRank
	byScore
	byLex
)

// rangeQuery is what ZRANGE and its relatives ask for.
type rangeQuery struct {
	kind          rangeKind
	reverse       bool
	withScores    bool
	offset, limit int64 // a limit of -1 is none
	from, to      int64 // ranks
	scores        scoreRange
	members       lexRange
}

// form is what a command's name says of its query.
type form struct {
	kind     rangeKind
	reverse  bool
	fixed    bool // the direction is not for options to say
	noScores bool // WITHSCORES is no option
}

func zrange(t *txn, args [][]byte) state.Reply { return showRange(t, args, form{}) }
func zrevrange(t *txn, args [][]byte) state.Reply {
	return showRange(t, args, form{kind: byRank, fixed: true, reverse: true})
}

func zrangebyscore(t *txn, args [][]byte) state.Reply {
	return showRange(t, args, form{kind: byScore, fixed: true})
}

func zrevrangebyscore(t *txn, args [][]byte) state.Reply {
	return showRange(t, args, form{kind: byScore, fixed: true, reverse: true})
}

func zrangebylex(t *txn, args [][]byte) state.Reply {
	return showRange(t, args, form{kind: byLex, fixed: true})
}

func zrevrangebylex(t *txn, args [][]byte) state.Reply {
	return showRange(t, args, form{kind: byLex, fixed: true, reverse: true})
}

func showRange(t *txn, args [][]byte, f form) state.Reply {
	q, refusal := parseRange(args[2:], f)
	if refusal != nil {
		return *refusal
	}
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	return scoredReply(z.find(q), q.withScores)
}

func zrangestore(t *txn, args [][]byte) state.Reply {
	q, refusal := parseRange(args[3:], form{noScores: true})
	if refusal != nil {
		return *refusal
	}
	z, typed := t.sortedSet(args[2])
	if !typed {
		return wrongType()
	}
	return storeSorted(t, args[1], z.find(q))
}

// storeSorted puts a sorted set in the place of a record, and answers how many members it has; none removes the record.
func storeSorted(t *txn, name []byte, members []scored) state.Reply {
	z := t.replaceSorted(name)
	for _, m := range members {
		z.insert(m.member, m.score)
	}
	if z.n > 0 {
		z.settle()
	}
	return integer(z.n)
}

// parseRange reads the ends of a range and the options behind them.
func parseRange(args [][]byte, f form) (rangeQuery, *state.Reply) {
	q, refusal := parseRangeOptions(args[2:], f)
	if refusal != nil {
		return q, refusal
	}
	switch {
	case q.limit != -1 && q.kind == byRank:
		return q, refuse("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	case q.withScores && q.kind == byLex:
		return q, refuse("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	}
	low, high := args[0], args[1]
	if q.reverse && q.kind != byRank {
		low, high = high, low
	}
	switch q.kind {
	case byScore:
		q.scores, refusal = parseScoreRange(low, high)
	case byLex:
		q.members, refusal = parseLexRange(low, high)
	default:
		q.from, q.to, refusal = parseRanks(low, high)
	}
	return q, refusal
}

func parseRanks(low, high []byte) (from, to int64, refusal *state.Reply) {
	from, ok1 := parseInt(low)
	to, ok2 := parseInt(high)
	if !ok1 || !ok2 {
		r := notInteger()
		return 0, 0, &r
	}
	return from, to, nil
}

func parseRangeOptions(args [][]byte, f form) (rangeQuery, *state.Reply) {
	q := rangeQuery{kind: f.kind, reverse: f.reverse, limit: -1}
	refusal := syntaxError()
	fixed := f.fixed
	for i := 0; i < len(args); i++ {
		switch option := strings.ToUpper(string(args[i][:min(len(args[i]), maxName)])); {
		case option == "WITHSCORES" && !f.noScores:
			q.withScores = true
		case option == "LIMIT" && len(args)-i > 2:
			var bad *state.Reply
			if q.offset, q.limit, bad = parseRanks(args[i+1], args[i+2]); bad != nil {
				return q, bad
			}
			i += 2
		case option == "REV" && !fixed:
			q.reverse, fixed = true, true
		case option == "BYSCORE" && q.kind == anyKind:
			q.kind = byScore
		case option == "BYLEX" && q.kind == anyKind:
			q.kind = byLex
		default:
			return q, &refusal
		}
	}
	if q.kind == anyKind {
		q.kind = byRank
	}
	return q, nil
}

// find collects what a query asks for.
func (z *sortedSet) find(q rangeQuery) []scored {
	switch q.kind {
	case byScore:
		return z.skip(z.scores(q.scores), q.reverse, q.offset, q.limit)
	case byLex:
		return z.t.collectSome(q.offset, q.limit, func(f func(scored) bool) { z.members(q.members, q.reverse, f) })
	}
	return z.ranked(q.from, q.to, q.reverse)
}

func zcount(t *txn, args [][]byte) state.Reply {
	r, refusal := parseScoreRange(args[2], args[3])
	if refusal != nil {
		return *refusal
	}
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	return integer(z.count(r))
}

func zlexcount(t *txn, args [][]byte) state.Reply {
	r, refusal := parseLexRange(args[2], args[3])
	if refusal != nil {
		return *refusal
	}
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	n := int64(0)
	z.members(r, false, func(scored) bool {
		n++
		return true
	})
	return integer(n)
}

func zremrangebyrank(t *txn, args [][]byte) state.Reply {
	return removeRange(t, args, form{kind: byRank, fixed: true})
}

func zremrangebyscore(t *txn, args [][]byte) state.Reply {
	return removeRange(t, args, form{kind: byScore, fixed: true})
}

func zremrangebylex(t *txn, args [][]byte) state.Reply {
	return removeRange(t, args, form{kind: byLex, fixed: true})
}

func removeRange(t *txn, args [][]byte, f form) state.Reply {
	q, refusal := parseRange(args[2:], f)
	if refusal != nil {
		return *refusal
	}
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	members := z.find(q)
	z.take(members)
	return integer(int64(len(members)))
}

// take removes members that lie together, and the record with the last of them.
func (z *sortedSet) take(members []scored) {
	switch n := int64(len(members)); {
	case n == 0:
		return
	case n == z.n:
		z.n = 0 // with the record
	case n > maxSingly:
		z.takeMany(members)
	default:
		for _, m := range members {
			z.delete(m.member, m.score)
		}
	}
	z.settle()
}

// takeMany removes members from the order at once.
func (z *sortedSet) takeMany(members []scored) {
	low, high := members[0], members[len(members)-1]
	if high.compare(low) < 0 {
		low, high = high, low
	}
	z.t.overlay.Clear(z.orderKey(low.score, low.member), append(z.orderKey(high.score, high.member), 0))
	for _, m := range members {
		z.t.deleteKnown(z.t.elementKey(z.name, m.member), scoreSize)
		z.note(m.score, m.member, -1)
	}
}

func zpopmin(t *txn, args [][]byte) state.Reply { return popScored(t, args, false) }
func zpopmax(t *txn, args [][]byte) state.Reply { return popScored(t, args, true) }

func popScored(t *txn, args [][]byte, highest bool) state.Reply {
	if len(args) > 3 {
		return syntaxError()
	}
	count := int64(1)
	if len(args) == 3 {
		var refusal *state.Reply
		if count, refusal = parseWithin(args[2], 0, math.MaxInt64, "ERR value is out of range, must be positive"); refusal != nil {
			return *refusal
		}
	}
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	members := z.collect(z.all(), highest, count)
	z.take(members)
	reply := scoredReply(members, true)
	if len(args) == 2 || len(members) == 0 {
		reply.Kind = state.Array
	}
	return reply
}
