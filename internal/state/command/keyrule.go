package command

import (
	"iter"
	"slices"
)

// keyRule says which arguments of a command are keys: those that find finds; without find those from first to last
// (negative: counted from the end) in steps. Redis's COMMAND shows the range even where there is a find.
type keyRule struct {
	first, last, step int
	find              func(args [][]byte) []int
}

// The rules that most commands follow.
var (
	noKeys    = keyRule{}
	one       = keyRule{first: 1, last: 1, step: 1}
	two       = keyRule{first: 1, last: 2, step: 1}
	every     = keyRule{first: 1, last: -1, step: 1}
	pairs     = keyRule{first: 1, last: -1, step: 2}
	butLast   = keyRule{first: 1, last: -2, step: 1}
	second    = keyRule{first: 2, last: 2, step: 1}
	fromTwo   = keyRule{first: 2, last: -1, step: 1}
	counted1  = keyRule{find: counted(1)}
	counted2  = keyRule{find: counted(2)}
	oneAnd2   = keyRule{first: 1, last: 1, step: 1, find: oneAndCounted}
	sorted    = keyRule{first: 1, last: 1, step: 1, find: sortKeys}
	radius    = keyRule{first: 1, last: 1, step: 1, find: geoKeys(6)}
	radiusOf  = keyRule{first: 1, last: 1, step: 1, find: geoKeys(5)}
	streams   = keyRule{find: streamKeys}
	migration = keyRule{first: 3, last: 3, step: 1, find: migrated}
)

// KeyPositions yields the positions of the keys among arguments whose number is right.
func (s *Spec) KeyPositions(args [][]byte) iter.Seq[int] {
	if s.keys.find != nil {
		return slices.Values(s.keys.find(args))
	}
	return func(yield func(int) bool) {
		last := s.keys.last
		if last < 0 {
			last += len(args)
		}
		for i := s.keys.first; s.keys.step > 0 && i <= min(last, len(args)-1); i += s.keys.step {
			if !yield(i) {
				return
			}
		}
	}
}

// MovesKeys says whether which arguments are keys depends on other arguments.
func (s *Spec) MovesKeys() bool { return s.keys.find != nil }

// KeyRange is the part of the rule that Redis's COMMAND shows: the first key, the last (negative: from the end) and the step.
func (s *Spec) KeyRange() (first, last, step int) { return s.keys.first, s.keys.last, s.keys.step }

// counted finds keys whose number stands at a position and which follow it. A number below 1, or above the number of
// arguments, counts none.
func counted(at int) func([][]byte) []int {
	return func(args [][]byte) []int {
		if at >= len(args) {
			return nil
		}
		n, ok := parseInt(args[at])
		if !ok || n < 1 || n > int64(len(args)-at-1) {
			return nil
		}
		return positions(at+1, int(n))
	}
}

// oneAndCounted finds the key in front of a number of keys, and those.
func oneAndCounted(args [][]byte) []int {
	sources := counted(2)(args)
	if sources == nil {
		return nil
	}
	return append([]int{1}, sources...)
}

func positions(first, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = first + i
	}
	return list
}

// sortKeys finds the keys of SORT: the record, and the value of the last option STORE.
func sortKeys(args [][]byte) []int {
	list := []int{1}
	for i := 2; i < len(args)-1; i++ {
		switch {
		case is(args[i], "LIMIT"):
			i += 2
		case is(args[i], "GET"), is(args[i], "BY"):
			i++
		case is(args[i], "STORE"):
			i++
			list = []int{1, i}
		}
	}
	return list
}

// geoKeys finds the keys of GEORADIUS, whose options begin at a position: the record, and what follows each STORE or
// STOREDIST.
func geoKeys(from int) func([][]byte) []int {
	return func(args [][]byte) []int {
		list := []int{1}
		for i := from; i < len(args)-1; i++ {
			if is(args[i], "STORE") || is(args[i], "STOREDIST") {
				list = append(list, i+1)
			}
		}
		return list
	}
}

// streamKeys finds the keys of XREAD: the first half of what follows STREAMS.
func streamKeys(args [][]byte) []int {
	for i := 1; i < len(args); i++ {
		if is(args[i], "STREAMS") {
			return positions(i+1, (len(args)-i-1)/2)
		}
	}
	return nil
}

// migrated finds the keys of MIGRATE: the one at its place, or those that follow the word KEYS if an empty text is there.
func migrated(args [][]byte) []int {
	for i := 6; i < len(args)-1; i++ {
		switch {
		case is(args[i], "AUTH"):
			i++
		case is(args[i], "AUTH2"):
			i += 2
		case is(args[i], "KEYS") && len(args[3]) > 0:
			return nil // an error in Redis
		case is(args[i], "KEYS"):
			return positions(i+1, len(args)-i-1)
		}
	}
	return []int{3}
}
