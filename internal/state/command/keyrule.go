package command

import (
	"bytes"
	"iter"
)

// keyRule says which arguments of a command are keys: those from first to last (negative: counted from the end) in
// steps, and those that find finds.
type keyRule struct {
	first, last, step int
	find              func(args [][]byte) []int
	number            int // where the number of keys stands that find finds; 0: nowhere
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
	counted1  = keyRule{find: counted(1), number: 1}
	counted2  = keyRule{find: counted(2), number: 2}
	oneAnd2   = keyRule{first: 1, last: 1, step: 1, find: counted(2), number: 2}
	storing   = keyRule{first: 1, last: 1, step: 1, find: following("STORE", "STOREDIST")}
	streams   = keyRule{find: streamKeys}
	migration = keyRule{first: 3, last: 3, step: 1, find: migrated}
)

// KeyPositions yields the positions of the keys among arguments whose number is right.
func (s *Spec) KeyPositions(args [][]byte) iter.Seq[int] {
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
		if s.keys.find == nil {
			return
		}
		for _, i := range s.keys.find(args) {
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

// countsRight says whether a number of keys among the arguments is one above 0, and there are so many arguments.
func (r keyRule) countsRight(args [][]byte) bool {
	if r.number == 0 {
		return true
	}
	n, ok := parseInt(args[r.number])
	return ok && n > 0 && n <= int64(len(args)-r.number-1)
}

// counted finds keys whose number stands at a position and which follow it.
func counted(at int) func([][]byte) []int {
	return func(args [][]byte) []int {
		if at >= len(args) {
			return nil
		}
		n, ok := parseInt(args[at])
		if !ok || n < 0 {
			return nil
		}
		return positions(at+1, int(min(n, int64(len(args)-at-1))))
	}
}

func positions(first, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = first + i
	}
	return list
}

// following finds the keys that follow one of some words.
func following(words ...string) func([][]byte) []int {
	return func(args [][]byte) (list []int) {
		for i := 2; i < len(args)-1; i++ {
			for _, word := range words {
				if bytes.EqualFold(args[i], []byte(word)) {
					list = append(list, i+1)
				}
			}
		}
		return list
	}
}

// streamKeys finds the keys of XREAD: the first half of what follows STREAMS.
func streamKeys(args [][]byte) []int {
	for i := 1; i < len(args); i++ {
		if bytes.EqualFold(args[i], []byte("STREAMS")) {
			return positions(i+1, (len(args)-i-1)/2)
		}
	}
	return nil
}

// migrated finds the keys of MIGRATE that follow the word KEYS.
func migrated(args [][]byte) []int {
	for i := 6; i < len(args); i++ {
		if bytes.EqualFold(args[i], []byte("KEYS")) {
			return positions(i+1, len(args)-i-1)
		}
	}
	return nil
}
