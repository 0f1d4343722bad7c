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

// Text writes a trace for a terminal: a line for each slot, with bars of width characters in which "." is waiting, "=" running,
// ">" running ahead of its turn, "x" running for nothing, "-" waiting finished until it was its turn.
func (t *Trace) Text(w io.Writer, width int, colour bool) error {
	names := 0
	for i := range t.Bars {
		names = max(names, utf8.RuneCountInString(t.Bars[i].label()))
	}
	names = min(names, maxName)
	var b strings.Builder
	for i := range t.Bars {
		bar := &t.Bars[i]
		ink, end := bar.ink(), noInk
		if !colour || ink == plainInk {
			ink, end = "", ""
		}
		fmt.Fprintf(&b, "%s |%s%s%s| %9s", padded(bar.label(), names), ink, t.drawn(bar, width), end, length(max(bar.ran(), bar.span())))
		if s := bar.state(); s != "" {
			fmt.Fprintf(&b, "  %s", s)
		}
		if held := bar.held(); held != "" {
			b.WriteString(", " + held)
		}
		if why := bar.why(); why != "" {
			fmt.Fprintf(&b, ": %s", why)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n" + t.summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// held is for how long what a slot asked for waited, and why if it was not for its records alone.
func (b *Bar) held() string {
	switch {
	case b.Held == 0:
		return ""
	case b.Stalled == "":
		return "held for " + length(b.Held)
	}
	return "held for " + length(b.Held) + " (" + plain(b.Stalled) + ")"
}

// span is what a program took.
func (b *Bar) span() int64 {
	if !b.Program {
		return 0
	}
	return b.end() - b.Queued
}

func (b *Bar) ink() string {
	switch {
	case b.isSquashed():
		return red
	case b.Skipped, b.Program:
		return dim
	case b.Speculative:
		return green
	}
	return cyan
}

// drawn is the bar of a slot.
func (t *Trace) drawn(b *Bar, width int) string {
	line := []byte(strings.Repeat(" ", width))
	fill := func(from, to int64, c byte) {
		if from == 0 || to < from {
			return
		}
		first, last := t.column(from, width), t.column(to, width)
		for i := first; i <= last; i++ {
			line[i] = c
		}
	}
	if b.Program {
		fill(b.Queued, b.end(), '_')
		return string(line)
	}
	if b.Launched == 0 {
		fill(b.Queued, b.end(), '.')
		return string(line)
	}
	fill(b.Queued, b.Launched, '.')
	fill(b.stop(), b.end(), '-')
	switch {
	case b.isSquashed():
		fill(b.Launched, b.stop(), 'x')
	case b.Skipped:
		fill(b.Launched, b.Launched, '*')
	case b.Speculative:
		fill(b.Launched, b.stop(), '>')
		if b.Promoted > 0 && b.Promoted < b.stop() {
			fill(b.Promoted, b.stop(), '=')
		}
	default:
		fill(b.Launched, b.stop(), '=')
	}
	return string(line)
}

func (t *Trace) column(at int64, width int) int {
	return int(min(int64(width-1), max(0, (at-t.Begin)*int64(width)/max(1, t.Wall))))
}

func padded(s string, width int) string {
	n := utf8.RuneCountInString(s)
	if n > width {
		return string([]rune(s)[:width-1]) + "~"
	}
	return s + strings.Repeat(" ", width-n)
}
