// Package baseline measures what Forerun costs: calls, sequences, cold starts,
// throughput, state and memory, each beside what this machine gives a plain
// program, and chains beside other systems, request by request or round by round,
// in one run.
package baseline

import (
	"context"
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

// measurement is one case: it adds its rows to the report.
type measurement struct {
	name, about string
	run         func(ctx context.Context, b *bench) error
}

func measurements() []measurement {
	return slices.Concat(
		[]measurement{{"start", "from the start of the server to its first answer, and its memory when idle", measureStart}},
		calls((*bench).python), calls((*bench).freshPython), calls((*bench).node), calls((*bench).native),
		[]measurement{
			{"prewarmed", "the first call of a new Python action, from the sandboxes held ready", measurePrewarmed},
			{"fairness", "a call of one tenant beside the flood of another", measureFairness},
			{"fairness-state", "a call of one tenant beside commands of another that take the server's processors", measureCommands},
			{"fulldisk", "from the removal of what a tenant filled the disk with to another tenant's next call", measureFullDisk},
			{"pool", "the memory of 100 idle Python sandboxes", measureIdle},
			{"stored", "calls of a server that has 100,000 actions and 1,000,000 activations stored", measureStored},
			{"other", "calls of this server beside those of the binary that --other names", measureOther},
			{"peers", "ten functions in sequence, beside Restate and workerd", measurePeers},
			{"floor", "a warm Python call beside a plain Go server that has a Python process answer", measureFloor},
			{"get", "a redis-py GET inside a function", measureGet},
			{"set", "durable SETs from 64 connections", measureSet},
		},
	)
}

// bench is one run: the servers that the cases share, and what they have measured.
type bench struct {
	options
	folder string // temporary, for all data
	server *server.Server
	client *server.Client
	echo   *harness.EchoServer
	disk   *harness.Disk

	echoed, synced harness.Sample // every echo and every fdatasync of this run
	report         harness.Report
	figures        []*figure
}

// figure is one of the figures of distributions that the cases fill.
type figure struct {
	name, title string
	series      []harness.Series
}

func (f *figure) add(name string, s *harness.Sample) {
	f.series = append(f.series, harness.Series{Name: name, Sample: s})
}

type options struct {
	binary, other, packages, native, peers, fill, out string

	only  string
	quick bool
}

// Run runs `bench baseline`.
func Run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	for _, m := range measurements() {
		if !m.named(o.only) {
			continue
		}
		b.progress("%s: %s", m.name, m.about)
		if err := m.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return b.finish()
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench baseline", flag.ContinueOnError)
	f.StringVar(&o.binary, "binary", "bin/forerun", "the server's `PATH`")
	f.StringVar(&o.other, "other", "", "the `PATH` of another server's binary to compare with, its runtimes beside it")
	f.StringVar(&o.packages, "packages", "bin/runtimes/python/packages", "`FOLDER` of the Python packages that functions import")
	f.StringVar(&o.native, "native", ".forerun/bench-native", "`PATH` of the compiled function")
	f.StringVar(&o.peers, "peers", ".forerun/peers", "`FOLDER` of the systems to compare with")
	f.StringVar(&o.fill, "fill", ".forerun/fill", "`PATH` of the program that fills stores")
	f.StringVar(&o.out, "out", "bench/out", "`FOLDER` for figures")
	f.BoolVar(&o.quick, "quick", false, "measure a tenth, for a rough look")
	f.StringVar(&o.only, "case", "", "measure the `CASES` with these names, or whose names begin or end so, and write no files: "+strings.Join(names(), ", "))
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if !slices.ContainsFunc(measurements(), func(m measurement) bool { return m.named(o.only) }) {
		return o, fmt.Errorf("there is no case %q: name one of %s", o.only, strings.Join(names(), ", "))
	}
	return o, nil
}

// named says whether the case is meant by names with commas between: its own, its language's or what it measures; none means all.
func (m *measurement) named(names string) bool {
	if names == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(names, ","), func(name string) bool {
		return name == m.name || strings.HasPrefix(m.name, name+"-") || strings.HasSuffix(m.name, "-"+name)
	})
}

func names() (all []string) {
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

const heading = "Forerun without speculation (--speculate off): the systems that it is compared with do not speculate, either."

func newBench(ctx context.Context, o options) (*bench, error) {
	folder, err := os.MkdirTemp("", "forerun-bench")
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, folder: folder, report: harness.Report{Title: heading, Machine: harness.Machine()}}
	b.report.Machine["quick"] = o.quick
	if err := b.start(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) start(ctx context.Context) (err error) {
	if b.disk, err = harness.OpenDisk(b.folder); err != nil {
		return err
	}
	if b.echo, err = harness.StartEcho(); err != nil {
		return err
	}
	o := inTurn(b.binary, filepath.Join(b.folder, "data"))
	o.Redis = true
	if b.server, err = server.Start(ctx, o); err != nil {
		return err
	}
	b.client = b.server.Client(64)
	return nil
}

// inTurn are the options of a server on which nothing runs ahead, as nothing does in the systems that it is compared with.
func inTurn(binary, data string, args ...string) server.Options {
	return server.Options{Binary: binary, Data: data, Args: append([]string{"--speculate", "off"}, args...)}
}

func (b *bench) close() {
	if b.client != nil {
		b.client.Close()
	}
	if b.server != nil {
		stop(b.server)
	}
	if b.echo != nil {
		b.echo.Stop()
	}
	if b.disk != nil {
		b.disk.Close()
	}
	_ = os.RemoveAll(b.folder)
}

// stop ends a server and tells if it did not end well.
func stop(s *server.Server) {
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// finish adds what was measured all along, prints the table and writes the files.
func (b *bench) finish() error {
	b.addMachineRows()
	if err := b.report.Table(os.Stdout); err != nil {
		return err
	}
	if low, high := b.echoed.Noise(); b.echoed.Count() > 0 {
		fmt.Printf("noise: the echo's median was between %.3f and %.3f ms in the rounds of this run\n", low, high)
	}
	if b.only != "" {
		return nil
	}
	if err := b.report.Write(b.out, "baseline"); err != nil {
		return err
	}
	written := []string{"baseline.json", "baseline-targets.svg"}
	for _, f := range b.figures {
		if err := harness.Distribution(b.out, "baseline-"+f.name, f.title, f.series...); err != nil {
			return err
		}
		written = append(written, "baseline-"+f.name+".svg")
	}
	if err := harness.Targets(b.out, "baseline-targets", "What is used of each bound", b.report.Rows); err != nil {
		return err
	}
	fmt.Printf("written to %s: %s\n", b.out, strings.Join(written, ", "))
	return nil
}

func (b *bench) addMachineRows() {
	if b.echoed.Count() > 0 {
		low, high := b.echoed.Noise()
		b.row(harness.Row{Case: "echo", Metric: "p50", Unit: "ms", Value: harness.Number(b.echoed.P50())})
		b.row(harness.Row{Case: "echo", Metric: "p99", Unit: "ms", Value: harness.Number(b.echoed.P99())})
		b.row(harness.Row{Case: "echo", Metric: "noise: spread of the rounds' p50", Unit: "ms", Value: harness.Number(high - low)})
	}
	if b.synced.Count() > 0 {
		b.row(harness.Row{Case: "fdatasync", Metric: "p50", Unit: "ms", Value: harness.Number(b.synced.P50())})
		b.row(harness.Row{Case: "fdatasync", Metric: "p99", Unit: "ms", Value: harness.Number(b.synced.P99())})
	}
}

func (b *bench) row(r harness.Row) { b.report.Rows = append(b.report.Rows, r) }

// latency adds the rows of a subject that was interleaved with a baseline; bound, if not empty, is the target of what its median
// takes beyond the baseline's.
func (b *bench) latency(name string, subject, baseline *harness.Sample, bound string) {
	over := subject.P50() - baseline.P50()
	b.beside(name, subject, baseline)
	b.row(harness.Row{Case: name, Metric: "p50 above the echo's", Unit: "ms", Value: harness.Number(over), Baseline: harness.Number(baseline.P50()), Target: harness.Text(bound)})
}

// beside adds the rows of the quantiles of two subjects that were interleaved.
func (b *bench) beside(name string, subject, baseline *harness.Sample) {
	b.row(harness.Row{Case: name, Metric: "p50", Unit: "ms", Value: harness.Number(subject.P50()), Baseline: harness.Number(baseline.P50()), Ratio: harness.Number(subject.P50() / baseline.P50())})
	b.row(harness.Row{Case: name, Metric: "p99", Unit: "ms", Value: harness.Number(subject.P99()), Baseline: harness.Number(baseline.P99()), Ratio: harness.Number(subject.P99() / baseline.P99())})
}

// figure returns the figure of a name, which the first who asks for it begins.
func (b *bench) figure(name, title string) *figure {
	for _, f := range b.figures {
		if f.name == name {
			return f
		}
	}
	f := &figure{name: name, title: title}
	b.figures = append(b.figures, f)
	return f
}

// count is how often to measure something.
func (b *bench) count(n int) int {
	if b.quick {
		return max(1, n/10)
	}
	return n
}

// lasting is how long to measure something.
func (b *bench) lasting(d time.Duration) time.Duration {
	if b.quick {
		return d / 4
	}
	return d
}

// progress tells a person at a terminal what is going on.
func (b *bench) progress(format string, args ...any) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}
}
