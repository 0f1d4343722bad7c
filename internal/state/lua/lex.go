package lua

import (
	"fmt"
	"strings"
)

// token is a word of a script.
type token struct {
	kind   kind
	text   string // as it is written; of a string what it holds
	number float64
	line   int
}

// kind is a kind of token.
type kind byte

// The kinds of tokens.
const (
	end kind = iota
	name
	keyword // and operators
	number
	quoted
)

var keywords = wordSet("and break do else elseif end false for function if in local nil not or repeat return then true until while")

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// lexer reads tokens.
type lexer struct {
	chunk, source string
	at, line      int
}

// fail ends the compilation with what is wrong near a text.
func (l *lexer) fail(line int, what, near string) {
	if near != "" {
		what += " near '" + near + "'"
	}
	panic(&Error{Value: fmt.Sprintf("%s:%d: %s", l.chunk, line, what), Line: line})
}

func (l *lexer) peek(ahead int) byte {
	if at := l.at + ahead; at < len(l.source) {
		return l.source[at]
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// next reads a token.
func (l *lexer) next() token {
	l.skip()
	if l.at >= len(l.source) {
		return token{kind: end, text: "<eof>", line: l.line}
	}
	start, line := l.at, l.line
	switch c := l.source[l.at]; {
	case isLetter(c):
		for isLetter(l.peek(0)) || isDigit(l.peek(0)) {
			l.at++
		}
		word := l.source[start:l.at]
		if keywords[word] {
			return token{kind: keyword, text: word, line: line}
		}
		return token{kind: name, text: word, line: line}
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		return l.number()
	case c == '"' || c == '\'':
		return token{kind: quoted, text: l.quoted(c), line: line}
	case c == '[' && l.longMark() >= 0:
		text := l.long("string")
		return token{kind: quoted, text: text, line: l.line}
	}
	return l.operator()
}

func (l *lexer) operator() token {
	for _, op := range []string{"...", "..", "==", "~=", "<=", ">="} {
		if strings.HasPrefix(l.source[l.at:], op) {
			l.at += len(op)
			return token{kind: keyword, text: op, line: l.line}
		}
	}
	c := l.source[l.at]
	l.at++
	return token{kind: keyword, text: string([]byte{c}), line: l.line} // the parser refuses it if it is none
}

// skip passes over blanks and comments.
func (l *lexer) skip() {
	for l.at < len(l.source) {
		switch c := l.source[l.at]; {
		case c == '\n':
			l.line++
			l.at++
		case isSpace(c):
			l.at++
		case c == '-' && l.peek(1) == '-':
			l.at += 2
			if l.peek(0) == '[' && l.longMark() >= 0 {
				l.long("comment")
				continue
			}
			for l.at < len(l.source) && l.source[l.at] != '\n' {
				l.at++
			}
		default:
			return
		}
	}
}

// longMark is the level of the long bracket that begins here; negative: none does.
func (l *lexer) longMark() int {
	level := 0
	for l.peek(1+level) == '=' {
		level++
	}
	if l.peek(1+level) == '[' {
		return level
	}
	return -1
}

// long reads a long string, or a comment.
func (l *lexer) long(what string) string {
	level := l.longMark()
	l.at += level + 2
	if l.peek(0) == '\r' {
		l.at++
	}
	if l.peek(0) == '\n' {
		l.line++
		l.at++
	}
	closing := "]" + strings.Repeat("=", level) + "]"
	length := strings.Index(l.source[l.at:], closing)
	if length < 0 {
		l.fail(l.line+strings.Count(l.source[l.at:], "\n"), "unfinished long "+what, "<eof>")
	}
	text := l.source[l.at : l.at+length]
	l.line += strings.Count(text, "\n")
	l.at += length + len(closing)
	return text
}

func (l *lexer) number() token {
	start := l.at
	for isDigit(l.peek(0)) || l.peek(0) == '.' {
		l.at++
	}
	if c := l.peek(0); c == 'e' || c == 'E' {
		l.at++
		if c := l.peek(0); c == '+' || c == '-' {
			l.at++
		}
	}
	for isLetter(l.peek(0)) || isDigit(l.peek(0)) {
		l.at++
	}
	text := l.source[start:l.at]
	n, ok := parseNumber(text)
	if !ok {
		l.fail(l.line, "malformed number", text)
	}
	return token{kind: number, text: text, number: n, line: l.line}
}

var escapes = map[byte]byte{'a': 7, 'b': 8, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11}

func (l *lexer) quoted(mark byte) string {
	start := l.at
	l.at++
	var b strings.Builder
	for {
		switch c := l.peek(0); {
		case l.at >= len(l.source):
			l.fail(l.line, "unfinished string", "<eof>")
		case c == '\n':
			l.fail(l.line, "unfinished string", l.source[start:l.at])
		case c == mark:
			l.at++
			return b.String()
		case c != '\\':
			b.WriteByte(c)
			l.at++
		default:
			l.at++
			l.escaped(&b, start)
		}
	}
}

// escaped reads what follows a backslash.
func (l *lexer) escaped(b *strings.Builder, start int) {
	c := l.peek(0)
	if l.at >= len(l.source) {
		return
	}
	if !isDigit(c) {
		l.at++
		switch {
		case c == '\n':
			l.line++
		case escapes[c] != 0:
			c = escapes[c]
		}
		b.WriteByte(c)
		return
	}
	code, near := 0, l.source[start:l.at-1]
	for n := 0; n < 3 && isDigit(l.peek(0)); n++ {
		code = code*10 + int(l.peek(0)-'0')
		l.at++
	}
	if code > 255 {
		l.fail(l.line, "escape sequence too large", near)
	}
	b.WriteByte(byte(code))
}
