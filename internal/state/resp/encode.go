package resp

import (
	"strconv"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// itemSize is about what a reply takes beside its text and its items.
const itemSize = 72

// replySize is about how many bytes a reply takes.
func replySize(r state.Reply) int {
	size := itemSize + len(r.Text)
	for _, item := range r.Items {
		size += replySize(item)
	}
	return size
}

// appendReply writes a reply in RESP2 or RESP3.
func appendReply(b []byte, r state.Reply, protocol int) []byte {
	switch r.Kind {
	case state.Simple:
		return appendLine(b, '+', r.Text)
	case state.Error:
		return appendLine(b, '-', r.Text)
	case state.Integer:
		return appendNumber(b, ':', r.Int)
	case state.Bulk:
		return appendBulk(b, r.Text)
	case state.Array:
		return appendItems(b, '*', len(r.Items), r.Items, protocol)
	}
	if protocol == 2 {
		return appendNearest(b, r)
	}
	switch r.Kind {
	case state.Push:
		return appendItems(b, '>', len(r.Items), r.Items, protocol)
	case state.MapReply:
		return appendItems(b, '%', len(r.Items)/2, r.Items, protocol)
	case state.SetReply:
		return appendItems(b, '~', len(r.Items), r.Items, protocol)
	case state.Pairs:
		return appendPairs(b, r.Items)
	case state.Double:
		return appendLine(b, ',', command.FormatDouble(r.Float))
	case state.Boolean:
		if r.Int != 0 {
			return append(b, "#t\r\n"...)
		}
		return append(b, "#f\r\n"...)
	case state.Verbatim:
		b = appendNumber(b, '=', int64(len(r.Text)+len("txt:")))
		return append(append(append(b, "txt:"...), r.Text...), "\r\n"...)
	}
	return append(b, "_\r\n"...)
}

// appendNearest writes in RESP2 a reply of a type that only RESP3 has.
func appendNearest(b []byte, r state.Reply) []byte {
	switch r.Kind {
	case state.MapReply, state.SetReply, state.Pairs, state.Push:
		return appendItems(b, '*', len(r.Items), r.Items, 2)
	case state.Double:
		return appendBulk(b, command.FormatDouble(r.Float))
	case state.Boolean:
		return appendNumber(b, ':', r.Int)
	case state.Verbatim:
		return appendBulk(b, r.Text)
	case state.NilArray:
		return append(b, "*-1\r\n"...)
	}
	return append(b, "$-1\r\n"...)
}

func appendItems(b []byte, mark byte, n int, items []state.Reply, protocol int) []byte {
	b = appendNumber(b, mark, int64(n))
	for _, item := range items {
		b = appendReply(b, item, protocol)
	}
	return b
}

// appendPairs writes what RESP3 has as an array of arrays of two.
func appendPairs(b []byte, items []state.Reply) []byte {
	b = appendNumber(b, '*', int64(len(items)/2))
	for i := 0; i+1 < len(items); i += 2 {
		b = appendItems(b, '*', 2, items[i:i+2], 3)
	}
	return b
}

func appendNumber(b []byte, mark byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, mark), n, 10), "\r\n"...)
}

func appendBulk(b, text []byte) []byte {
	return append(append(appendNumber(b, '$', int64(len(text))), text...), "\r\n"...)
}

// appendLine writes text that may not break the line.
func appendLine(b []byte, mark byte, text []byte) []byte {
	b = append(b, mark)
	for _, c := range text {
		if c == '\r' || c == '\n' {
			c = ' '
		}
		b = append(b, c)
	}
	return append(b, "\r\n"...)
}
