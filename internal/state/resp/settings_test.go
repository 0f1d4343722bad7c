package resp_test

import (
	"strings"
	"testing"
)

// TestConfig: settings that have no meaning here are accepted if Redis would accept them, others are refused with the reason, and a
// command that is refused for one pair does nothing.
func TestConfig(t *testing.T) {
	const failed = "-ERR CONFIG SET failed (possibly related to argument '%') - "
	for line, want := range map[string]string{
		"CONFIG SET list-max-listpack-size 5":                "+OK",
		"CONFIG SET LIST-MAX-ZIPLIST-SIZE -1":                "+OK",
		"CONFIG SET hz 20 zset-max-listpack-value 1kb":       "+OK",
		"CONFIG SET maxmemory 0 maxmemory-policy NOEVICTION": "+OK",
		"CONFIG SET maxmemory 100mb":                         strings.Replace(failed, "%", "maxmemory", 1) + "records are on disk, and none is evicted to save memory",
		"CONFIG SET maxmemory-policy allkeys-lru":            strings.Replace(failed, "%", "maxmemory-policy", 1) + "records are on disk, and none is evicted to save memory",
		"CONFIG SET hz 20 notify-keyspace-events Ex":         strings.Replace(failed, "%", "notify-keyspace-events", 1) + "there are no keyspace notifications",
		"CONFIG SET appendonly no":                           strings.Replace(failed, "%", "appendonly", 1) + "everything is on disk before it is acknowledged",
		"CONFIG SET appendonly yes appendfsync everysec":     "+OK",
		"CONFIG SET nonsense 1":                              "-ERR Unknown option or number of arguments for CONFIG SET - 'nonsense'",
		"CONFIG GET h?":                                      `*2|$2 "hz"|$2 "10"`,
		"CONFIG REWRITE":                                     "-ERR The server is running without a config file",
	} {
		k := talkTo(t, "tcp", open(t).address)
		if got := k.say(strings.Fields(line)...); got != want {
			t.Errorf("%s: %s; want %s", line, got, want)
		}
	}
}

// TestConfigIsThatOfRedis: what both answer alike.
func TestConfigIsThatOfRedis(t *testing.T) {
	script(t, startRedis(t), strings.Join([]string{
		"a CONFIG SET hz", "a CONFIG SET", "a CONFIG SET hz 10 hz 20", "a CONFIG SET hz x", "a CONFIG SET list-compress-depth -1",
		"a CONFIG SET hz 1 list-compress-depth", "a CONFIG SET activerehashing maybe", "a CONFIG SET activerehashing no", "a CONFIG SET databases 7",
		"a CONFIG SET maxmemory lots", "a CONFIG SET zset-max-listpack-entries 99999999999999999999",
		"a CONFIG SET tcp-keepalive 60 hz 10", "a CONFIG SET save x hz", "a CONFIG RESETSTAT", "a CONFIG RESETSTAT x", "a CONFIG GET",
		"a CONFIG NONSENSE", "a CONFIG", "a CONFIG REWRITE x", "a CONFIG GET databasesx", "a CONFIG SET slowlog-max-len -5",
		"a CONFIG SET active-expire-effort 11", "a CONFIG SET proto-max-bulk-len 5",
	}, "\n"))
}

// TestValuesOfSeveralWords: both accept and refuse the same, in the same words.
func TestValuesOfSeveralWords(t *testing.T) {
	theirs, ours := talkTo(t, "unix", startRedis(t)), talkTo(t, "tcp", open(t).address)
	for name, values := range map[string][]string{
		"save": {"", "x", "900", "900 1", "900 1 300 10", "900 1 300", "0 1", "1 0", "1 -1", "1 x", "1.5 1", "  900   1 "},
		"client-output-buffer-limit": {
			"", "x", "normal 0 0", "normal 0 0 0", "master 0 0 0", "NORMAL 0 0 0", "pubsub 1mb 1mb x", "replica 1gb 0 -1", "normal 1x 0 0",
			"slave 1gb 64mb 60 pubsub 32mb 8mb 60", "slave 1gb 64mb 60 pubsub",
		},
	} {
		for _, value := range values {
			if want, got := theirs.say("CONFIG", "SET", name, value), ours.say("CONFIG", "SET", name, value); got != want {
				t.Errorf("CONFIG SET %s %q: %s; Redis says %s", name, value, got, want)
			}
		}
	}
}
