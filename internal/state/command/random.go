package command

import (
	"math"
	"math/rand/v2"
	"slices"

	"forerun.dev/forerun/internal/state"
)

// maxRepeated is how many elements a command draws that may draw one again and again: a few bytes of it must not take
// the memory of a small server.
const maxRepeated = 1 << 20

// drawn is an element of a record, and its value if that is wanted.
type drawn struct{ element, value []byte }

// draw takes count different elements of a record at random or, if count is negative, -count that may be the same.
func (t *txn) draw(name []byte, r record, count int64, withValues bool) []drawn {
	n := r.elementCount()
	if n == 0 || count == 0 {
		return nil
	}
	if count < 0 {
		picks := make([]int64, -count)
		for i := range picks {
			picks[i] = rand.Int64N(n)
		}
		return t.pick(name, picks, withValues)
	}
	if count = min(count, n); count > maxStep/itemSize {
		t.err = tooMuchShown()
		return nil
	}
	return t.pick(name, choose(n, count), withValues)
}

// choose picks k different numbers below n (Floyd's way: every choice is as likely as every other).
func choose(n, k int64) []int64 {
	chosen := make(map[int64]bool, k)
	picks := make([]int64, 0, k)
	for i := n - k; i < n; i++ {
		pick := rand.Int64N(i + 1)
		if chosen[pick] {
			pick = i
		}
		chosen[pick] = true
		picks = append(picks, pick)
	}
	rand.Shuffle(len(picks), func(i, j int) { picks[i], picks[j] = picks[j], picks[i] })
	return picks
}

// pick finds elements by their places in the order of a record, in one walk up to the last of them.
func (t *txn) pick(name []byte, places []int64, withValues bool) []drawn {
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(places[a] - places[b]) })
	found := make([]drawn, len(places))
	at := int64(0)
	from, to := t.elementRange(name)
	t.walk(from, to, false, len(from), func(element, value []byte) bool {
		if places[order[0]] == at {
			d := drawn{element: t.keep(element)}
			if withValues {
				d.value = t.keep(value)
			}
			for len(order) > 0 && places[order[0]] == at {
				found[order[0]] = d
				order = order[1:]
			}
		}
		at++
		return len(order) > 0
	})
	return found
}

func srandmember(t *txn, args [][]byte) state.Reply {
	if len(args) > 3 {
		return syntaxError()
	}
	return drawReply(t, args, state.Set, false)
}

func hrandfield(t *txn, args [][]byte) state.Reply {
	if refusal := checkDraw(args, "WITHVALUES"); refusal != nil {
		return *refusal
	}
	return drawReply(t, args, state.Hash, len(args) == 4)
}

func zrandmember(t *txn, args [][]byte) state.Reply {
	if refusal := checkDraw(args, "WITHSCORES"); refusal != nil {
		return *refusal
	}
	return drawReply(t, args, state.SortedSet, len(args) == 4)
}

// checkDraw checks the option of a command that draws pairs.
func checkDraw(args [][]byte, option string) *state.Reply {
	if len(args) < 3 {
		return nil
	}
	count, refusal := parseWithin(args[2], -math.MaxInt64, math.MaxInt64, "")
	switch {
	case refusal != nil:
		return refusal
	case len(args) > 4 || len(args) == 4 && !is(args[3], option):
		return refuse("ERR syntax error")
	case len(args) == 4 && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		return refuse("ERR value is out of range")
	}
	return nil
}

// drawReply draws one element or, if there is a count, several, with their values if they are wanted.
func drawReply(t *txn, args [][]byte, kind state.Type, withValues bool) state.Reply {
	count := int64(1)
	if len(args) > 2 {
		var refusal *state.Reply
		if count, refusal = parseWithin(args[2], -math.MaxInt64, math.MaxInt64, ""); refusal != nil {
			return *refusal
		}
	}
	r, typed := t.typed(args[1], kind)
	switch {
	case !typed:
		return wrongType()
	case !r.exists() && len(args) == 2:
		return null()
	case !r.exists():
		return array([]state.Reply{})
	case count < -maxRepeated:
		return failure("ERR value is out of range")
	}
	found := t.draw(args[1], r, count, withValues)
	if len(args) == 2 && t.err == nil {
		return bulk(found[0].element)
	}
	items := make([]state.Reply, 0, 2*len(found))
	for _, d := range found {
		items = append(items, bulk(d.element))
		switch {
		case withValues && kind == state.SortedSet:
			items = append(items, double(source{r: r}.score(d.value)))
		case withValues:
			items = append(items, bulk(d.value))
		}
	}
	if withValues {
		return state.Reply{Kind: state.Pairs, Items: items}
	}
	return array(items)
}

func spop(t *txn, args [][]byte) state.Reply {
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
	r, typed := t.typed(args[1], state.Set)
	switch {
	case !typed:
		return wrongType()
	case !r.exists() && len(args) == 2:
		return null()
	}
	items := []state.Reply{}
	found := t.draw(args[1], r, count, false)
	left := r.count() - int64(len(found))
	for _, d := range found {
		if left > 0 { // else it goes with the record
			t.deleteElement(args[1], d.element)
		}
		items = append(items, bulk(d.element))
	}
	if len(items) > 0 {
		t.settle(args[1], state.Set, r, left)
	}
	if len(args) == 2 && len(items) == 1 {
		return items[0]
	}
	return state.Reply{Kind: state.SetReply, Items: items}
}
