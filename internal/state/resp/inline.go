package resp

import (
	"bytes"
	"strings"
)

// splitWords cuts a line into words as Redis does: words are separated by blanks; "..." has the escapes \n \r \t \b \a
// \xHH, '...' has \'. ok is false if a quote is not closed, or is followed by something other than a blank.
func splitWords(line []byte) (words [][]byte, ok bool) {
	line, _, _ = bytes.Cut(line, []byte{0}) // a string of C ends here
	for {
		line = bytes.TrimLeft(line, blanks)
		if len(line) == 0 {
			return words, true
		}
		word := []byte{}
		for len(line) > 0 && !endsWord(line[0]) {
			switch c := line[0]; c {
			case '"', '\'':
				var part []byte
				if part, line, ok = quoted(line[1:], c); !ok {
					return nil, false
				}
				word = append(word, part...)
			default:
				word = append(word, c)
				line = line[1:]
			}
		}
		words = append(words, word)
	}
}

// blanks are what C's isspace takes for one.
const blanks = " \t\n\v\f\r"

func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// quoted reads up to the closing quote, behind which a word must end.
func quoted(line []byte, quote byte) (part, rest []byte, ok bool) {
	for len(line) > 0 {
		c := line[0]
		switch {
		case c == quote:
			rest = line[1:]
			return part, rest, len(rest) == 0 || strings.IndexByte(blanks, rest[0]) >= 0
		case c == '\\' && quote == '"' && len(line) > 1:
			var b byte
			b, line = escaped(line[1:])
			part = append(part, b)
		case c == '\\' && quote == '\'' && len(line) > 1 && line[1] == '\'':
			part = append(part, '\'')
			line = line[2:]
		default:
			part = append(part, c)
			line = line[1:]
		}
	}
	return nil, nil, false
}

// escaped reads what follows a backslash.
func escaped(line []byte) (b byte, rest []byte) {
	if len(line) >= 3 && line[0] == 'x' {
		high, ok1 := hexDigit(line[1])
		low, ok2 := hexDigit(line[2])
		if ok1 && ok2 {
			return high<<4 | low, line[3:]
		}
	}
	b = line[0]
	switch b {
	case 'n':
		b = '\n'
	case 'r':
		b = '\r'
	case 't':
		b = '\t'
	case 'b':
		b = '\b'
	case 'a':
		b = '\a'
	}
	return b, line[1:]
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
