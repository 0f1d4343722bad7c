package command

import (
	"bytes"
	"context"
)

// Match says whether text matches a pattern as Redis matches names: * is any bytes, ? any one, [a-c] and [^abc] one of a
// class; a backslash takes the next for what it is. Nothing but the empty pattern matches the empty text.
func Match(pattern, text []byte) bool {
	return matchWhile(pattern, text, func(int) bool { return true })
}

// Matcher is Match as long as a context lasts; from then on nothing matches, and Err is why.
type Matcher struct {
	patience patience
	err      error
}

// NewMatcher makes a matcher for a context.
func NewMatcher(ctx context.Context) *Matcher { return &Matcher{patience: patience{ctx: ctx}} }

// Match says whether text matches a pattern.
func (m *Matcher) Match(pattern, text []byte) bool {
	return m.goesOn(len(pattern)) && matchWhile(pattern, text, m.goesOn)
}

// Err is that of the context, if Match has given up.
func (m *Matcher) Err() error { return m.err }

func (m *Matcher) goesOn(steps int) bool {
	if m.err == nil {
		m.err = m.patience.goesOn(steps)
	}
	return m.err == nil
}

// matchWhile is Match, which may take as many steps as the lengths multiply to. Where it begins anew it tells how many it has taken, and gives
// up, with false, if it is not to go on.
func matchWhile(pattern, text []byte, goesOn func(steps int) bool) bool {
	if len(text) == 0 {
		return len(pattern) == 0
	}
	var again, from []byte // behind the last *, and the text that is left if it takes one byte more
	steps := 0
	for {
		switch {
		case len(text) == 0:
			return len(bytes.TrimLeft(pattern, "*")) == 0
		case len(pattern) > 0 && pattern[0] == '*':
			pattern = bytes.TrimLeft(pattern, "*")
			if len(pattern) == 0 {
				return true
			}
			again, from = pattern, text
			continue
		case len(pattern) > 0:
			matches, rest := matchOne(pattern, text[0])
			if steps += len(pattern) - len(rest); matches {
				pattern, text = rest, text[1:]
				continue
			}
		}
		if again == nil || !goesOn(steps) {
			return false
		}
		steps = 0
		from = from[1:]
		pattern, text = again, from
		if len(text) == 0 {
			return false
		}
	}
}

// matchOne matches one byte with the beginning of a pattern, which is no star, and returns what follows that.
func matchOne(pattern []byte, c byte) (matches bool, rest []byte) {
	switch {
	case pattern[0] == '?':
		return true, pattern[1:]
	case pattern[0] == '[':
		return matchClass(pattern[1:], c)
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return pattern[0] == c, pattern[1:]
}

// matchClass matches one byte with what follows a [; a class that is not closed ends with the pattern.
func matchClass(class []byte, c byte) (matches bool, rest []byte) {
	not := len(class) > 0 && class[0] == '^'
	if not {
		class = class[1:]
	}
	for len(class) > 0 && class[0] != ']' {
		switch {
		case class[0] == '\\' && len(class) > 1:
			matches = matches || class[1] == c
			class = class[2:]
		case len(class) > 2 && class[1] == '-':
			matches = matches || min(class[0], class[2]) <= c && c <= max(class[0], class[2])
			class = class[3:]
		default:
			matches = matches || class[0] == c
			class = class[1:]
		}
	}
	if len(class) > 0 {
		class = class[1:]
	}
	return matches != not, class
}

// literalPrefix is what every text begins with that matches a pattern.
func literalPrefix(pattern []byte) []byte {
	if i := bytes.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// prefixRange bounds the names that begin with a prefix; to is nil if there is no end but the space's.
func prefixRange(prefix []byte) (from, to []byte) {
	end := bytes.TrimRight(prefix, "\xff")
	if len(end) == 0 {
		return prefix, nil
	}
	return prefix, after(bytes.Clone(end))
}
