package project

import (
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
)

// inputs are default parameters, with the environment's variables put in.
func (b *builder) inputs(path []string, member string, vs values) []forerun.KeyValue {
	kvs := keyValues(vs)
	for i := range kvs {
		expanded, err := b.expand(kvs[i].Value)
		if err != nil {
			b.wrong(below(path, member, kvs[i].Key), err)
			continue
		}
		kvs[i].Value = expanded
	}
	return kvs
}

// parameters are inputs with the variables of the environment behind them. A name can be only one of the three.
func (b *builder) parameters(path []string, inputs, env, secrets values) []forerun.KeyValue {
	kvs := b.inputs(path, "inputs", inputs)
	for _, x := range []struct {
		member string
		values values
		secret bool
	}{{"env", env, false}, {"secrets", secrets, true}} {
		for _, kv := range b.inputs(path, x.member, x.values) {
			if forerun.Find(kvs, kv.Key) != nil {
				b.wrong(below(path, x.member, kv.Key), fmt.Errorf("%q is a parameter already: choose one of inputs, env and secrets for it", kv.Key))
				continue
			}
			kvs = append(kvs, forerun.KeyValue{Key: kv.Key, Value: kv.Value, Init: true, Secret: x.secret})
		}
	}
	b.wrong(path, forerun.CheckEnvironment(kvs))
	return kvs
}

// expand replaces ${NAME} in the strings of a JSON value.
func (b *builder) expand(value json.RawMessage) (json.RawMessage, error) {
	if !strings.Contains(string(value), "${") {
		return value, nil
	}
	return mapStrings(value, func(s string) (string, error) { return expandString(s, b.getenv) })
}

// mapStrings replaces each string in a JSON value, but not the names of members.
func mapStrings(value json.RawMessage, replace func(string) (string, error)) (json.RawMessage, error) {
	switch value[0] {
	case '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, err
		}
		replaced, err := replace(s)
		if err != nil {
			return nil, err
		}
		return canonical.Marshal(replaced)
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
		for i := range items {
			replaced, err := mapStrings(items[i], replace)
			if err != nil {
				return nil, err
			}
			items[i] = replaced
		}
		return canonical.Marshal(items)
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(value, &members); err != nil {
			return nil, err
		}
		for name := range members {
			replaced, err := mapStrings(members[name], replace)
			if err != nil {
				return nil, err
			}
			members[name] = replaced
		}
		return canonical.Marshal(members)
	}
	return value, nil
}

// expandString replaces ${NAME}; $${ stays as ${.
func expandString(s string, getenv func(string) string) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "${")
		if !found {
			return b.String() + s, nil
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			b.WriteString(escaped + "${")
			s = after
			continue
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", fmt.Errorf("${%s has no closing brace; write $${ for a plain ${", after)
		}
		value := getenv(name)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set: set it, or write $${ for a plain ${", name)
		}
		b.WriteString(before + value)
		s = rest
	}
}
