package openwhisk

import (
	"fmt"
	"net/http"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/trace"
)

// cacheHeader says in a request that the action is to be executed, and in an answer which way an annotated action went.
const cacheHeader = "X-Forerun-Cache"

// bypass reports whether the request wants its action executed, whatever result is known.
func (c *call) bypass() (bool, error) {
	given := c.r.Header.Values(cacheHeader)
	switch {
	case len(given) == 0:
		return false, nil
	case len(given) > 1:
		return false, forerun.Errorf(forerun.Invalid, "", "The header %s comes %d times: send it once.", cacheHeader, len(given))
	case given[0] != string(forerun.CacheBypass):
		return false, forerun.Errorf(forerun.Invalid, "", "The header %s can only be bypass, which executes the action, not %.100q.", cacheHeader, given[0])
	}
	return true, nil
}

// tellCache says in a header of the answer which way an annotated action went, and why.
func tellCache(w http.ResponseWriter, record *forerun.Activation) {
	c := record.Cached
	if c == nil {
		return
	}
	value := string(c.Outcome)
	if c.Outcome != forerun.CacheHit && c.Why != nil {
		value += "; " + inASCII(trace.Sentence(c.Why))
	}
	w.Header().Set(cacheHeader, value)
}

// inASCII escapes in a text what a header cannot have.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
