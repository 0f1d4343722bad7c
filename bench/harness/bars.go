package harness

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Bars are the bars of one kind: one value for each group; NaN where there is none.
type Bars struct {
	Name   string
	Colour int  // of those that tell bars apart
	Hollow bool // somebody else's, to compare
	Values []float64
}

// In a figure of bars the unit of the horizontal axis is the width of a bar.
const (
	barWidth      = vg.Length(9)
	betweenGroups = 1.5
	leastWidth    = 7 * vg.Inch // for the title
)

// Grouped draws groups of bars beside each other, with a line at 1 if the values are ratios. A bar that a group does not have takes
// no room in it.
func Grouped(folder, name, title, unit string, groups []string, ratios bool, bars ...Bars) error {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text, p.Y.Min = title, unit, 0
	p.Legend.Top, p.Legend.Padding = true, vg.Points(1)
	places, ticks, width := lay(groups, bars)
	p.X.Min, p.X.Max = 0, width
	p.X.Tick.Length, p.X.Width = 0, 0
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign = math.Pi/6, -1
	p.X.Tick.Marker = ticks
	highest, kinds := 1.0, 0
	for i, b := range bars {
		drawn, top, err := b.draw(places[i])
		if err != nil {
			return err
		}
		if len(drawn.XYs) == 0 {
			continue
		}
		p.Add(drawn)
		p.Legend.Add(b.Name, drawn)
		highest, kinds = math.Max(highest, top), kinds+1
	}
	p.Y.Max = highest * (1 + legendLine*float64(kinds+1)) // the legend is above
	if ratios {
		line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 1}, {X: width, Y: 1}})
		if err != nil {
			return err
		}
		p.Add(line)
	}
	return save(p, folder, name, max(leastWidth, 120+vg.Length(width)*barWidth), 4*vg.Inch)
}

// lay places the bars that there are: where each begins, by kind and group; and how wide all are. The ticks are the groups' names,
// each below the middle of its bars.
func lay(groups []string, bars []Bars) (places [][]float64, ticks plot.ConstantTicks, width float64) {
	places = make([][]float64, len(bars))
	for g, name := range groups {
		width += betweenGroups / 2
		begin := width
		for i, b := range bars {
			places[i] = append(places[i], width)
			if !math.IsNaN(b.Values[g]) {
				width++
			}
		}
		ticks = append(ticks, plot.Tick{Value: (begin + width) / 2, Label: name})
		width += betweenGroups / 2
	}
	return places, ticks, width
}

// draw draws bars at their places. It returns the highest value, too.
func (b *Bars) draw(places []float64) (drawn *plotter.Polygon, top float64, err error) {
	var rings []plotter.XYer
	for g, v := range b.Values {
		if !math.IsNaN(v) {
			x := places[g]
			rings = append(rings, plotter.XYs{{X: x, Y: 0}, {X: x, Y: v}, {X: x + 1, Y: v}, {X: x + 1, Y: 0}})
			top = math.Max(top, v)
		}
	}
	if drawn, err = plotter.NewPolygon(rings...); err != nil {
		return nil, 0, err
	}
	colour := colours()[b.Colour%len(colours())]
	drawn.Color, drawn.LineStyle.Color, drawn.LineStyle.Width = colour, colour, vg.Points(1)
	if b.Hollow {
		drawn.Color = color.White
	}
	return drawn, top, nil
}
