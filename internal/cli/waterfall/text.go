package waterfall

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// bound of a name's width in text.
const maxName = 32

// The colours of a terminal.
const (
	plainInk = ""
	dim      = "\x1b[2m"
	green    = "\x1b[32m"
	cyan     = "\x1b[36m"
	red      = "\x1b[31m"
	noInk    = "\x1b[0m"
)

// Text writes a trace for a terminal: a line for each slot, with bars of width characters in which "_" is a workflow's time, "."
// waiting, "=" running, ">" running speculatively, "x" running until it was squashed, "-" waiting finished until it was its turn, "*" that it was
// not executed, as its output was known.
func (t *Trace) Text(w io.Writer, width int, colour bool) error {
	names := 0
	for i := range t.Bars {
		names = max(names, utf8.RuneCountInString(t.label(&t.Bars[i])))
	}
	names = min(names, maxName)
	var b strings.Builder
	for i := range t.Bars {
		bar := &t.Bars[i]
		ink, end := bar.ink(), noInk
		if !colour || ink == plainInk {
			ink, end = "", ""
		}
		line := fmt.Sprintf("%s |%s%s%s| %9s  %s", padded(t.label(bar), names), ink, t.drawn(bar, width), end, length(bar.took()), bar.notes())
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	times, counts := t.summary()
	b.WriteString("\n" + times + " " + counts + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// label is a slot's name, indented, with the number of its row if any reason names one.
func (t *Trace) label(b *Bar) string {
	name := strings.Repeat("  ", b.level()) + b.title()
	if !t.cites {
		return name
	}
	return fmt.Sprintf("%*s %s", len(fmt.Sprint("#", len(t.Bars))), fmt.Sprint("#", b.Row), name)
}

func (b *Bar) ink() string {
	switch {
	case b.isSquashed():
		return red
	case b.Skipped, b.Program:
		return dim
	case b.ranAhead():
		return green
	}
	return cyan
}

// drawn is the bar of a slot.
func (t *Trace) drawn(b *Bar, width int) string {
	line := []byte(strings.Repeat(" ", width))
	for _, p := range b.pieces() {
		for i := t.column(p.from, width); i <= t.column(p.to, width); i++ {
			line[i] = looks[p.look].char
		}
	}
	return string(line)
}

func (t *Trace) column(at int64, width int) int {
	return int(min(int64(width-1), max(0, (at-t.Begin)*int64(width)/max(1, t.Wall))))
}

func padded(s string, width int) string { return fmt.Sprintf("%-*s", width, cut(s, width)) }

// cut is what of a text has room.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(0, width-1)]) + "…"
}
