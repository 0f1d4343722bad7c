package command

import (
	"cmp"
	"math"
	"slices"

	"forerun.dev/forerun/internal/state"
)

// sources are the sets and sorted sets that a command combines; the members of a set have the score 1.
type sources struct {
	t     *txn
	list  []source
	after [][]byte // the arguments behind the keys
}

type source struct {
	name   []byte
	r      record
	weight float64
}

// combineOptions are the options of ZUNION and its relatives.
type combineOptions struct {
	aggregate  func(a, b float64) float64
	withScores bool
	limit      int64
}

// combineForm says which options a command has.
type combineForm struct{ weights, withScores, limit bool }

// zcombination computes a sorted set of several, in its order.
type zcombination func(s *sources, o combineOptions) []scored

var (
	showing  = combineForm{weights: true, withScores: true}
	stores   = combineForm{weights: true}
	counting = combineForm{limit: true}
)

func zunion(t *txn, args [][]byte) state.Reply { return showCombined(t, args, showing, uniteScored) }

func zinter(t *txn, args [][]byte) state.Reply {
	return showCombined(t, args, showing, intersectScored)
}

func zdiff(t *txn, args [][]byte) state.Reply {
	return showCombined(t, args, combineForm{withScores: true}, subtractScored)
}

func zunionstore(t *txn, args [][]byte) state.Reply {
	return storeCombined(t, args, stores, uniteScored)
}

func zinterstore(t *txn, args [][]byte) state.Reply {
	return storeCombined(t, args, stores, intersectScored)
}

func zdiffstore(t *txn, args [][]byte) state.Reply {
	return storeCombined(t, args, combineForm{}, subtractScored)
}

func zintercard(t *txn, args [][]byte) state.Reply {
	s, o, refusal := t.sources(args[1:], counting)
	if refusal != nil {
		return *refusal
	}
	return integer(int64(len(intersectScored(s, o))))
}

func showCombined(t *txn, args [][]byte, f combineForm, combine zcombination) state.Reply {
	s, o, refusal := t.sources(args[1:], f)
	if refusal != nil {
		return *refusal
	}
	return scoredReply(combine(s, o), o.withScores)
}

func storeCombined(t *txn, args [][]byte, f combineForm, combine zcombination) state.Reply {
	s, o, refusal := t.sources(args[2:], f)
	if refusal != nil {
		return *refusal
	}
	return storeSorted(t, args[1], combine(s, o))
}

// sources reads the number of keys, the keys and the options, and finds the records.
func (t *txn) sources(args [][]byte, f combineForm) (*sources, combineOptions, *state.Reply) {
	var o combineOptions
	n, isInt := parseInt(args[0])
	switch {
	case !isInt:
		return nil, o, refuse("ERR value is not an integer or out of range")
	case n < 1:
		return nil, o, refuse("ERR at least 1 input key is needed for '%s' command", t.spec.Name)
	case n > int64(len(args)-1):
		return nil, o, refuse("ERR syntax error")
	}
	s := &sources{t: t, after: args[1+n:]}
	for _, name := range args[1 : 1+n] {
		r := t.load(name)
		if r.exists() && r.kind != state.SortedSet && r.kind != state.Set {
			w := wrongType()
			return nil, o, &w
		}
		s.list = append(s.list, source{name: name, r: r, weight: 1})
	}
	o, refusal := s.options(f)
	return s, o, refusal
}

// options reads what follows the keys.
func (s *sources) options(f combineForm) (o combineOptions, refusal *state.Reply) {
	o.aggregate = addScore
	args := s.after
	for len(args) > 0 && refusal == nil {
		switch {
		case f.weights && is(args[0], "WEIGHTS") && len(args) > len(s.list):
			refusal = s.weigh(args[1:])
			args = args[1+len(s.list):]
		case f.weights && is(args[0], "AGGREGATE") && len(args) > 1:
			o.aggregate, refusal = parseAggregate(args[1])
			args = args[2:]
		case f.withScores && is(args[0], "WITHSCORES"):
			o.withScores = true
			args = args[1:]
		case f.limit && is(args[0], "LIMIT") && len(args) > 1:
			o.limit, refusal = parseWithin(args[1], 0, math.MaxInt64, "ERR LIMIT can't be negative")
			args = args[2:]
		default:
			refusal = refuse("ERR syntax error")
		}
	}
	return o, refusal
}

func (s *sources) weigh(args [][]byte) *state.Reply {
	for i := range s.list {
		weight, ok := parseScore(args[i])
		if !ok {
			return refuse("ERR weight value is not a float")
		}
		s.list[i].weight = weight
	}
	return nil
}

func parseAggregate(arg []byte) (func(a, b float64) float64, *state.Reply) {
	switch {
	case is(arg, "SUM"):
		return addScore, nil
	case is(arg, "MIN"):
		return func(a, b float64) float64 {
			if b < a {
				return b
			}
			return a
		}, nil
	case is(arg, "MAX"):
		return func(a, b float64) float64 {
			if b > a {
				return b
			}
			return a
		}, nil
	}
	return nil, refuse("ERR syntax error")
}

func addScore(a, b float64) float64 { return finite(a + b) }

// bySize puts the smallest first: Redis adds in this order, and the order makes a difference to sums of floats.
func (s *sources) bySize() {
	slices.SortStableFunc(s.list, func(a, b source) int { return cmp.Compare(a.r.count(), b.r.count()) })
}

// each calls f with the members of a source until it returns false.
func (s *sources) each(src source, f func(m scored) bool) {
	if !src.r.exists() {
		return
	}
	from, to := s.t.elementRange(src.name)
	s.t.walk(from, to, false, len(from), func(member, value []byte) bool {
		return f(scored{member, src.score(value)})
	})
}

// score is the score that the value of an element stands for.
func (src source) score(value []byte) float64 {
	if src.r.kind == state.SortedSet && len(value) == scoreSize {
		return scoreOf(value)
	}
	return 1
}

// find looks a member up in a source.
func (s *sources) find(src source, member []byte) (float64, bool) {
	if !src.r.exists() {
		return 0, false
	}
	value, found := s.t.element(src.name, member)
	return src.score(value), found
}

func uniteScored(s *sources, o combineOptions) []scored {
	s.bySize()
	scores := make(map[string]float64)
	for _, src := range s.list {
		s.each(src, func(m scored) bool {
			score := finite(src.weight * m.score)
			if old, there := scores[string(m.member)]; there {
				score = o.aggregate(old, score)
			} else {
				s.t.show(m.member)
			}
			scores[string(m.member)] = score
			return true
		})
	}
	members := make([]scored, 0, len(scores))
	for member, score := range scores {
		members = append(members, scored{[]byte(member), score})
	}
	slices.SortFunc(members, scored.compare)
	return members
}

func intersectScored(s *sources, o combineOptions) []scored {
	s.bySize()
	var members []scored
	s.each(s.list[0], func(m scored) bool {
		score := finite(s.list[0].weight * m.score)
		for _, src := range s.list[1:] {
			other, found := s.find(src, m.member)
			if !found {
				return s.t.err == nil
			}
			score = o.aggregate(score, src.weight*other)
		}
		members = append(members, scored{s.t.keep(m.member), score})
		return int64(len(members)) != o.limit
	})
	slices.SortFunc(members, scored.compare)
	return members
}

func subtractScored(s *sources, _ combineOptions) []scored {
	var members []scored
	s.each(s.list[0], func(m scored) bool {
		for _, src := range s.list[1:] {
			if _, found := s.find(src, m.member); found {
				return true
			}
		}
		members = append(members, scored{s.t.keep(m.member), m.score})
		return s.t.err == nil
	})
	slices.SortFunc(members, scored.compare)
	return members
}
