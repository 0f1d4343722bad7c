package waterfall

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Sizes of the picture.
const (
	rowHeight  = 22
	nameWidth  = 230
	chartWidth = 720
	margin     = 12
)

// SVG writes a trace as a picture that needs nothing beside it. What a slot's state is and why shows under the pointer.
func (t *Trace) SVG(w io.Writer) error {
	var b strings.Builder
	height := (len(t.Bars)+2)*rowHeight + 2*margin
	width := nameWidth + chartWidth + 2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	for i := range t.Bars {
		t.row(&b, &t.Bars[i], margin+i*rowHeight)
	}
	y := margin + len(t.Bars)*rowHeight + 15
	for x := range 5 {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#666" text-anchor="middle">%s</text>`+"\n",
			nameWidth+margin+x*chartWidth/4-x*20, y, length(t.Wall*int64(x)/4))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n</svg>\n", margin, y+rowHeight, escaped(t.summary()))
	_, err := io.WriteString(w, b.String())
	return err
}

// row draws one slot: waiting thin, running thick.
func (t *Trace) row(b *strings.Builder, bar *Bar, y int) {
	fmt.Fprintf(b, `<g><title>%s</title><text x="%d" y="%d">%s</text>`+"\n", escaped(bar.tip()), margin+bar.Depth*10, y+15, escaped(plain(bar.Name)))
	stroke := func(from, to int64, high int, fill string) {
		if from == 0 || to < from {
			return
		}
		x := t.x(from)
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y+(rowHeight-high)/2, max(1, t.x(to)-x), high, fill)
	}
	stroke(bar.Queued, bar.end(), 2, "#bbb")
	switch {
	case bar.Program || bar.Launched == 0:
	case bar.isSquashed():
		stroke(bar.Launched, bar.stop(), 12, "#d33")
	case bar.Skipped:
		stroke(bar.Launched, bar.Launched, 12, "#999")
	case bar.Speculative:
		stroke(bar.Launched, bar.stop(), 12, "#3a3")
		if bar.Promoted > 0 && bar.Promoted < bar.stop() {
			stroke(bar.Promoted, bar.stop(), 12, "#27b")
		}
	default:
		stroke(bar.Launched, bar.stop(), 12, "#27b")
	}
	b.WriteString("</g>\n")
}

func (t *Trace) x(at int64) float64 {
	return float64(nameWidth+margin) + float64(max(0, at-t.Begin))*float64(chartWidth)/float64(max(1, t.Wall))
}

// tip is all that is to be told of a slot.
func (b *Bar) tip() string {
	parts := []string{plain(b.Name), length(max(b.ran(), b.span()))}
	if s := b.state(); s != "" {
		parts = append(parts, s)
	}
	if held := b.held(); held != "" {
		parts = append(parts, held)
	}
	if why := b.why(); why != "" {
		parts = append(parts, why)
	}
	return strings.Join(parts, ", ")
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes every write
	return b.String()
}
