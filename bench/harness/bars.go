package harness

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Bars are the bars of one colour: one value for each group; NaN where there is none.
type Bars struct {
	Name   string
	Values []float64
}

// Grouped draws groups of bars beside each other, with a line at 1 if the values are ratios.
func Grouped(folder, name, title, unit string, groups []string, ratios bool, bars ...Bars) error {
	const width = 9 // points, of a bar
	p := plot.New()
	p.Title.Text, p.Y.Label.Text, p.Y.Min = title, unit, 0
	p.Legend.Top = true
	p.NominalX(groups...)
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign = math.Pi/6, -1
	highest := 1.0
	for i, b := range bars {
		values := make(plotter.Values, len(b.Values))
		for k, v := range b.Values {
			if !math.IsNaN(v) {
				values[k] = v
			}
			highest = math.Max(highest, values[k])
		}
		drawn, err := plotter.NewBarChart(values, vg.Points(width))
		if err != nil {
			return err
		}
		drawn.Color, drawn.LineStyle.Width = colours()[i%len(colours())], 0
		drawn.Offset = vg.Points(width * (float64(i) - float64(len(bars)-1)/2))
		p.Add(drawn)
		p.Legend.Add(b.Name, drawn)
	}
	p.Y.Max = highest * (1 + legendLine*float64(len(bars)+1)) // the legend is above
	if ratios {
		line, err := plotter.NewLine(plotter.XYs{{X: -0.5, Y: 1}, {X: float64(len(groups)) - 0.5, Y: 1}})
		if err != nil {
			return err
		}
		p.Add(line)
	}
	return save(p, folder, name, vg.Points(120+float64(len(groups))*(width*float64(len(bars))+14)), 4*vg.Inch)
}
