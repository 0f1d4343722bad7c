package command

import (
	"math"
	"time"

	"forerun.dev/forerun/internal/state"
)

// A command that may wait does here what it can at once; if that is nothing it answers Nil or NilArray. Who executes
// it waits for the records to change, for Timeout at most, and executes it again.

func blpop(t *txn, args [][]byte) state.Reply { return popFirst(t, args, true) }
func brpop(t *txn, args [][]byte) state.Reply { return popFirst(t, args, false) }

func popFirst(t *txn, args [][]byte, left bool) state.Reply {
	if _, refusal := parseTimeout(args[len(args)-1]); refusal != nil {
		return *refusal
	}
	for _, name := range args[1 : len(args)-1] {
		r, typed := t.typed(name, state.List)
		switch {
		case !typed:
			return wrongType()
		case r.exists():
			return array([]state.Reply{bulk(name), t.popItems(name, r, 1, left)[0]})
		}
	}
	return nullArray()
}

func bzpopmin(t *txn, args [][]byte) state.Reply { return popFirstScored(t, args, false) }
func bzpopmax(t *txn, args [][]byte) state.Reply { return popFirstScored(t, args, true) }

func popFirstScored(t *txn, args [][]byte, highest bool) state.Reply {
	if _, refusal := parseTimeout(args[len(args)-1]); refusal != nil {
		return *refusal
	}
	for _, name := range args[1 : len(args)-1] {
		z, typed := t.sortedSet(name)
		switch {
		case !typed:
			return wrongType()
		case z.n > 0:
			members := z.collect(z.all(), highest, 1)
			z.take(members)
			if len(members) == 0 {
				return nullArray() // the store has failed
			}
			return array([]state.Reply{bulk(name), bulk(members[0].member), double(members[0].score)})
		}
	}
	return nullArray()
}

func blmove(t *txn, args [][]byte) state.Reply {
	fromLeft, toLeft := is(args[3], "LEFT"), is(args[4], "LEFT")
	if !fromLeft && !is(args[3], "RIGHT") || !toLeft && !is(args[4], "RIGHT") {
		return syntaxError()
	}
	if _, refusal := parseTimeout(args[5]); refusal != nil {
		return *refusal
	}
	return moveItem(t, args[1], args[2], fromLeft, toLeft)
}

func brpoplpush(t *txn, args [][]byte) state.Reply {
	if _, refusal := parseTimeout(args[3]); refusal != nil {
		return *refusal
	}
	return moveItem(t, args[1], args[2], false, true)
}

// maxTimeout is how many milliseconds Redis can add to the time of day, which since 2017 takes 41 bits.
const maxTimeout = math.MaxInt64 - 1<<41

// parseTimeout reads seconds; 0 is for ever.
func parseTimeout(arg []byte) (time.Duration, *state.Reply) {
	seconds, isFloat := parseFloat(arg)
	if !isFloat {
		return 0, refuse("ERR timeout is not a float or out of range")
	}
	f, _ := seconds.Float64()
	switch ms := math.Ceil(f * 1000); {
	case ms < 0:
		return 0, refuse("ERR timeout is negative")
	case ms >= maxTimeout:
		return 0, refuse("ERR timeout is out of range")
	case f > math.MaxInt64/float64(time.Second):
		return 0, nil
	default:
		return time.Duration(ms) * time.Millisecond, nil
	}
}

// timeoutAt is where the timeout of a command stands that may wait.
func (s *Spec) timeoutAt(args [][]byte) int {
	if s.keys.find != nil { // those with a number of keys
		return 1
	}
	return len(args) - 1
}

// Timeout is how long a command may wait that Find has found and that has the flag Blocking; 0: for ever.
func (s *Spec) Timeout(args [][]byte) time.Duration {
	d, _ := parseTimeout(args[s.timeoutAt(args)])
	return d
}

// Sources are the keys of a waiting command that make it go on when they change.
func (s *Spec) Sources(args [][]byte) [][]byte {
	var names [][]byte
	for i := range s.KeyPositions(args) {
		if names = append(names, args[i]); s.moves() {
			break // where it moves to does not matter
		}
	}
	return names
}

// Awaits is the type of the records that a command can use that may wait.
func (s *Spec) Awaits() state.Type {
	if s.Name[1] == 'z' {
		return state.SortedSet
	}
	return state.List
}

// Destination is the key of the record to which a command that may wait moves an item; nil if it moves none.
func (s *Spec) Destination(args [][]byte) []byte {
	if s.moves() {
		return args[2]
	}
	return nil
}

// moves says whether a command that may wait moves an item from its first key to its second.
func (s *Spec) moves() bool { return s.keys.last == 2 }
