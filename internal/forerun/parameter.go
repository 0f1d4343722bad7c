package forerun

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
)

// KeyValue is one parameter or annotation, in OpenWhisk's form.
type KeyValue struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`            // null where Hidden has the value
	Init   bool            `json:"init,omitempty"`   // a parameter that is a variable of the environment, not an argument
	Secret bool            `json:"secret,omitempty"` // a parameter that is stored sealed and shown without its value

	Hidden *Hidden `json:"-"` // of a secret parameter
}

// String implements fmt.Stringer.
func (kv KeyValue) String() string {
	if kv.Hidden != nil {
		return kv.Key + "=" + kv.Hidden.String()
	}
	return kv.Key + "=" + string(kv.Value)
}

// Hidden is the value of a secret parameter. Printing it in any form shows nothing of the value.
type Hidden struct {
	Owner  string // the namespace whose secret it is; empty while it is not stored yet
	Sealed string // as it is stored; empty while it is not
	value  json.RawMessage
	failed error // why it cannot be unsealed
}

// Hide takes the value of a secret parameter out of sight.
func Hide(key string, value json.RawMessage, init bool) KeyValue {
	return KeyValue{Key: key, Value: json.RawMessage("null"), Init: init, Secret: true, Hidden: &Hidden{value: value}}
}

// Unsealed is the value of a stored parameter, or why it cannot be unsealed.
func Unsealed(owner, sealed string, value json.RawMessage, err error) *Hidden {
	return &Hidden{Owner: owner, Sealed: sealed, value: value, failed: err}
}

// String implements fmt.Stringer.
func (h *Hidden) String() string { return "(hidden)" }

// GoString implements fmt.GoStringer.
func (h *Hidden) GoString() string { return "(hidden)" }

// LogValue implements slog.LogValuer.
func (h *Hidden) LogValue() slog.Value { return slog.StringValue("(hidden)") }

// Size is how many bytes the value takes.
func (h *Hidden) Size() int {
	if h == nil {
		return 0
	}
	return len(h.value) + len(h.Sealed)
}

// Reveal is the value as functions get it. The error is Unavailable: a secret cannot be unsealed.
func (kv *KeyValue) Reveal() (json.RawMessage, error) {
	if kv.Hidden == nil {
		return kv.Value, nil
	}
	if kv.Hidden.failed != nil {
		return nil, Errorf(Unavailable, kv.Key, "The secret parameter '%s' cannot be read: %w", kv.Key, kv.Hidden.failed)
	}
	return kv.Hidden.value, nil
}

// IsSet reports whether a parameter has a value other than null.
func (kv *KeyValue) IsSet() bool { return kv.Hidden != nil || string(kv.Value) != "null" }

// Environment is what the parameters that are variables of the environment make of it: a string as it is, other values as JSON.
func Environment(parameters []KeyValue) (map[string]string, error) {
	var env map[string]string
	for i := range parameters {
		kv := &parameters[i]
		if !kv.Init {
			continue
		}
		value, err := kv.Reveal()
		if err != nil {
			return nil, err
		}
		if env == nil {
			env = make(map[string]string)
		}
		env[kv.Key] = text(value)
	}
	return env, nil
}

// text is a JSON value as a variable of the environment.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil && string(value) != "null" {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// maxEnvironment bounds the variables of the environment that one list of parameters makes: names and values together, in bytes.
const maxEnvironment = 32 << 10

// CheckEnvironment refuses variables that no process can be given. The error is Invalid or TooLarge.
func CheckEnvironment(parameters []KeyValue) error {
	size := 0
	for i := range parameters {
		kv := &parameters[i]
		if !kv.Init {
			continue
		}
		switch {
		case strings.ContainsAny(kv.Key, "=\x00"):
			return Errorf(Invalid, kv.Key, "The parameter %q cannot be a variable of the environment: its name must not hold '=' or a NUL. Rename it.", kv.Key)
		case strings.HasPrefix(kv.Key, "__OW_"):
			return Errorf(Invalid, kv.Key, "The variable '%s' is set by the server: choose a name that does not begin with __OW_.", kv.Key)
		}
		value, err := kv.Reveal()
		if err != nil { // a later update may have the key again
			continue
		}
		s := text(value)
		if strings.ContainsRune(s, 0) {
			return Errorf(Invalid, kv.Key, "The variable '%s' must not hold a NUL character.", kv.Key)
		}
		size += len(kv.Key) + len(s)
	}
	if size > maxEnvironment {
		return Errorf(TooLarge, "parameters", "environment larger than allowed: %d > %d bytes. Pass what is large as an ordinary parameter.", size, maxEnvironment)
	}
	return nil
}

// Lookup returns the value under key in kvs, or nil.
func Lookup(kvs []KeyValue, key string) json.RawMessage {
	if kv := Find(kvs, key); kv != nil {
		return kv.Value
	}
	return nil
}

// Find returns the first of kvs with a key, or nil.
func Find(kvs []KeyValue, key string) *KeyValue {
	for i := range kvs {
		if kvs[i].Key == key {
			return &kvs[i]
		}
	}
	return nil
}
