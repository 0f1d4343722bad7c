package waterfall

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"forerun.dev/forerun/internal/trace"
)

// Sizes of the picture, in its pixels.
const (
	rowHeight  = 22
	chartWidth = 600
	tookWidth  = 70 // of the durations
	mostNames  = 260
	mostNotes  = 560
	margin     = 16
	indent     = 12
	ticks      = 4
)

// How wide a character is, about, of a name and of the smaller notes. A font may have wider ones.
const (
	nameChar = 7
	noteChar = 6
)

// The colours of the picture beside those of styles.
const (
	paper = "#ffffff"
	shade = "#f6f7f9" // of every second row
	line  = "#dde1e6"
	faint = "#6b7280"
	text  = "#1f2937"
)

// picture is an SVG in the making.
type picture struct {
	strings.Builder
	trace        *trace.Trace
	names, notes int // how wide those are
	top          int // where the first row begins
}

// SVG writes a trace as a picture that needs nothing beside it: a row for each slot, with its name, its bar, how long it took and what is
// to be told of it, as far as there is room; all of that shows under the pointer.
func SVG(w io.Writer, t *trace.Trace) error {
	p := &picture{trace: t}
	for i := range t.Slots {
		b := &t.Slots[i]
		p.names = max(p.names, level(b)*indent+nameChar*utf8.RuneCountInString(b.Title))
		p.notes = max(p.notes, noteChar*utf8.RuneCountInString(b.Note))
	}
	p.names, p.notes = min(p.names, mostNames), min(p.notes, mostNotes)
	if t.Cites {
		p.names += p.numbers()
	}
	p.legend()
	p.shades()
	p.axis()
	for i := range t.Slots {
		p.row(&t.Slots[i])
	}
	p.text(margin, p.bottom()+46, 12, text, "start", t.Times)
	p.text(margin, p.bottom()+66, 12, text, "start", t.Counts)
	_, err := io.WriteString(w, p.whole())
	return err
}

// whole is the picture with its frame.
func (p *picture) whole() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="system-ui, sans-serif">
<rect width="%[1]d" height="%[2]d" fill="%[3]s"/>
%[4]s</svg>
`, p.width(), p.bottom()+66+margin, paper, p.String())
}

// chart is where the bars begin.
func (p *picture) chart() int { return margin + p.names + margin }

// end is where they end at most.
func (p *picture) end() int { return p.chart() + chartWidth }

func (p *picture) width() int { return p.end() + tookWidth + margin + p.notes + margin }

// bottom is where the rows end.
func (p *picture) bottom() int { return p.top + len(p.trace.Slots)*rowHeight }

// numbers is how wide the rows' numbers are.
func (p *picture) numbers() int { return nameChar * len(fmt.Sprint("#", len(p.trace.Slots), " ")) }

func (p *picture) x(at int64) float64 {
	return float64(p.chart()) + min(1, float64(max(0, at-p.trace.Begin))/float64(max(1, p.trace.Wall)))*chartWidth
}

// legend says what the looks are that there are in the picture.
func (p *picture) legend() {
	used := make(map[trace.Look]bool)
	for i := range p.trace.Slots {
		for _, bar := range p.trace.Slots[i].Bars {
			used[bar.Look] = used[bar.Look] || bar.To > bar.From || bar.Look == trace.NotExecuted
		}
	}
	x, y := margin, margin
	for _, look := range trace.Looks {
		if !used[look] {
			continue
		}
		label := styles[look].legend
		wide := 22 + noteChar*len(label) + 24
		if x > margin && x+wide > p.width() {
			x, y = margin, y+rowHeight
		}
		p.draw(look, float64(x), float64(x+16), y)
		p.text(x+22, y+15, 11, faint, "start", label)
		x += wide
	}
	p.top = y + rowHeight + 8
}

// shades lie behind every second row.
func (p *picture) shades() {
	for i := 0; i < len(p.trace.Slots); i += 2 {
		fmt.Fprintf(p, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", margin/2, p.top+i*rowHeight, p.width()-margin, rowHeight, shade)
	}
}

// axis has faint lines through the rows, and the time below them.
func (p *picture) axis() {
	for i := range ticks + 1 {
		x, anchor := p.chart()+i*chartWidth/ticks, "middle"
		switch i {
		case 0:
			anchor = "start"
		case ticks:
			anchor = "end"
		}
		fmt.Fprintf(p, `<path d="M%d %dV%d" stroke="%s"/>`+"\n", x, p.top, p.bottom()+5, line)
		p.text(x, p.bottom()+18, 11, faint, anchor, trace.Length(p.trace.Wall*int64(i)/ticks))
	}
}

// row draws one slot.
func (p *picture) row(b *trace.Slot) {
	y := p.top + (b.Row-1)*rowHeight
	fmt.Fprintf(p, "<g><title>%s</title>\n", escaped(tip(b)))
	x := margin
	if p.trace.Cites {
		p.text(x+p.numbers()-nameChar, y+15, 11, faint, "end", fmt.Sprint("#", b.Row))
		x += p.numbers()
	}
	x += level(b) * indent
	p.text(x, y+15, 12, text, "start", cut(b.Title, (p.chart()-margin-x)/nameChar))
	for _, bar := range b.Bars {
		p.draw(bar.Look, p.x(bar.From), p.x(bar.To), y)
	}
	p.text(p.end()+tookWidth, y+15, 11, text, "end", trace.Length(b.Took()))
	p.text(p.end()+tookWidth+margin, y+15, 11, noteInk(b), "start", cut(b.Note, p.notes/noteChar))
	p.WriteString("</g>\n")
}

// draw draws a bar in a row that begins at y: a diamond if it takes no time.
func (p *picture) draw(look trace.Look, from, to float64, y int) {
	style, middle := styles[look], y+rowHeight/2
	switch {
	case look == trace.NotExecuted:
		fmt.Fprintf(p, `<path d="M%.1f %dl6 6l-6 6l-6 -6z" fill="%s"/>`+"\n", (from+to)/2, middle-6, style.fill)
	case to > from || style.high > 3:
		fmt.Fprintf(p, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="1" fill="%s"/>`+"\n",
			from, float64(middle)-float64(style.high)/2, max(2, to-from), style.high, style.fill)
	}
}

// text writes a text whose line is at y.
func (p *picture) text(x, y, size int, fill, anchor, s string) {
	if s != "" {
		fmt.Fprintf(p, `<text x="%d" y="%d" font-size="%d" fill="%s" text-anchor="%s">%s</text>`+"\n", x, y, size, fill, anchor, escaped(s))
	}
}

func noteInk(b *trace.Slot) string {
	if b.IsSquashed() {
		return styles[trace.RunsInVain].fill
	}
	return faint
}

// tip is all that is to be told of a slot.
func tip(b *trace.Slot) string {
	return strings.TrimSuffix(b.Title+", "+trace.Length(b.Took())+", "+b.Note, ", ")
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes every write
	return b.String()
}
