package waterfall

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"forerun.dev/forerun/internal/trace"
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
func Text(w io.Writer, t *trace.Trace, width int, colour bool) error {
	names := 0
	for i := range t.Slots {
		names = max(names, utf8.RuneCountInString(label(t, &t.Slots[i])))
	}
	names = min(names, maxName)
	var b strings.Builder
	for i := range t.Slots {
		bar := &t.Slots[i]
		colours, end := ink(bar), noInk
		if !colour || colours == plainInk {
			colours, end = "", ""
		}
		line := fmt.Sprintf("%s |%s%s%s| %9s  %s", padded(label(t, bar), names), colours, drawn(t, bar, width), end, trace.Length(bar.Took()), bar.Note)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("\n" + t.Times + " " + t.Counts + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// label is a slot's name, indented, with the number of its row if any reason names one.
func label(t *trace.Trace, b *trace.Slot) string {
	name := strings.Repeat("  ", level(b)) + b.Title
	if !t.Cites {
		return name
	}
	return fmt.Sprintf("%*s %s", len(fmt.Sprint("#", len(t.Slots))), fmt.Sprint("#", b.Row), name)
}

func ink(b *trace.Slot) string {
	switch {
	case b.IsSquashed():
		return red
	case b.Skipped, b.Program:
		return dim
	case b.RanAhead():
		return green
	}
	return cyan
}

// drawn is the bar of a slot.
func drawn(t *trace.Trace, b *trace.Slot, width int) string {
	line := []byte(strings.Repeat(" ", width))
	for _, p := range b.Bars {
		for i := column(t, p.From, width); i <= column(t, p.To, width); i++ {
			line[i] = styles[p.Look].char
		}
	}
	return string(line)
}

func column(t *trace.Trace, at int64, width int) int {
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
