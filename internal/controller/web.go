package controller

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// heedWeb has a row of a web action heed the headers of its output: an answer that is one person's, or that is not to be stored, stands for no
// other, and one with a max-age stands for that long.
func (e *execution) heedWeb(s *slot, row *forerun.Row) {
	if !s.has("web-export") || !row.IsSeen() {
		return
	}
	headers := headersOf(row.Output)
	var age time.Duration
	aged := false
	for name, values := range headers {
		switch {
		case name == "set-cookie" && len(values) > 0:
			row.Bar(forerun.Because(forerun.ReasonSetsCookie))
		case name == "vary" && s.varies(values):
			row.Bar(forerun.Because(forerun.ReasonVaries))
		case name == "cache-control":
			if hasDirective(values, "no-store") || hasDirective(values, "private") {
				row.Bar(forerun.Because(forerun.ReasonNoStore))
			}
			age, aged = maxAge(values)
		}
	}
	if until := e.c.Clock.Now().Add(age); aged && (row.Until.IsZero() || until.Before(row.Until)) {
		row.Until = until
	}
}

// varies reports whether a header Vary names something that does not count for the slot's input.
func (s *slot) varies(values []string) bool {
	return slices.ContainsFunc(split(values), func(name string) bool {
		return name == "*" || s.cache.Key != nil && !s.cache.Key.Has(name)
	})
}

// headersOf are the header fields in the output of a web action, by their names in lower case.
func headersOf(output json.RawMessage) map[string][]string {
	var result struct {
		Headers map[string]json.RawMessage `json:"headers"`
	}
	if json.Unmarshal(output, &result) != nil {
		return nil
	}
	headers := make(map[string][]string, len(result.Headers))
	for name, value := range result.Headers {
		var one string
		var many []string
		switch {
		case json.Unmarshal(value, &one) == nil:
			many = []string{one}
		case json.Unmarshal(value, &many) != nil:
			many = []string{string(value)} // a number or the like
		}
		headers[strings.ToLower(name)] = append(headers[strings.ToLower(name)], many...)
	}
	return headers
}

// split is the list that header fields are, in lower case.
func split(values []string) (list []string) {
	for part := range strings.SplitSeq(strings.ToLower(strings.Join(values, ",")), ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// hasDirective reports whether a Cache-Control has a directive, with an argument or without.
func hasDirective(values []string, name string) bool {
	return slices.ContainsFunc(split(values), func(d string) bool {
		d, _, _ = strings.Cut(d, "=")
		return d == name
	})
}

// maxAge is for how long a Cache-Control lets an answer stand: s-maxage before max-age. One that cannot be read is over at once.
func maxAge(values []string) (age time.Duration, given bool) {
	list := split(values)
	for _, name := range []string{"s-maxage=", "max-age="} {
		for _, d := range list {
			if text, ok := strings.CutPrefix(d, name); ok {
				seconds, err := strconv.Atoi(strings.Trim(text, `"`))
				if err != nil || seconds < 0 {
					return 0, true
				}
				return time.Duration(min(seconds, 1<<31)) * time.Second, true
			}
		}
	}
	return 0, false
}
