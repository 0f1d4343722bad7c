// Package harness holds what every benchmark of Forerun needs: the plain echo
// server, samples, this machine's own speeds, and reports as JSON, table and figures.
package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Row is one figure of a report. What does not apply is nil.
type Row struct {
	Case     string    `json:"case"`
	Metric   string    `json:"metric"`
	Unit     string    `json:"unit"`
	Value    *float64  `json:"value"`
	Baseline *float64  `json:"baseline"` // measured interleaved with the value, in the same unit
	Ratio    *float64  `json:"ratio"`
	Interval []float64 `json:"interval"` // of the value, lower and upper end: 95 of 100 such runs would give a value within
	Paper    *float64  `json:"paper"`
	Target   *string   `json:"target"` // like ">=4.6" or "<=1.2"
}

// Report is what a benchmark writes.
type Report struct {
	Title   string         `json:"title,omitempty"`
	Machine map[string]any `json:"machine"`
	Rows    []Row          `json:"rows"`
}

// Number rounds x to four significant digits, which is more than any of these measurements holds.
func Number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil // not measured
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64) // it was just formatted
	return &rounded
}

// Text returns a pointer to s, or nil if it is empty.
func Text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Meets reports whether the row's value is within its target; ok is false if it has none.
func (r *Row) Meets() (meets, ok bool) {
	if r.Target == nil || r.Value == nil {
		return false, false
	}
	bound, err := parseBound(*r.Target)
	if strings.HasPrefix(*r.Target, "<=") {
		return *r.Value <= bound, err == nil
	}
	return *r.Value >= bound, err == nil
}

// parseBound reads the number of a target, "<=N" or ">=N".
func parseBound(target string) (float64, error) {
	if len(target) < 2 || target[1] != '=' || target[0] != '<' && target[0] != '>' {
		return 0, fmt.Errorf("%q is not a target: write <=N or >=N", target)
	}
	return strconv.ParseFloat(target[2:], 64)
}

// Write writes the report to FOLDER/NAME.json, and its table to NAME.txt.
func (r *Report) Write(folder, name string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, name+".json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	var table bytes.Buffer
	if err := r.Table(&table); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".txt"), table.Bytes(), 0o644)
}

// Table prints title and rows for a person: with intervals, and what the paper has, where there are such.
func (r *Report) Table(w io.Writer) error {
	more := slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Interval != nil || row.Paper != nil })
	if r.Title != "" {
		fmt.Fprintln(w, r.Title)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if more {
		fmt.Fprintln(t, "case\tmetric\tvalue\t95% interval\tbaseline\tratio\tpaper\ttarget\t")
	} else {
		fmt.Fprintln(t, "case\tmetric\tvalue\tbaseline\tratio\ttarget\t")
	}
	for _, row := range r.Rows {
		cells := []string{row.Case, row.Metric, show(row.Value) + " " + row.Unit, show(row.Baseline), show(row.Ratio), target(row.Target), verdict(&row)}
		if more {
			cells = slices.Insert(cells, 5, show(row.Paper))
			cells = slices.Insert(cells, 3, interval(row.Interval))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

func interval(ends []float64) string {
	if len(ends) != 2 {
		return "-"
	}
	return show(Number(ends[0])) + " to " + show(Number(ends[1]))
}

func show(x *float64) string {
	if x == nil {
		return "-"
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

func target(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func verdict(row *Row) string {
	switch meets, ok := row.Meets(); {
	case row.Target != nil && row.Value == nil:
		return "not measured"
	case !ok:
		return ""
	case meets:
		return "met"
	default:
		return "MISSED"
	}
}
