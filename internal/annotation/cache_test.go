package annotation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

func one(name, value string) []forerun.KeyValue {
	return []forerun.KeyValue{{Key: name, Value: json.RawMessage(value)}}
}

// TestCacheAnnotationsAreChecked: an error names what is wrong, and what to write.
func TestCacheAnnotationsAreChecked(t *testing.T) {
	many, _ := json.Marshal(strings.Fields(strings.Repeat("x ", maxMembers+1)))
	for _, c := range []struct{ name, value, wrong string }{
		{CacheTTL, `"90s"`, ""},
		{CacheTTL, `"1ms"`, ""},
		{CacheTTL, `"720h"`, ""},
		{CacheTTL, `"0s"`, "out of bounds. Write"},
		{CacheTTL, `"-5s"`, "out of bounds. Write"},
		{CacheTTL, `"999us"`, "out of bounds. Write"},
		{CacheTTL, `"9600h"`, "out of bounds. Write"},
		{CacheTTL, `"30d"`, "not a duration. Write"},
		{CacheTTL, `90`, "must be a string, not 90. Write"},
		{CacheTTL, `null`, "must be a string, not null. Write"},
		{CacheVerify, `0`, ""},
		{CacheVerify, `1`, ""},
		{CacheVerify, `0.25`, ""},
		{CacheVerify, `1.1`, "must be a number from 0 to 1"},
		{CacheVerify, `-0.1`, "must be a number from 0 to 1"},
		{CacheVerify, `"0.5"`, "must be a number from 0 to 1"},
		{CacheVerify, `null`, "must be a number from 0 to 1"},
		{CacheKey, `[]`, ""},
		{CacheKey, `["city","a.b","__ow_headers.accept-language","__ow_headers.x"]`, ""},
		{CacheKey, `["__ow_headers"]`, ""},
		{CacheKey, `"city"`, "must be an array of strings"},
		{CacheKey, `[1]`, "must be an array of strings"},
		{CacheKey, `null`, "must be an array of strings"},
		{CacheKey, `["city","day","city"]`, `has "city" twice`},
		{CacheKey, `[""]`, "names nothing"},
		{CacheKey, `["__ow_headers."]`, "names nothing"},
		{CacheKey, `["__ow_headers.Accept"]`, `Write "__ow_headers.accept"`},
		{CacheKey, `["__ow_headers","__ow_headers.x"]`, "Write one of them"},
		{CacheKey, string(many), "at most 256"},
	} {
		err := Check(one(c.name, c.value))
		if (err == nil) != (c.wrong == "") || err != nil && (forerun.KindOf(err) != forerun.Invalid || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %s: %v", c.name, c.value, err)
		}
	}
}

// TestCacheKeyOnWorkflow: what has no results cannot have a key of them.
func TestCacheKeyOnWorkflow(t *testing.T) {
	key := one(CacheKey, `["a"]`)
	conductor := func(value string) []forerun.KeyValue { return append(one("conductor", value), key...) }
	for _, c := range []struct {
		kind        string
		annotations []forerun.KeyValue
		wrong       bool
	}{
		{"sequence", key, true},
		{"sequence", nil, false},
		{"python:3", key, false},
		{"nodejs:20", conductor("true"), true},
		{"nodejs:20", conductor(`{"type":"sequence"}`), true},
		{"nodejs:20", conductor("false"), false},
	} {
		if err := CheckWorkflow(c.kind, c.annotations); (err != nil) != c.wrong {
			t.Errorf("%s, %s: %v", c.kind, c.annotations, err)
		}
	}
}

func TestCacheOf(t *testing.T) {
	all := append(append(append(one("state_cache", "true"), one(CacheTTL, `"90s"`)...), one(CacheVerify, "0.5")...), one(CacheKey, `["a"]`)...)
	if c := CacheOf(all); !c.Kept || c.TTL != 90*time.Second || c.Verify != 0.5 || fmt.Sprint(c.Key.Members) != "[__ow_method __ow_path a]" {
		t.Errorf("%+v", c)
	}
	if c := CacheOf(nil); c.Kept || c.TTL != 0 || c.Verify != DefaultVerify || c.Key != nil {
		t.Errorf("without annotations: %+v", c)
	}
}
