package canonical

import (
	"encoding/json"
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// Key says which members of an object count.
type Key struct {
	Members []string // of the object
	Within  string   // a member that is an object
	Inner   []string // the members of Within that count, if Members does not have Within
}

// Pick returns the canonical object of the members that count. object must be canonical. An array has no members, so the object is empty.
func (k *Key) Pick(object json.RawMessage) (json.RawMessage, error) {
	if object[0] == '[' {
		return json.RawMessage("{}"), nil
	}
	picked, err := members(object, k.Members)
	if err != nil {
		return nil, err
	}
	if inner, ok := within(object, k); ok {
		list, err := members(inner, k.Inner)
		if err != nil {
			return nil, err
		}
		if picked[k.Within], err = json.Marshal(list); err != nil {
			return nil, malformed(err)
		}
	}
	data, err := json.Marshal(picked)
	if err != nil {
		return nil, malformed(err)
	}
	return format(data)
}

// Has reports whether a member of Within counts.
func (k *Key) Has(inner string) bool {
	return slices.Contains(k.Members, k.Within) || slices.Contains(k.Inner, inner)
}

// HasMember reports whether a member of the object counts.
func (k *Key) HasMember(name string) bool { return slices.Contains(k.Members, name) }

// within is the object of which a part counts, if there is one.
func within(object json.RawMessage, k *Key) (json.RawMessage, bool) {
	if len(k.Inner) == 0 || slices.Contains(k.Members, k.Within) {
		return nil, false
	}
	one, err := members(object, []string{k.Within})
	inner, ok := one[k.Within]
	return inner, err == nil && ok && inner[0] == '{'
}

// members selects the members of an object that have one of some names.
func members(object json.RawMessage, names []string) (map[string]json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, malformed(err)
	}
	for name := range all {
		if !slices.Contains(names, name) {
			delete(all, name)
		}
	}
	return all, nil
}

func malformed(err error) error {
	return forerun.Errorf(forerun.Invalid, "parameters", "The members that count cannot be picked: %w", err)
}
