// Package microtasks measures the scheduler's policies on the distributed sort of the paper: servers that differ in --schedule alone, one run
// of each in turn. Objects are on a server with a set latency, so that reading and writing really wait.
package microtasks

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/workloads"
	"forerun.dev/forerun/test/server"
)

//go:embed sort.py
var sortCode string

// policies are what is compared: the first one is the baseline.
var policies = []string{"task", "oversubscribe", "microtask-static", "microtask", "auto"}

// settings are the shares of the time in which the processors are to be busy under task.
var settings = []float64{0.5, 0.25, 0.8}

// mappers are the activations of the first stage, and light the need of phases that read and write.
const (
	mappers = 48
	light   = 0.0625
)

// bench is one run.
type bench struct {
	binary, out string
	quick       bool
	folder      string // temporary, for all data
	records     int    // of each mapper
	checksum    uint64
	objects     *objects
	servers     map[string]*side
	report      harness.Report
}

// side is a server with one policy.
type side struct {
	*server.Server
	client *server.Client
}

// Run runs `bench microtasks`.
func Run(ctx context.Context, args []string) (err error) {
	b := &bench{servers: make(map[string]*side)}
	f := flag.NewFlagSet("bench microtasks", flag.ContinueOnError)
	f.StringVar(&b.binary, "binary", "bin/forerun", "the server's `PATH`")
	f.StringVar(&b.out, "out", "bench/out", "`FOLDER` for the table and its JSON")
	f.BoolVar(&b.quick, "quick", false, "three rounds on a third of the data")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	code, entered, err := workloads.Enter(ctx)
	if err != nil || !entered {
		if err == nil && code != 0 {
			err = fmt.Errorf("the benchmark in its network ended with the code %d", code)
		}
		return err
	}
	if b.folder, err = os.MkdirTemp("", "forerun-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder)
	if b.records = 240_000; b.quick {
		b.records /= 3
	}
	b.report.Title, b.report.Machine = "Microtasks: the policies of the scheduler on a distributed sort, interleaved", harness.Machine()
	b.report.Machine["quick"] = b.quick
	if err := b.prepare(ctx); err != nil {
		return err
	}
	defer b.stop()
	for _, busy := range settings {
		if err := b.measure(ctx, busy); err != nil {
			return fmt.Errorf("sort at %.0f%%: %w", 100*busy, err)
		}
	}
	if err := b.report.Write(b.out, "microtasks"); err != nil {
		return err
	}
	return b.report.Table(os.Stdout)
}

// prepare makes the input and starts the servers.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.objects, err = startObjects(); err != nil {
		return err
	}
	for i := range mappers {
		data := generate(uint64(i), b.records)
		b.checksum += sum(data)
		b.objects.put(fmt.Sprint("in/", i), data)
	}
	for _, policy := range policies {
		s, err := server.Start(ctx, server.Options{
			Binary: b.binary, Data: filepath.Join(b.folder, policy),
			Args: append([]string{"--schedule", policy, "--memory", "65536"}, workloads.ServerArguments()...),
		})
		if err != nil {
			b.stop()
			return err
		}
		side := &side{s, s.Client(mappers)}
		b.servers[policy] = side
		if err := side.client.Put(ctx, "sort", action()); err != nil {
			b.stop()
			return err
		}
		if _, err := b.sort(ctx, side); err != nil { // it loads the code as often as it is needed
			b.stop()
			return fmt.Errorf("%s: %w", policy, err)
		}
	}
	return nil
}

func (b *bench) stop() {
	for _, s := range b.servers {
		s.client.Close()
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	_ = b.objects.server.Close() // nothing is asked any more
}

// measure compares the policies at one setting: the latency is such that the processors are busy for that share of the time under task.
func (b *bench) measure(ctx context.Context, busy float64) error {
	b.objects.latency.Store(0)
	before := b.objects.requests.Load()
	base, err := b.sort(ctx, b.servers[policies[0]])
	if err != nil {
		return err
	}
	requests := b.objects.requests.Load() - before
	b.objects.latency.Store(int64(base.cpu * (1/busy - 1) / float64(requests) * float64(time.Second)))
	rounds := 10
	if b.quick {
		rounds = 3
	}
	runs := make(map[string][]outcome)
	for round := range rounds {
		for i := range policies {
			policy := policies[(round+i)%len(policies)]
			o, err := b.sort(ctx, b.servers[policy])
			if err != nil {
				return fmt.Errorf("%s: %w", policy, err)
			}
			runs[policy] = append(runs[policy], o)
			fmt.Fprintf(os.Stderr, "%s sort at %.0f%%, %s: %.2f s, lower bound %.2f s\n", time.Now().Format("15:04:05"), 100*busy, policy, o.makespan, o.bound())
		}
	}
	b.rows(fmt.Sprintf("sort at %.0f%%", 100*busy), busy, runs)
	return nil
}

// rows reports what was measured at one setting.
func (b *bench) rows(name string, busy float64, runs map[string][]outcome) {
	add := func(metric, unit string, value, baseline float64, target string) {
		row := harness.Row{Case: name, Metric: metric, Unit: unit, Value: harness.Number(value), Target: harness.Text(target)}
		if baseline > 0 {
			row.Baseline, row.Ratio = harness.Number(baseline), harness.Number(value/baseline)
		}
		b.report.Rows = append(b.report.Rows, row)
	}
	task := runs[policies[0]]
	add("processors busy under task", "%", 100*median(task, func(o outcome) float64 { return o.cpu / o.makespan / float64(runtime.NumCPU()) }), 0, "")
	add("lower bound", "s", median(task, outcome.bound), 0, "")
	makespan := func(o outcome) float64 { return o.makespan }
	for _, policy := range policies {
		add("makespan, "+policy, "s", median(runs[policy], makespan), median(task, makespan), "")
		if policy != policies[0] {
			add("write stage, "+policy, "s", median(runs[policy], outcome.write), median(task, outcome.write), "")
		}
	}
	ratio := func(policy, other string) float64 {
		return median(runs[policy], makespan) / median(runs[other], makespan)
	}
	against := ""
	if busy == 0.5 {
		against = "<=0.63"
	}
	add("makespan, microtask by task", "", ratio("microtask", "task"), 0, against)
	add("makespan, microtask by oversubscribe", "", ratio("microtask", "oversubscribe"), 0, "<=1.02")
	add("makespan, microtask by lower bound", "", median(runs["microtask"], func(o outcome) float64 { return o.makespan / o.bound() }), 0, "<=1.15")
}

// median is the median of a figure.
func median(runs []outcome, of func(outcome) float64) float64 {
	figures := make([]float64, len(runs))
	for i, o := range runs {
		figures[i] = of(o)
	}
	slices.Sort(figures)
	return (figures[len(figures)/2] + figures[(len(figures)-1)/2]) / 2
}

// action is the function, of which all that is in no phase does little.
func action() map[string]any {
	return map[string]any{
		"exec":        map[string]any{"kind": "python:3", "code": sortCode},
		"annotations": []any{map[string]any{"key": "microtasks", "value": map[string]any{"default": light}}},
	}
}

// isInput reports whether an object is an input.
func isInput(name string) bool { return strings.HasPrefix(name, "in/") }
