package trace

import (
	"regexp"
	"strconv"
)

// references are the numbers of slots in a sentence: " #3", but not in the name of a record, which is quoted.
var references = regexp.MustCompile(`"(?:[^"\\]|\\.)*"| #(\d+)`)

// renumbered is a sentence that an older version recorded, with other numbers of its slots.
func renumbered(text string, number func(slot int) string) string {
	return references.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == '"' {
			return found
		}
		slot, err := strconv.Atoi(found[len(" #"):])
		if err != nil {
			return ""
		}
		return number(slot)
	})
}
