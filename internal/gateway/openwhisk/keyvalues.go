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
	var items []item
	if err := json.Unmarshal(data, &items); err != nil {
		return malformed("parameters malformed!")
	}
	list := make(keyValues, 0, len(items))
	for _, item := range items {
		kv, err := item.keyValue()
		if err != nil {
			return err
		}
		list = append(list, kv)
	}
	*kvs = list.under(nil)
	return nil
}

// item is one of keyValues in a body.
type item struct {
	Key    *string         `json:"key"`
	Value  json.RawMessage `json:"value"` // null when the value is null, nil when there is none
	Init   bool            `json:"init"`
	Secret bool            `json:"secret"`
}

func (i *item) keyValue() (kv forerun.KeyValue, err error) {
	if i.Key == nil || strings.TrimSpace(*i.Key) == "" || i.Value == nil && !i.Secret {
		return kv, malformed("parameters malformed!")
	}
	kv = forerun.KeyValue{Key: strings.TrimSpace(*i.Key), Value: i.Value, Init: i.Init, Secret: i.Secret}
	if i.Value != nil {
		if err := canonical.Bounds(i.Value, 1); err != nil { // an object will be around it
			return kv, malformed("%w", err)
		}
	}
	switch {
	case !i.Secret:
	case i.Value == nil || string(i.Value) == "null": // it is to keep its value, which no document shows
		kv.Value = json.RawMessage("null")
	default:
		kv = forerun.Hide(kv.Key, i.Value, i.Init)
	}
	return kv, nil
}

// annotations are kvs without what only parameters have.
func (kvs *keyValues) annotations() *keyValues {
	if kvs != nil {
		for i := range *kvs {
			kv := &(*kvs)[i]
			value, _ := kv.Reveal() // it came with the request
			*kv = forerun.KeyValue{Key: kv.Key, Value: value}
		}
	}
	return kvs
}

// keeping gives secret parameters without a value those that they had.
func (kvs keyValues) keeping(old []forerun.KeyValue) ([]forerun.KeyValue, error) {
	kept := slices.Clone(kvs)
	for i := range kept {
		kv := &kept[i]
		if !kv.Secret || kv.Hidden != nil {
			continue
		}
		had := forerun.Find(old, kv.Key)
		if had == nil || had.Hidden == nil {
			return nil, malformed("The secret parameter '%s' has no value: send one.", kv.Key)
		}
		kv.Hidden = had.Hidden
	}
	return kept, nil
}

// secretEnv is the annotation that makes all parameters secret that are variables of the environment.
const secretEnv = "secret-env"

// sealing makes parameters secret where the annotations ask for it.
func sealing(parameters, annotations []forerun.KeyValue) []forerun.KeyValue {
	if string(forerun.Lookup(annotations, secretEnv)) != "true" {
		return parameters
	}
	sealed := slices.Clone(parameters)
	for i, kv := range sealed {
		if kv.Init && !kv.Secret && kv.IsSet() {
			sealed[i] = forerun.Hide(kv.Key, kv.Value, true)
		}
	}
	return sealed
}

// shown are parameters as a document shows them: with the values of the secrets that belong to a namespace, if one is named.
func shown(parameters []forerun.KeyValue, secretsOf string) []forerun.KeyValue {
	if secretsOf == "" {
		return list(parameters)
	}
	all := slices.Clone(parameters)
	for i := range all {
		if kv := &all[i]; kv.Hidden != nil && kv.Hidden.Owner == secretsOf {
			if value, err := kv.Reveal(); err == nil {
				kv.Value = value
			}
		}
	}
	return list(all)
}

// secretsOf is the namespace whose secrets the request wants to see: the caller's own, or none.
func (c *call) secretsOf() (string, error) {
	show, err := c.flag("secrets", false)
	switch {
	case err != nil || !show:
		return "", err
	case c.caller.Cause != "":
		return "", forerun.Errorf(forerun.Forbidden, "secrets", "A function is not shown secret parameters. It has its own as variables of the environment or as arguments.")
	}
	return c.caller.Namespace, nil
}

// seen is an action as the caller may see it: another tenant is not shown the secret that opens a web action.
func (c *call) seen(a *forerun.Action) *forerun.Action {
	const door = "require-whisk-auth"
	secret := forerun.Lookup(a.Annotations, door)
	if a.Name.Namespace == c.caller.Namespace || len(secret) == 0 || !strings.ContainsAny(string(secret[:1]), `"-0123456789`) { // neither a string nor a number
		return a
	}
	hidden := *a
	hidden.Annotations = keyValues(a.Annotations).under(keyValues{{Key: door, Value: json.RawMessage("null")}})
	return &hidden
}

// under lays others over kvs. Both may hold very many.
func (kvs keyValues) under(others keyValues) keyValues {
	all := make(keyValues, 0, len(kvs)+len(others))
	places := make(map[string]int, cap(all))
	for _, kv := range slices.Concat(kvs, others) {
		if i, ok := places[kv.Key]; ok {
			all[i] = kv
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
			kvs[i] = forerun.KeyValue{Key: key, Value: value}
			return kvs
		}
	}
	return append(kvs[:len(kvs):len(kvs)], forerun.KeyValue{Key: key, Value: value})
}

func (kvs *keyValues) size() int {
	n := 0
	if kvs != nil {
		for _, kv := range *kvs {
			n += len(kv.Key) + len(kv.Value) + kv.Hidden.Size()
		}
	}
	return n
}
