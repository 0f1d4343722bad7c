package harness

import (
	"image/color"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// colours tell series apart, also for eyes that do not tell red from green.
func colours() []color.Color {
	return []color.Color{
		color.RGBA{0x99, 0x99, 0x99, 0xff},
		color.RGBA{0x00, 0x72, 0xb2, 0xff},
		color.RGBA{0xd5, 0x5e, 0x00, 0xff},
		color.RGBA{0x00, 0x9e, 0x73, 0xff},
		color.RGBA{0xcc, 0x79, 0xa7, 0xff},
		color.RGBA{0xe6, 0x9f, 0x00, 0xff},
		color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	}
}

// dashes tell series apart that have the same colour: the n-th is the n/len(colours)-th.
func dashes() [][]vg.Length {
	return [][]vg.Length{nil, {vg.Points(6), vg.Points(2)}, {vg.Points(1), vg.Points(2)}}
}

// legendLine is the height of a line of a legend, as a part of the axis from 0 to 1.
const legendLine = 0.065

// Series is a named sample.
type Series struct {
	Name   string
	Sample *Sample
}

// Distribution draws the share of calls that took no longer than a time, one line for each series, over a logarithmic axis.
func Distribution(folder, name, title string, series ...Series) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "milliseconds"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Label.Text = "share of calls"
	p.Y.Min, p.Y.Max = 0, 1+legendLine*float64(len(series)+1) // the legend is above
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.25}, {Value: 0.5, Label: "0.5"}, {Value: 0.75}, {Value: 1, Label: "1"}}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, s := range series {
		line, err := plotter.NewLine(shares(s.Sample))
		if err != nil {
			return err
		}
		line.Color, line.Width = colours()[i%len(colours())], vg.Points(1.5)
		line.Dashes = dashes()[i/len(colours())%len(dashes())]
		p.Add(line)
		p.Legend.Add(s.Name, line)
	}
	return save(p, folder, name, 6*vg.Inch, vg.Length(3.2+0.25*float64(len(series)))*vg.Inch)
}

func shares(s *Sample) plotter.XYs {
	all := s.All()
	points := make(plotter.XYs, len(all))
	for i, ms := range all {
		points[i] = plotter.XY{X: math.Max(ms, 1e-3), Y: float64(i+1) / float64(len(all))}
	}
	return points
}

// Targets draws each row that has a target as a bar: how much of its bound a value uses, so that 1 is the bound and less is better.
func Targets(folder, name, title string, rows []Row) error {
	var values plotter.Values
	var names []string
	for i := len(rows) - 1; i >= 0; i-- {
		if used := rows[i].used(); used > 0 {
			values = append(values, used)
			names = append(names, rows[i].Case)
		}
	}
	if len(values) == 0 {
		return nil
	}
	bars, err := plotter.NewBarChart(values, vg.Points(10))
	if err != nil {
		return err
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, colours()[1], 0
	bound, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(values)) - 0.3}})
	if err != nil {
		return err
	}
	bound.Color, bound.Width = colours()[2], vg.Points(1.5)
	labels, err := namesAbove(names)
	if err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "share of the bound (1: all of it)"
	p.X.Min = 0
	p.HideY()
	p.Add(bars, bound, labels)
	return save(p, folder, name, 6*vg.Inch, vg.Length(1+0.4*float64(len(values)))*vg.Inch)
}

// namesAbove writes each bar's name above it, where it fits whatever font the reader has.
func namesAbove(names []string) (*plotter.Labels, error) {
	at := make(plotter.XYs, len(names))
	for i := range names {
		at[i] = plotter.XY{X: 0, Y: float64(i) + 0.27}
	}
	return plotter.NewLabels(plotter.XYLabels{XYs: at, Labels: names})
}

// used is the value as a share of an upper bound, or a lower bound as a share of the value; 0 without either.
func (r *Row) used() float64 {
	if _, ok := r.Meets(); !ok {
		return 0
	}
	bound, err := parseBound(*r.Target)
	if err != nil || *r.Value <= 0 {
		return 0
	}
	if (*r.Target)[0] == '<' {
		return *r.Value / bound
	}
	return bound / *r.Value
}

// save writes the figure as SVG.
func save(p *plot.Plot, folder, name string, width, height vg.Length) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	p.BackgroundColor = color.White
	p.Title.TextStyle.XAlign = draw.XCenter
	return p.Save(width, height, filepath.Join(folder, name+".svg"))
}
