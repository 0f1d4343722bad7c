package resp

import (
	"strconv"
	"time"

	"forerun.dev/forerun/internal/state"
)

// now is the seconds since 1970, and the microseconds of this one.
func now(t time.Time) state.Reply {
	return state.Reply{Kind: state.Array, Items: []state.Reply{
		bulk(strconv.FormatInt(t.Unix(), 10)), bulk(strconv.Itoa(t.Nanosecond() / 1000)),
	}}
}

// waitForReplicas answers at once: there are none, and what was written is on disk when the reply is shown.
func waitForReplicas(args [][]byte) state.Reply {
	if _, valid := length(args[1]); !valid {
		return failure("ERR value is not an integer or out of range")
	}
	timeout, valid := length(args[2])
	switch {
	case !valid:
		return failure("ERR timeout is not an integer or out of range")
	case timeout < 0:
		return failure("ERR timeout is negative")
	}
	return integer(0)
}
