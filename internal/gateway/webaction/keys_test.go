package webaction

import (
	"strings"
	"testing"
)

// TestKeysBesidePercentSigns: a percent sign that escapes nothing does not hide an escaped key.
func TestKeysBesidePercentSigns(t *testing.T) {
	key := "23bc46b1-71f6-4ed5-8c54-816aa4f8c502:" + strings.Repeat("k", 32)
	for _, text := range []string{
		"d=100%; k=" + strings.ReplaceAll(key, ":", "%3A"),
		"d=100%; k=" + strings.NewReplacer(":", "%3a", "-", "%2d").Replace(key),
		"100%" + strings.NewReplacer(":", "%3A", "-", "%2D").Replace(key),
	} {
		if !holdsKey(text) {
			t.Errorf("no key is found in %s", text)
		}
	}
	if holdsKey("d=100%; k=none") {
		t.Error("a key is found where none is")
	}
}
