package command

import (
	"math"

	"forerun.dev/forerun/internal/state"
)

// lcsQuery is what LCS asks for.
type lcsQuery struct {
	length, index, withLength bool
	shortest                  int64 // of the matches that are shown
}

func parseLCS(args [][]byte) (q lcsQuery, refusal *state.Reply) {
	for ; len(args) > 0; args = args[1:] {
		switch {
		case is(args[0], "LEN"):
			q.length = true
		case is(args[0], "IDX"):
			q.index = true
		case is(args[0], "WITHMATCHLEN"):
			q.withLength = true
		case is(args[0], "MINMATCHLEN") && len(args) > 1:
			args = args[1:]
			if q.shortest, refusal = parseWithin(args[0], math.MinInt64, math.MaxInt64, ""); refusal != nil {
				return q, refusal
			}
		default:
			return q, refuse("ERR syntax error")
		}
	}
	if q.length && q.index {
		return q, refuse("ERR If you want both the length and indexes, please just use IDX.")
	}
	return q, nil
}

func lcs(t *txn, args [][]byte) state.Reply {
	a, ok1 := t.typed(args[1], state.String)
	b, ok2 := t.typed(args[2], state.String)
	if !ok1 || !ok2 {
		return failure("ERR The specified keys must contain string values")
	}
	q, refusal := parseLCS(args[3:])
	if refusal != nil {
		return *refusal
	}
	if (len(a.payload)+1)*(len(b.payload)+1) > MaxString/4 {
		return failure("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	}
	if t.work(cellSize * (len(a.payload) + 1) * (len(b.payload) + 1)); t.err != nil {
		return null()
	}
	c := newCommon(t, a.payload, b.payload)
	if t.err != nil {
		return null()
	}
	length := integer(int64(c.at(len(c.a), len(c.b))))
	if q.length {
		return length
	}
	text, matches := c.trace()
	if !q.index {
		return bulk(text)
	}
	shown := []state.Reply{}
	for _, m := range matches {
		if int64(m.length) >= q.shortest {
			shown = append(shown, m.reply(q.withLength))
		}
	}
	return state.Reply{Kind: state.MapReply, Items: []state.Reply{bulk([]byte("matches")), array(shown), bulk([]byte("len")), length}}
}

// common has the lengths of the longest common subsequences of all beginnings of two strings.
type common struct {
	a, b  []byte
	cells []uint32
}

const cellSize = 4 // bytes of one of cells

func newCommon(t *txn, a, b []byte) *common {
	c := &common{a, b, make([]uint32, (len(a)+1)*(len(b)+1))}
	for i := range a {
		if t.err = t.overlay.proceed(cellSize * (len(b) + 1)); t.err != nil {
			break
		}
		c.fillRow(i)
	}
	return c
}

// fillRow fills the cells behind a byte of a, whose row before is filled.
func (c *common) fillRow(i int) {
	width := len(c.b) + 1
	for j := range c.b {
		here := (i+1)*width + j + 1
		if c.a[i] == c.b[j] {
			c.cells[here] = c.cells[here-width-1] + 1
		} else {
			c.cells[here] = max(c.cells[here-width], c.cells[here-1])
		}
	}
}

func (c *common) at(i, j int) uint32 { return c.cells[i*(len(c.b)+1)+j] }

// match is a run of bytes that both strings have.
type match struct{ inA, inB, length int }

func (m match) reply(withLength bool) state.Reply {
	span := func(from int) state.Reply {
		return array([]state.Reply{integer(int64(from)), integer(int64(from + m.length - 1))})
	}
	items := []state.Reply{span(m.inA), span(m.inB)}
	if withLength {
		items = append(items, integer(int64(m.length)))
	}
	return array(items)
}

// trace follows the cells from the end, and returns the subsequence and its runs, the last first.
func (c *common) trace() (text []byte, matches []match) {
	i, j := len(c.a), len(c.b)
	text = make([]byte, c.at(i, j))
	run := 0
	for i > 0 && j > 0 {
		if c.a[i-1] == c.b[j-1] {
			text[c.at(i, j)-1] = c.a[i-1]
			i, j, run = i-1, j-1, run+1
			continue
		}
		if run > 0 {
			matches = append(matches, match{i, j, run})
			run = 0
		}
		if c.at(i-1, j) > c.at(i, j-1) {
			i--
		} else {
			j--
		}
	}
	if run > 0 {
		matches = append(matches, match{i, j, run})
	}
	return text, matches
}
