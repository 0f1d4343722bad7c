package webaction

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	// keyForm is the form of the keys of tenants, activations and the operator, and of OpenWhisk's.
	keyForm = regexp.MustCompile(`[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}:[0-9A-Za-z]{32}`)
	// keyInBase64 is text that may hold a key in base64. The 65 bytes of the shortest key, with colon, have no other digits there: the special
	// ones of both alphabets need bytes that no key has. At each end a digit may be shared with another byte.
	keyInBase64 = regexp.MustCompile(`[0-9A-Za-z]{86,}`)
	// unescapeMarks decodes what an encoder may escape of a key, also in text where another percent sign stands for itself.
	unescapeMarks = strings.NewReplacer("%3A", ":", "%3a", ":", "%2D", "-", "%2d", "-")
)

// holdsKey reports whether text holds what has the form of a key, valid or not: in clear, percent-encoded, or in base64, padded or not.
func holdsKey(text string) bool {
	if keyForm.MatchString(text) || keyForm.MatchString(unescapeMarks.Replace(text)) || slices.ContainsFunc(keyInBase64.FindAllString(text, -1), holdsKeyInBase64) {
		return true
	}
	unescaped, err := url.QueryUnescape(text)
	return err == nil && unescaped != text && keyForm.MatchString(unescaped)
}

// holdsKeyInBase64 looks in base64 that may begin at any of its digits: what comes before the key may have been cut.
func holdsKeyInBase64(digits string) bool {
	for first := range 4 {
		part := digits[first:]
		if len(part)%4 == 1 {
			part = part[:len(part)-1]
		}
		if decoded, err := base64.RawStdEncoding.DecodeString(part); err == nil && keyForm.Match(decoded) {
			return true
		}
	}
	return false
}
