package openwhisk

import (
	"encoding/json"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
)

// keyValues are parameters or annotations: [{"key": ..., "value": ...}]; of two with one key the last counts.
type keyValues []forerun.KeyValue

// UnmarshalJSON implements json.Unmarshaler.
func (kvs *keyValues) UnmarshalJSON(data []byte) error {
	var items []struct {
		Key   *string         `json:"key"`
		Value json.RawMessage `json:"value"` // null when the value is null, nil when there is none
	}
	if err := json.Unmarshal(data, &items); err != nil {
		return malformed("parameters malformed!")
	}
	list := make(keyValues, 0, len(items))
	for _, item := range items {
		if item.Key == nil || strings.TrimSpace(*item.Key) == "" || item.Value == nil {
			return malformed("parameters malformed!")
		}
		if err := canonical.Bounds(item.Value, 1); err != nil { // an object will be around it
			return malformed("%w", err)
		}
		list = append(list, forerun.KeyValue{Key: strings.TrimSpace(*item.Key), Value: item.Value})
	}
	*kvs = list.under(nil)
	return nil
}

// under lays others over kvs. Both may hold very many.
func (kvs keyValues) under(others keyValues) keyValues {
	all := make(keyValues, 0, len(kvs)+len(others))
	places := make(map[string]int, cap(all))
	for _, kv := range slices.Concat(kvs, others) {
		if i, ok := places[kv.Key]; ok {
			all[i].Value = kv.Value
			continue
		}
		places[kv.Key] = len(all)
		all = append(all, kv)
	}
	return all
}

// without returns kvs without those that have one of the keys.
func (kvs keyValues) without(keys []string) keyValues {
	gone := make(map[string]bool, len(keys))
	for _, key := range keys {
		gone[key] = true
	}
	return slices.DeleteFunc(slices.Clone(kvs), func(kv forerun.KeyValue) bool { return gone[kv.Key] })
}

// with returns kvs with value under key.
func (kvs keyValues) with(key string, value json.RawMessage) keyValues {
	for i := range kvs {
		if kvs[i].Key == key {
			kvs = slices.Clone(kvs)
			kvs[i].Value = value
			return kvs
		}
	}
	return append(kvs[:len(kvs):len(kvs)], forerun.KeyValue{Key: key, Value: value})
}

func (kvs *keyValues) size() int {
	n := 0
	if kvs != nil {
		for _, kv := range *kvs {
			n += len(kv.Key) + len(kv.Value)
		}
	}
	return n
}
