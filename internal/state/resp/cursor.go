package resp

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// Limits of the cursors that are kept of a space. An older one begins anew: what it has to show is shown, some of it once more.
const (
	maxCursors     = 1 << 12
	maxCursorBytes = 1 << 20
)

// positions are those of one space: the numbers that clients have for the names behind which their SCANs go on. Clients want numbers, some
// of at most 53 bits; the store's cursors are the names.
type positions struct {
	mu    sync.Mutex // guards the rest
	first uint64     // the number of kept[0]; numbers begin at 1
	kept  []string
	size  int // bytes of the names
}

// keep returns the number of a position.
func (p *positions) keep(position string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, position)
	p.size += len(position)
	for len(p.kept) > maxCursors || p.size > maxCursorBytes && len(p.kept) > 1 {
		p.size -= len(p.kept[0])
		p.kept = p.kept[1:]
		p.first++
	}
	return p.first + uint64(len(p.kept)) - 1
}

// erase forgets all. Their numbers do not come again.
func (p *positions) erase() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first += uint64(len(p.kept))
	p.kept, p.size = nil, 0
}

// position finds the position of a number; that of one that is not known is the beginning.
func (p *positions) position(number uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number < p.first || number-p.first >= uint64(len(p.kept)) {
		return "0"
	}
	return p.kept[number-p.first]
}

// cursorAt is the place of the cursor among the arguments of a command; 0 if it has none.
func cursorAt(spec *command.Spec) int {
	switch {
	case spec == nil || !strings.HasSuffix(spec.Name, "scan"):
		return 0
	case spec.Name == "scan":
		return 1
	}
	return 2
}

// withPosition puts the position in the place of the client's number. A cursor that is none stays, and is refused.
func (c *conn) withPosition(at int, args [][]byte) [][]byte {
	if at == 0 || at >= len(args) {
		return args
	}
	position := "?"
	if number, ok := parseCursor(args[at]); ok {
		position = c.space.positions.position(number)
	}
	args = append([][]byte{}, args...)
	args[at] = []byte(position)
	return args
}

// parseCursor reads a number as C's strtoul does, but for blanks before it.
func parseCursor(arg []byte) (number uint64, ok bool) {
	text, minus := bytes.CutPrefix(arg, []byte("-"))
	if !minus {
		text = bytes.TrimPrefix(arg, []byte("+"))
	}
	if len(arg) == 0 {
		return 0, true
	}
	number, err := strconv.ParseUint(string(text), 10, 64)
	if minus {
		number = -number
	}
	return number, err == nil
}

// withNumber puts a number in the place of the position in a reply.
func (c *conn) withNumber(at int, r state.Reply) state.Reply {
	if at == 0 || r.Kind != state.Array || len(r.Items) != 2 || string(r.Items[0].Text) == "0" {
		return r
	}
	number := c.space.positions.keep(string(r.Items[0].Text))
	r.Items[0] = bulk(strconv.FormatUint(number, 10))
	return r
}
