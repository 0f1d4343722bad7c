package command

import (
	"math"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/state"
)

// addOptions are the options of ZADD.
type addOptions struct{ nx, xx, gt, lt, ch, incr bool }

// parseAddOptions reads the options of ZADD, and returns what follows them.
func parseAddOptions(args [][]byte) (o addOptions, rest [][]byte) {
	for i, arg := range args {
		switch strings.ToUpper(string(arg[:min(len(arg), maxName)])) {
		case "NX":
			o.nx = true
		case "XX":
			o.xx = true
		case "GT":
			o.gt = true
		case "LT":
			o.lt = true
		case "CH":
			o.ch = true
		case "INCR":
			o.incr = true
		default:
			return o, args[i:]
		}
	}
	return o, nil
}

// refusal says why the options do not go with each other, or with a number of pairs.
func (o addOptions) refusal(pairs int) *state.Reply {
	switch {
	case o.nx && o.xx:
		return refuse("ERR XX and NX options at the same time are not compatible")
	case o.gt && o.nx, o.lt && o.nx, o.gt && o.lt:
		return refuse("ERR GT, LT, and/or NX options at the same time are not compatible")
	case o.incr && pairs > 1:
		return refuse("ERR INCR option supports a single increment-element pair")
	}
	return nil
}

func zadd(t *txn, args [][]byte) state.Reply {
	o, rest := parseAddOptions(args[2:])
	return addScores(t, args[1], o, rest)
}

func zincrby(t *txn, args [][]byte) state.Reply {
	return addScores(t, args[1], addOptions{incr: true}, args[2:])
}

// addScores is ZADD, with pairs of scores and members.
func addScores(t *txn, name []byte, o addOptions, pairs [][]byte) state.Reply {
	if len(pairs) == 0 || len(pairs)%2 != 0 {
		return syntaxError()
	}
	if refusal := o.refusal(len(pairs) / 2); refusal != nil {
		return *refusal
	}
	scores := make([]float64, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		score, ok := parseScore(pairs[i])
		if !ok {
			return notFloat()
		}
		scores = append(scores, score)
	}
	z, typed := t.sortedSet(name)
	if !typed {
		return wrongType()
	}
	var added, updated int64
	answer := null()
	for i, score := range scores {
		result := z.add(o, pairs[2*i+1], score)
		if math.IsNaN(result.score) {
			return failure("ERR resulting score is not a number (NaN)")
		}
		added += result.added
		updated += result.updated
		if result.done {
			answer = double(result.score)
		}
	}
	if added+updated > 0 {
		z.settle()
	}
	switch {
	case o.incr:
		return answer
	case o.ch:
		return integer(added + updated)
	}
	return integer(added)
}

// addition is what became of one pair of ZADD.
type addition struct {
	added, updated int64
	done           bool    // no option kept it from being done
	score          float64 // then; NaN if the score cannot be
}

func (z *sortedSet) add(o addOptions, member []byte, score float64) addition {
	old, found := z.score(member)
	switch {
	case !found && o.xx, found && o.nx:
		return addition{}
	case !found:
		z.insert(member, score)
		return addition{added: 1, done: true, score: score}
	}
	if o.incr {
		score += old
	}
	switch {
	case math.IsNaN(score):
		return addition{score: score}
	case o.lt && score >= old, o.gt && score <= old:
		return addition{}
	case score == old:
		return addition{done: true, score: score}
	}
	z.move(member, old, score)
	return addition{updated: 1, done: true, score: score}
}

func zrem(t *txn, args [][]byte) state.Reply {
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	n := z.n
	for _, member := range args[2:] {
		if score, found := z.score(member); found {
			z.delete(member, score)
		}
	}
	if z.n < n {
		z.settle()
	}
	return integer(n - z.n)
}

func zcard(t *txn, args [][]byte) state.Reply {
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	return integer(z.n)
}

func zscore(t *txn, args [][]byte) state.Reply {
	reply := zmscore(t, args)
	if reply.Kind == state.Array {
		return reply.Items[0]
	}
	return reply
}

func zmscore(t *txn, args [][]byte) state.Reply {
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	items := make([]state.Reply, 0, len(args)-2)
	for _, member := range args[2:] {
		item := null()
		if score, found := z.score(member); found {
			item = double(score)
		}
		items = append(items, item)
	}
	return array(items)
}

func zrank(t *txn, args [][]byte) state.Reply    { return rank(t, args, false) }
func zrevrank(t *txn, args [][]byte) state.Reply { return rank(t, args, true) }

// rank counts the members on one side of a member, and tells its score if that is wanted.
func rank(t *txn, args [][]byte, reverse bool) state.Reply {
	if len(args) > 4 {
		return t.wrongArity()
	}
	withScore := len(args) == 4
	if withScore && !is(args[3], "WITHSCORE") {
		return syntaxError()
	}
	z, typed := t.sortedSet(args[1])
	if !typed {
		return wrongType()
	}
	score, found := z.score(args[2])
	switch {
	case !found && withScore:
		return nullArray()
	case !found:
		return null()
	}
	ordered := orderedScore(score)
	n := z.before(slices.Concat(ordered[:], args[2]))
	if reverse {
		n = z.n - 1 - n
	}
	if withScore {
		return array([]state.Reply{integer(n), double(score)})
	}
	return integer(n)
}
