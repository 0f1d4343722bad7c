package command

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for pattern, texts := range map[string]string{
		"*":        "+a +abc",
		"a*":       "+a +ab -b -ba",
		"*a":       "+a +ba -ab",
		"*a*b*":    "+ab +xaxbx +aab -ba -b",
		"a?c":      "+abc +a?c -ac -abbc",
		"[abc]x":   "+ax +cx -dx -x",
		"[^abc]x":  "+dx -ax -x",
		"[a-c]x":   "+bx -dx",
		"[c-a]x":   "+bx -dx",
		`[\]]x`:    "+]x -x",
		`\*`:       "+* -a",
		`a\`:       `+a\ -a`,
		"[ab":      "+a +b -c",
		"[a-":      "+a +- -b",
		"[":        "-a -[",
		"[^":       "+a +[",
		"**a**":    "+a +xax -b",
		"a*?":      "+ab -a",
		"*?*?*":    "+ab -a",
		"h[ae]llo": "+hello +hallo -hillo",
	} {
		for _, text := range strings.Fields(texts) {
			if got := Match([]byte(pattern), []byte(text[1:])); got != (text[0] == '+') {
				t.Errorf("%q matches %q: %v", pattern, text[1:], got)
			}
		}
	}
	if Match([]byte("*"), nil) || !Match(nil, nil) || Match([]byte("a"), nil) {
		t.Error("only the empty pattern matches the empty text")
	}
}

// TestMatchIsNotExponential: many stars cost no more than the product of the lengths.
func TestMatchIsNotExponential(t *testing.T) {
	if Match([]byte(strings.Repeat("a*", 1000)+"b"), []byte(strings.Repeat("a", 10_000))) {
		t.Error("it matches")
	}
}

// FuzzMatch holds that the prefix of a pattern begins all that it matches.
func FuzzMatch(f *testing.F) {
	f.Add([]byte("ab*[c-"), []byte("abxc"))
	f.Add([]byte(`a\*`), []byte("a*"))
	f.Fuzz(func(t *testing.T, pattern, text []byte) {
		from, to := prefixRange(literalPrefix(pattern))
		if Match(pattern, text) && (string(text) < string(from) || to != nil && string(text) >= string(to)) {
			t.Errorf("%q matches %q, which is not in %q..%q", pattern, text, from, to)
		}
	})
}
