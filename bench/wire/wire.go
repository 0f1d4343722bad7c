// Package wire measures the server's protocols: HTTP/1.1, HTTP/2 and HTTP/3 over TLS beside plain HTTP/1.1, new connections over a long way, and
// calls from function to function.
package wire

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// bench is one run.
type bench struct {
	binary, other, native, python, out string
	quick                              bool
	folder                             string // temporary, for all data
	report                             harness.Report
	fresh                              []bar
}

// bar is a median for the figure.
type bar struct {
	name string
	p50  float64
}

// action is the compiled function that is called: it answers with its input.
const (
	action = "echo"
	input  = `{"x":1}`
	path   = "/api/v1/namespaces/_/actions/" + action + "?blocking=true&result=true"
	read   = "/api/v1/namespaces/_/packages"
)

// Run runs `bench wire`.
func Run(ctx context.Context, args []string) (err error) {
	b := new(bench)
	only := "door"
	f := flag.NewFlagSet("bench wire", flag.ContinueOnError)
	f.StringVar(&b.binary, "binary", "bin/forerun", "the server's `PATH`")
	f.StringVar(&b.other, "other", "", "`PATH` of another server, whose plain HTTP is measured beside")
	f.StringVar(&b.native, "native", ".forerun/bench-native", "`PATH` of the compiled function")
	f.StringVar(&b.python, "python", ".forerun/quic/bin/python", "`PATH` of a Python with aioquic")
	f.StringVar(&b.out, "out", "bench/out", "`FOLDER` for figures")
	f.StringVar(&only, "case", only, "the `CASE`s, with commas between: door is all; kept, rate, calls, fresh, cost")
	f.BoolVar(&b.quick, "quick", false, "measure a tenth, for a rough look")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if b.folder, err = os.MkdirTemp("", "forerun-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder)
	b.report.Title, b.report.Machine = "The door: protocols beside plain HTTP/1.1, interleaved", harness.Machine()
	b.report.Machine["quick"] = b.quick
	if err := b.measure(ctx, strings.Split(only, ",")); err != nil {
		return err
	}
	if only == "door" {
		if err := b.write(); err != nil {
			return err
		}
	}
	return b.report.Table(os.Stdout)
}

func (b *bench) measure(ctx context.Context, only []string) error {
	known := 0
	for _, m := range []struct {
		name string
		run  func(context.Context) error
	}{{"kept", b.kept}, {"rate", b.rate}, {"calls", b.calls}, {"fresh", b.long}, {"cost", b.cost}} {
		if !slices.Contains(only, m.name) && !slices.Contains(only, "door") {
			continue
		}
		known++
		fmt.Fprintln(os.Stderr, time.Now().Format("15:04:05"), m.name)
		if err := m.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if known == 0 {
		return fmt.Errorf("there is no such case: name door, kept, rate, calls, fresh or cost")
	}
	return nil
}

// write writes the report and the figure of new connections.
func (b *bench) write() error {
	if err := b.report.Write(b.out, "door"); err != nil {
		return err
	}
	var names []string
	var values []float64
	for _, f := range b.fresh {
		names, values = append(names, f.name), append(values, f.p50)
	}
	return harness.Grouped(b.out, "door-fresh", "A new connection over a round trip of 50 ms: p50 until the answer", "ms", names, false,
		harness.Bars{Name: "p50", Values: values})
}

// count is how often to measure something.
func (b *bench) count(n int) int {
	if b.quick {
		return n / 10
	}
	return n
}

// start starts a server, with the compiled function in it.
func (b *bench) start(ctx context.Context, binary, name string, args ...string) (*server.Server, error) {
	s, err := server.Start(ctx, server.Options{Binary: binary, Data: filepath.Join(b.folder, name), Args: args})
	if err != nil {
		return nil, err
	}
	if err := b.put(ctx, s); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// put creates the compiled function.
func (b *bench) put(ctx context.Context, s *server.Server) error {
	program, err := os.ReadFile(b.native)
	if err != nil {
		return fmt.Errorf("there is no native function: make bench-wire builds it: %w", err)
	}
	c := s.Client(1)
	defer c.Close()
	return c.Put(ctx, action, map[string]any{"exec": map[string]any{"kind": "native", "code": base64.StdEncoding.EncodeToString(program)}})
}

// stop stops a server; what it says of that goes to stderr.
func stop(s *server.Server) {
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (b *bench) row(r harness.Row) { b.report.Rows = append(b.report.Rows, r) }

// beside adds the median of a sample beside another, first the ratio's parts and then what the target is about.
func (b *bench) beside(name, over string, s, base *harness.Sample) {
	_, ratio, _ := harness.Ratios(s, base)
	low, high := s.Noise()
	b.row(harness.Row{
		Case: name, Metric: "p50 beside " + over + " (noise " + fmt.Sprintf("%.3g to %.3g", low, high) + ")", Unit: "ms",
		Value: harness.Number(s.P50()), Baseline: harness.Number(base.P50()), Ratio: harness.Number(ratio),
	})
}

// saved adds which share of another's time a median is below it.
func (b *bench) saved(name, over string, s, base *harness.Sample, target string, paper *float64) {
	b.beside(name, over, s, base)
	b.row(harness.Row{Case: name, Metric: "p50 below " + over, Unit: "of it", Value: harness.Number(1 - s.P50()/base.P50()), Target: harness.Text(target), Paper: paper})
}
