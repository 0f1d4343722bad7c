package resp

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// setting is one of Redis's settings, in Redis's words. CONFIG SET checks a value and uses none: what a setting would do has no meaning
// here, or it is fixed.
type setting struct {
	name, value string
	alias       string // its other name
	accepts     accepts
	fixed       string // why another value is refused; empty: any that it accepts has no meaning here
}

// accepts says why Redis would refuse a value of a setting; "" if it would not.
type accepts func(value string) string

func anything(string) string { return "" }

func yesOrNo(value string) string {
	if strings.EqualFold(value, "yes") || strings.EqualFold(value, "no") {
		return ""
	}
	return "argument must be 'yes' or 'no'"
}

func within(least, most int64) accepts {
	return func(value string) string {
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return "argument couldn't be parsed into an integer"
		case n < least || n > most:
			return fmt.Sprintf("argument must be between %d and %d inclusive", least, most)
		}
		return ""
	}
}

func atLeast(least int64) accepts { return within(least, math.MaxInt64) }

// counts accepts what a C int can count.
var counts = within(0, math.MaxInt32)

// memory accepts bytes with a unit, at least so many.
func memory(least int64) accepts {
	return func(value string) string {
		n, ok := memoryOf(value)
		switch {
		case !ok:
			return "argument must be a memory value"
		case n < least:
			return fmt.Sprintf("argument must be between %d and %d inclusive", least, int64(math.MaxInt64))
		}
		return ""
	}
}

func memoryOf(value string) (bytes int64, ok bool) {
	number := strings.TrimRight(strings.ToLower(value), "bkmg")
	n, err := strconv.ParseInt(number, 10, 64)
	unit, known := map[string]int64{"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30}[strings.ToLower(value[len(number):])]
	if err != nil || !known || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

func oneOf(words ...string) accepts {
	return func(value string) string {
		if slices.Contains(words, strings.ToLower(value)) {
			return ""
		}
		return "argument(s) must be one of the following: " + strings.Join(words, ", ")
	}
}

// words are the parts of a value between single spaces, as Redis splits it.
func words(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, " ")
}

// saves accepts pairs of seconds and changes.
func saves(value string) string {
	fields := words(value)
	for i, field := range fields {
		least := int64(1 - i%2)
		if n, err := strconv.ParseInt(field, 10, 64); err != nil || n < least {
			return "Invalid save parameters"
		}
	}
	if len(fields)%2 != 0 {
		return "Invalid save parameters"
	}
	return ""
}

// bufferLimits accepts fours of a class of clients, a hard limit, a soft limit, and the seconds for which the soft one may be exceeded.
func bufferLimits(value string) string {
	fields := words(value)
	if len(fields)%4 != 0 {
		return "Wrong number of arguments in buffer limit configuration."
	}
	for four := range slices.Chunk(fields, 4) {
		if oneOf("normal", "slave", "replica", "pubsub")(four[0]) != "" {
			return "Invalid client class specified in buffer limit configuration."
		}
		if memory(0)(four[1]) != "" || memory(0)(four[2]) != "" || counts(four[3]) != "" {
			return "Error in hard, soft or soft_seconds setting in buffer limit configuration."
		}
	}
	return ""
}

// Why settings are fixed.
const (
	immutable = "can't set immutable config"
	onDisk    = "everything is on disk before it is acknowledged"
	noEvents  = "there are no keyspace notifications"
	noMemory  = "records are on disk, and none is evicted to save memory"
	atStart   = "it is fixed while the server runs"
	noIdle    = "idle connections are not closed"
	noReplica = "there are no replicas"
	keyed     = "clients authenticate with the key of a namespace"
)

// settings are those that clients and tools ask for or change, as they would be of a Redis that does what this one does.
func (s *Server) settings() []setting {
	return []setting{
		{name: "active-expire-effort", value: "1", accepts: within(1, 10)},
		{name: "activedefrag", value: "no", accepts: yesOrNo},
		{name: "activerehashing", value: "yes", accepts: yesOrNo},
		{name: "aof-use-rdb-preamble", value: "yes", accepts: yesOrNo},
		{name: "appendfsync", value: "always", accepts: oneOf("everysec", "always", "no")},
		{name: "appendonly", value: "yes", accepts: yesOrNo, fixed: onDisk},
		{name: "auto-aof-rewrite-min-size", value: "67108864", accepts: memory(0)},
		{name: "auto-aof-rewrite-percentage", value: "100", accepts: counts},
		{name: "bind", value: "", accepts: anything, fixed: atStart},
		{name: "busy-reply-threshold", value: "5000", alias: "lua-time-limit", accepts: atLeast(0)},
		{name: "client-output-buffer-limit", value: "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", accepts: bufferLimits},
		{name: "client-query-buffer-limit", value: "1073741824", accepts: memory(1 << 20)},
		{name: "cluster-enabled", value: "no", accepts: yesOrNo, fixed: immutable},
		{name: "databases", value: "1", accepts: counts, fixed: immutable},
		{name: "dbfilename", value: "dump.rdb", accepts: anything, fixed: "can't set protected config"},
		{name: "dir", value: "", accepts: anything, fixed: "can't set protected config"},
		{name: "dynamic-hz", value: "yes", accepts: yesOrNo},
		{name: "hash-max-listpack-entries", value: "512", alias: "hash-max-ziplist-entries", accepts: atLeast(0)},
		{name: "hash-max-listpack-value", value: "64", alias: "hash-max-ziplist-value", accepts: memory(0)},
		{name: "hll-sparse-max-bytes", value: "3000", accepts: memory(0)},
		{name: "hz", value: "10", accepts: counts},
		{name: "latency-monitor-threshold", value: "0", accepts: atLeast(0)},
		{name: "latency-tracking", value: "no", accepts: yesOrNo},
		{name: "lazyfree-lazy-eviction", value: "no", accepts: yesOrNo},
		{name: "lazyfree-lazy-expire", value: "no", accepts: yesOrNo},
		{name: "lazyfree-lazy-server-del", value: "no", accepts: yesOrNo},
		{name: "lazyfree-lazy-user-del", value: "no", accepts: yesOrNo},
		{name: "lazyfree-lazy-user-flush", value: "no", accepts: yesOrNo},
		{name: "lfu-decay-time", value: "1", accepts: counts},
		{name: "lfu-log-factor", value: "10", accepts: counts},
		{name: "list-compress-depth", value: "0", accepts: counts},
		{name: "list-max-listpack-size", value: "-2", alias: "list-max-ziplist-size", accepts: within(math.MinInt32, math.MaxInt32)},
		{name: "loglevel", value: "notice", accepts: oneOf("debug", "verbose", "notice", "warning", "nothing")},
		{name: "maxclients", value: strconv.Itoa(s.options.MaxConns), accepts: within(1, math.MaxUint32), fixed: atStart},
		{name: "maxmemory", value: "0", accepts: memory(0), fixed: noMemory},
		{name: "maxmemory-clients", value: "0", accepts: anything, fixed: noMemory},
		{
			name: "maxmemory-policy", value: "noeviction", fixed: noMemory, accepts: oneOf("volatile-lru", "volatile-lfu", "volatile-random",
				"volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"),
		},
		{name: "maxmemory-samples", value: "5", accepts: within(1, math.MaxInt32)},
		{name: "min-replicas-max-lag", value: "10", alias: "min-slaves-max-lag", accepts: counts},
		{name: "min-replicas-to-write", value: "0", alias: "min-slaves-to-write", accepts: counts, fixed: noReplica},
		{name: "no-appendfsync-on-rewrite", value: "no", accepts: yesOrNo},
		{name: "notify-keyspace-events", value: "", accepts: anything, fixed: noEvents},
		{name: "port", value: "0", accepts: within(0, 65535), fixed: atStart},
		{name: "proto-max-bulk-len", value: strconv.Itoa(s.options.MaxBulk), accepts: memory(1 << 20), fixed: atStart},
		{name: "protected-mode", value: "yes", accepts: yesOrNo},
		{name: "rdbcompression", value: "yes", accepts: yesOrNo},
		{name: "replica-read-only", value: "yes", alias: "slave-read-only", accepts: yesOrNo},
		{name: "replica-serve-stale-data", value: "yes", alias: "slave-serve-stale-data", accepts: yesOrNo},
		{name: "requirepass", value: "", accepts: anything, fixed: keyed},
		{name: "save", value: "", accepts: saves},
		{name: "set-max-intset-entries", value: "512", accepts: atLeast(0)},
		{name: "set-max-listpack-entries", value: "128", accepts: atLeast(0)},
		{name: "set-max-listpack-value", value: "64", accepts: atLeast(0)},
		{name: "slowlog-log-slower-than", value: "-1", accepts: atLeast(-1)},
		{name: "slowlog-max-len", value: "128", accepts: atLeast(0)},
		{name: "stop-writes-on-bgsave-error", value: "yes", accepts: yesOrNo},
		{name: "stream-node-max-bytes", value: "4096", accepts: memory(0)},
		{name: "stream-node-max-entries", value: "100", accepts: atLeast(0)},
		{name: "tcp-keepalive", value: "300", accepts: counts},
		{name: "timeout", value: "0", accepts: counts, fixed: noIdle},
		{name: "tracking-table-max-keys", value: "1000000", accepts: atLeast(0)},
		{name: "zset-max-listpack-entries", value: "128", alias: "zset-max-ziplist-entries", accepts: atLeast(0)},
		{name: "zset-max-listpack-value", value: "64", alias: "zset-max-ziplist-value", accepts: memory(0)},
	}
}

// config executes a subcommand of CONFIG.
func (c *conn) config(args [][]byte) state.Reply {
	switch command.Subcommand(args) {
	case "set":
		return c.server.configSet(args[2:])
	case "rewrite":
		return failure("ERR The server is running without a config file")
	case "resetstat":
		return okReply()
	}
	return c.server.configGet(args[2:])
}

// configGet shows the settings that match one of some patterns, by each of their names.
func (s *Server) configGet(patterns [][]byte) state.Reply {
	reply := state.Reply{Kind: state.MapReply}
	for _, setting := range s.settings() {
		for _, name := range []string{setting.name, setting.alias} {
			matches := func(pattern []byte) bool { return command.Match(bytes.ToLower(pattern), []byte(name)) }
			if name != "" && slices.ContainsFunc(patterns, matches) {
				reply.Items = append(reply.Items, bulk(name), bulk(setting.value))
			}
		}
	}
	return reply
}

// configSet checks settings and their values: each is accepted, or nothing is.
func (s *Server) configSet(pairs [][]byte) state.Reply {
	if len(pairs)%2 != 0 {
		return failure("ERR syntax error")
	}
	settings := s.settings()
	given := make(map[string]bool)
	for pair := range slices.Chunk(pairs, 2) {
		name, value := command.Lower(pair[0]), string(pair[1])
		i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name || s.alias != "" && s.alias == name })
		if i < 0 {
			return failure(fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%.128s'", pair[0]))
		}
		why := ""
		switch found := settings[i]; {
		case found.fixed == immutable:
			why = immutable
		case given[found.name]:
			why = "duplicate parameter"
		case found.accepts(value) != "":
			why = found.accepts(value)
		case found.fixed != "" && !found.has(value):
			why = found.fixed
		default:
			given[found.name] = true
			continue
		}
		return failure(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", name, why))
	}
	return okReply()
}

// has says whether a setting has a value already, in whatever words.
func (s *setting) has(value string) bool {
	if n, isMemory := memoryOf(s.value); isMemory {
		m, ok := memoryOf(value)
		return ok && m == n
	}
	return strings.EqualFold(value, s.value)
}
