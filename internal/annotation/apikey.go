package annotation

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// The annotations about the token that each activation of an action has for the API.
const (
	ProvideAPIKey = "provide-api-key" // which rights it has; without any there is none
	apiKeyOutside = "api-key-outside" // true: it is accepted at the front door, too, not only at the door of its own sandbox
)

// DefaultAPIKey is the value of ProvideAPIKey for actions that do not say.
const DefaultAPIKey = `"invoke"`

// scopes are the values of ProvideAPIKey that are words.
func scopes() map[string]forerun.Rights {
	return map[string]forerun.Rights{"invoke": forerun.MayInvoke, "read": forerun.MayRead, "all": forerun.AllRights}
}

// APIKey returns the rights of the token that activations of an action get, and whether it is accepted at the front door. A value that
// Check refuses is of an older server: it counts as in OpenWhisk, where all but false, 0, null and "" stand for all rights.
func APIKey(annotations []forerun.KeyValue) (rights forerun.Rights, outside bool) {
	outside = string(forerun.Lookup(annotations, apiKeyOutside)) == "true"
	value := string(forerun.Lookup(annotations, ProvideAPIKey))
	if value == "" {
		value = DefaultAPIKey
	}
	switch value {
	case "false", "0", "null", `""`:
		return 0, outside
	}
	if rights, ok := scopes()[strings.Trim(value, `"`)]; ok && value[0] == '"' {
		return rights, outside
	}
	return forerun.AllRights, outside
}

func checkAPIKey(value json.RawMessage) error {
	switch string(value) {
	case "true", "false", "0", "1", "null", `""`:
		return nil
	}
	var scope string
	if json.Unmarshal(value, &scope) == nil && scopes()[scope] != 0 {
		return nil
	}
	return wrong("The annotation '%s' must be true (all rights), false (no key) or one of the strings %s, not %.200s.",
		ProvideAPIKey, strings.Join(slices.Sorted(maps.Keys(scopes())), ", "), value)
}
