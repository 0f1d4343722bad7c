package command

import (
	"bytes"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/state"
)

func integer(n int64) state.Reply { return state.Reply{Kind: state.Integer, Int: n} }

func bulk(b []byte) state.Reply {
	if b == nil {
		b = []byte{}
	}
	return state.Reply{Kind: state.Bulk, Text: b}
}

func null() state.Reply { return state.Reply{Kind: state.Nil} }

func ok() state.Reply { return state.Reply{Kind: state.Simple, Text: []byte("OK")} }

func double(f float64) state.Reply { return state.Reply{Kind: state.Double, Float: f} }

func nullArray() state.Reply { return state.Reply{Kind: state.NilArray} }

func array(items []state.Reply) state.Reply { return state.Reply{Kind: state.Array, Items: items} }

// truth is 1 or 0.
func truth(b bool) state.Reply {
	if b {
		return integer(1)
	}
	return integer(0)
}

// failure is an error with Redis's words, which begin with its code.
func failure(format string, args ...any) state.Reply {
	return state.Reply{Kind: state.Error, Text: fmt.Appendf(nil, format, args...)}
}

// refuse is a failure for those who return nil when there is none.
func refuse(format string, args ...any) *state.Reply {
	r := failure(format, args...)
	return &r
}

// The failures that many commands share.
func wrongType() state.Reply {
	return failure("WRONGTYPE Operation against a key holding the wrong kind of value")
}
func syntaxError() state.Reply { return failure("ERR syntax error") }
func notInteger() state.Reply  { return failure("ERR value is not an integer or out of range") }
func notFloat() state.Reply    { return failure("ERR value is not a valid float") }
func (t *txn) wrongArity() state.Reply {
	return failure("ERR wrong number of arguments for '%s' command", t.spec.Name)
}

func (t *txn) badExpiry() state.Reply {
	return failure("ERR invalid expire time in '%s' command", t.spec.Name)
}

// maxShown is how many bytes Redis shows of a name, and of arguments.
const maxShown = 128

// unknown refuses a command as Redis does one that it does not know; a hint may follow.
func unknown(args [][]byte, hint string) state.Reply {
	var shown strings.Builder
	for _, arg := range args[1:] {
		if shown.Len() >= maxShown {
			break
		}
		fmt.Fprintf(&shown, "'%s' ", shorten(arg, maxShown-shown.Len()))
	}
	return state.Reply{Kind: state.Error, Text: oneLine(fmt.Appendf(nil,
		"ERR unknown command '%s', with args beginning with: %s%s", shorten(args[0], maxShown), shown.String(), hint))}
}

// shorten cuts at n bytes and, as C does, at a zero byte.
func shorten(b []byte, n int) []byte {
	b, _, _ = bytes.Cut(b[:min(len(b), n)], []byte{0})
	return b
}

// oneLine keeps an error from breaking the protocol.
func oneLine(b []byte) []byte {
	for i, c := range b {
		if c == '\r' || c == '\n' {
			b[i] = ' '
		}
	}
	return b
}
