package annotation

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
)

// The annotations about the results that are kept of an action.
const (
	CacheTTL    = "cache-ttl"    // for how long a result stands for an execution
	CacheKey    = "cache-key"    // which members of its input the action is given
	CacheVerify = "cache-verify" // which share of the hits is executed again, to compare
)

// Bounds of the values.
const (
	minTTL     = time.Millisecond
	maxTTL     = 30 * 24 * time.Hour
	maxMembers = 256
)

// DefaultVerify is the share of the hits that is executed again if the action does not say.
const DefaultVerify = 0.01

// headersMember is the member of a web action's input that has the headers of the request.
const headersMember = "__ow_headers"

// alwaysGiven are members of a web action's input that count even if CacheKey does not name them.
var alwaysGiven = []string{"__ow_method", "__ow_path"}

// isCached reports whether results of an action may be kept.
func isCached(annotations []forerun.KeyValue) bool {
	for _, name := range []string{"pure-function", "compute_cache", "state_cache"} {
		if string(forerun.Lookup(annotations, name)) == "true" {
			return true
		}
	}
	return false
}

// Cache is what the annotations of an action say about its results. Its zero value is an action of which none are kept.
type Cache struct {
	Kept   bool           // results are: pure-function, compute_cache or state_cache is true
	TTL    time.Duration  // 1 ms to 30 days; 0: a result stands until something that it rests on changes
	Key    *canonical.Key // the members of the input that the action is given; nil: all
	Verify float64        // 0 to 1
}

// CacheOf reads the annotations. Values that Check refuses are of an older server: they have no effect.
func CacheOf(annotations []forerun.KeyValue) Cache {
	c := Cache{Kept: isCached(annotations), Verify: DefaultVerify}
	for i := range annotations {
		switch kv := &annotations[i]; kv.Key {
		case CacheTTL:
			c.TTL, _ = parseTTL(kv.Value)
		case CacheKey:
			c.Key, _ = parseKey(kv.Value)
		case CacheVerify:
			if share, err := parseVerify(kv.Value); err == nil {
				c.Verify = share
			}
		}
	}
	return c
}

// CheckWorkflow refuses annotations that have no meaning for an action that runs others. The error is forerun.Invalid.
func CheckWorkflow(kind string, annotations []forerun.KeyValue) error {
	if forerun.Lookup(annotations, CacheKey) == nil {
		return nil
	}
	what := ""
	switch conductor := string(forerun.Lookup(annotations, "conductor")); {
	case kind == "sequence":
		what = "a sequence"
	case !slices.Contains([]string{"", "false", "null", "0", `""`}, conductor):
		what = "a composition or a conductor"
	default:
		return nil
	}
	return wrong("The annotation '%s' cannot be on %s, which has no results of its own. Annotate the functions in it.", CacheKey, what)
}

func parseTTL(value json.RawMessage) (time.Duration, error) {
	const write = `Write a string with a unit, such as "90s", "5m" or "24h": 1ms to 720h, which is 30 days.`
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		return 0, wrong("The annotation '%s' must be a string, not %.200s. %s", CacheTTL, value, write)
	}
	ttl, err := time.ParseDuration(*text)
	switch {
	case err != nil:
		return 0, wrong("The annotation '%s' is %.200q, which is not a duration. %s", CacheTTL, *text, write)
	case ttl < minTTL || ttl > maxTTL:
		return 0, wrong("The annotation '%s' is %.200q, which is out of bounds. %s", CacheTTL, *text, write)
	}
	return ttl, nil
}

func parseVerify(value json.RawMessage) (float64, error) {
	var share *float64
	if json.Unmarshal(value, &share) != nil || share == nil || *share < 0 || *share > 1 {
		return 0, wrong("The annotation '%s' must be a number from 0 to 1, the share of hits to execute again, not %.200s. Write 0.01 for one in a hundred.", CacheVerify, value)
	}
	return *share, nil
}

func parseKey(value json.RawMessage) (*canonical.Key, error) {
	var names []string
	if json.Unmarshal(value, &names) != nil || names == nil {
		return nil, wrong(`The annotation '%s' must be an array of strings, not %.200s. Write names of members of the input, such as ["city", "__ow_headers.accept-language"].`, CacheKey, value)
	}
	if len(names) > maxMembers {
		return nil, wrong("The annotation '%s' has %d names; at most %d are allowed.", CacheKey, len(names), maxMembers)
	}
	key := &canonical.Key{Members: alwaysGiven, Within: headersMember}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, wrong("The annotation '%s' has %.200q twice. Write each name once.", CacheKey, name)
		}
		header, isHeader := strings.CutPrefix(name, headersMember+".")
		switch {
		case name == "" || isHeader && header == "":
			return nil, wrong(`The annotation '%s' has %.200q, which names nothing. Write the name of a member, or "%s." and the name of a header.`, CacheKey, name, headersMember)
		case isHeader && header != strings.ToLower(header):
			return nil, wrong("The annotation '%s' has %.200q, but functions are given names of headers in lower case. Write %.200q.", CacheKey, name, strings.ToLower(name))
		case isHeader && slices.Contains(names, headersMember):
			return nil, wrong("The annotation '%s' has %q, which is all headers, and %.200q. Write one of them.", CacheKey, headersMember, name)
		case isHeader:
			key.Inner = append(key.Inner, header)
		default:
			key.Members = append(slices.Clip(key.Members), name)
		}
	}
	return key, nil
}
