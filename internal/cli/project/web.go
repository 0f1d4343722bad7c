package project

import (
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// WebAnnotations are the annotations of a web action, as wsk sets them: yes (also true) exports it, raw leaves its
// requests as they are, no (also false) takes it back.
func WebAnnotations(web string) ([]forerun.KeyValue, error) {
	annotations := func(export, raw, final string) []forerun.KeyValue {
		return []forerun.KeyValue{
			{Key: "web-export", Value: json.RawMessage(export)}, {Key: "raw-http", Value: json.RawMessage(raw)}, {Key: "final", Value: json.RawMessage(final)},
		}
	}
	switch strings.ToLower(web) {
	case "yes", "true":
		return annotations("true", "false", "true"), nil
	case "raw":
		return annotations("true", "true", "true"), nil
	case "no", "false":
		return annotations("false", "false", "false"), nil
	}
	return nil, fmt.Errorf("%q is not a setting of web: write yes, raw or no", web)
}
