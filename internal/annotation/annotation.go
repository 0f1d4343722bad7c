// Package annotation knows what the annotations of actions must be that
// Forerun heeds, for the server that refuses others and for the client that
// says so before it sends anything.
//
// It promises that what it finds nothing wrong with can be heeded. Annotations
// with other names may be anything.
package annotation

import (
	"encoding/json"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/schedule"
	"forerun.dev/forerun/internal/speculate"
)

// maxReadHosts is how many hosts the annotation read-hosts may have: each activation that runs ahead looks at all.
const maxReadHosts = 256

// Check refuses those of an action that cannot be heeded. The error is forerun.Invalid.
func Check(annotations []forerun.KeyValue) error {
	for _, kv := range annotations {
		if err := check(kv.Key, kv.Value); err != nil {
			return err
		}
	}
	return nil
}

func check(name string, value json.RawMessage) error {
	switch name {
	case "pure-function", "non-speculative", "compute_cache", "state_cache", "fresh-process", "keep-process", apiKeyOutside:
		if text := string(value); text != "true" && text != "false" {
			return wrong("The annotation '%s' must be true or false, without quotes, not %.200s.", name, value)
		}
	case ProvideAPIKey:
		return checkAPIKey(value)
	case egress.Annotation:
		if err := new(egress.List).UnmarshalJSON(value); err != nil {
			return wrong("The annotation '%s': %w.", egress.Annotation, err)
		}
	case "read-hosts":
		return checkHosts(value)
	case "speculate":
		return checkSettings(value)
	case schedule.Annotation:
		if _, err := schedule.ParseClasses(value); err != nil {
			return wrong("The annotation '%s': %w.", schedule.Annotation, err)
		}
	case CacheTTL:
		_, err := parseTTL(value)
		return err
	case CacheKey:
		_, err := parseKey(value)
		return err
	case CacheVerify:
		_, err := parseVerify(value)
		return err
	}
	return nil
}

func checkHosts(value json.RawMessage) error {
	var hosts []string
	if json.Unmarshal(value, &hosts) != nil || hosts == nil {
		return wrong("The annotation 'read-hosts' must be an array of hosts, each a string, not %.200s.", value)
	}
	if len(hosts) > maxReadHosts {
		return wrong("The annotation 'read-hosts' has %d hosts; at most %d are allowed.", len(hosts), maxReadHosts)
	}
	for _, host := range hosts {
		if _, _, err := forerun.ParseHost(host); err != nil {
			return wrong("The annotation 'read-hosts' has %.200q, which is not a host: %w. Write a name or an address, with ':' and a port or without.", host, err)
		}
	}
	return nil
}

func checkSettings(value json.RawMessage) error {
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		return wrong("The annotation 'speculate' must be a string, not %.200s: %s", value, speculate.Spelling())
	}
	if _, err := speculate.ParseSettings(*text); err != nil {
		return wrong("The annotation 'speculate': %w", err)
	}
	return nil
}

func wrong(format string, args ...any) error {
	return forerun.Errorf(forerun.Invalid, "", format, args...)
}
