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
	*kvs = keyValues{}
	for _, item := range items {
		if item.Key == nil || strings.TrimSpace(*item.Key) == "" || item.Value == nil {
			return malformed("parameters malformed!")
		}
		if err := canonical.Bounds(item.Value, 1); err != nil { // an object will be around it
			return malformed("%w", err)
		}
		*kvs = kvs.with(strings.TrimSpace(*item.Key), item.Value)
	}
	return nil
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
