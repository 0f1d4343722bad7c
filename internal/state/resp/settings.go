package resp

import (
	"slices"
	"strconv"
	"time"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// setting is what CONFIG GET shows, in Redis's words.
type setting struct{ name, value string }

// settings are those that clients and tools ask for, as they would be of a Redis that does what this one does.
func (s *Server) settings() []setting {
	return []setting{
		{"appendfsync", "always"},
		{"appendonly", "yes"},
		{"databases", "1"},
		{"maxclients", strconv.Itoa(s.options.MaxConns)},
		{"maxmemory", "0"},
		{"maxmemory-policy", "noeviction"},
		{"notify-keyspace-events", ""},
		{"proto-max-bulk-len", strconv.Itoa(s.options.MaxBulk)},
		{"save", ""},
		{"timeout", "0"},
	}
}

// configGet shows the settings that match one of some patterns.
func (s *Server) configGet(patterns [][]byte) state.Reply {
	reply := state.Reply{Kind: state.MapReply}
	for _, setting := range s.settings() {
		matches := func(pattern []byte) bool { return command.Match([]byte(command.Lower(pattern)), []byte(setting.name)) }
		if slices.ContainsFunc(patterns, matches) {
			reply.Items = append(reply.Items, bulk(setting.name), bulk(setting.value))
		}
	}
	return reply
}

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
