// Package cache measures the result cache with the three suites of HashCache's paper, each on servers with the cache on and off that are
// given the same requests in turn, and with single calls beside a plain echo and a warm native call. An oracle, which knows what each request
// reads and writes, tells how many activations a cache that is right could answer.
package cache

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/workloads"
	"forerun.dev/forerun/test/server"
)

// bench is one run.
type bench struct {
	binary, native, out string
	only                string
	quick               bool
	folder              string // temporary, for all data
	echo                *harness.EchoServer
	report              harness.Report
	started             int     // servers
	loadBefore          float64 // the load average when the run began
	ratios              []ratio
	loads               []*loaded
}

// side is a server.
type side struct {
	*server.Server
	client *server.Client
	door   *redis.Client
}

// Run runs `bench cache`.
func Run(ctx context.Context, args []string) (err error) {
	b := new(bench)
	f := flag.NewFlagSet("bench cache", flag.ContinueOnError)
	f.StringVar(&b.binary, "binary", "bin/forerun", "the server's `PATH`")
	f.StringVar(&b.native, "native", ".forerun/bench-native", "`PATH` of the compiled function")
	f.StringVar(&b.out, "out", "bench/out", "`FOLDER` for figures")
	f.StringVar(&b.only, "case", "", "measure some `CASES`, with commas between, and write no files: calls, trainticket, hotel, faasworkflow, clients, cost, writes, table, coverage")
	f.BoolVar(&b.quick, "quick", false, "measure less, for a rough look")
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
	if b.echo, err = harness.StartEcho(); err != nil {
		return err
	}
	defer b.echo.Stop()
	b.report.Title, b.report.Machine = "Known results: the cache on and off, interleaved", harness.Machine()
	b.report.Machine["quick"] = b.quick
	return b.measure(ctx)
}

// machineRows tell how busy other programs have kept the machine since a moment.
func (b *bench) machineRows(begin time.Time, usedBefore time.Duration) {
	used, _ := harness.MachineTime()
	others := (used - usedBefore - harness.TreeTime(os.Getpid())).Seconds() / time.Since(begin).Seconds()
	name := fmt.Sprintf("the machine, of %d processors", runtime.NumCPU())
	b.row(harness.Row{Case: name, Metric: "processors that other programs used", Value: harness.Number(max(0, others))})
	b.row(harness.Row{Case: name, Metric: "load average (baseline: when the run began)", Value: harness.Number(harness.LoadAverage()), Baseline: harness.Number(b.loadBefore)})
	b.row(harness.Row{Case: name, Metric: "time of the run", Unit: "min", Value: harness.Number(time.Since(begin).Minutes())})
}

// measurement is one case.
type measurement struct {
	name string
	run  func(context.Context) error
}

func (b *bench) measurements() []measurement {
	return []measurement{
		{"calls", b.calls},
		{"trainticket", b.suite(trainTicket)},
		{"hotel", b.suite(hotelReservation)},
		{"faasworkflow", b.suite(faasWorkflow)},
		{"clients", b.clients},
		{"cost", b.cost},
		{"writes", b.writes},
		{"table", b.table},
		{"coverage", b.coverage},
	}
}

func (b *bench) measure(ctx context.Context) error {
	begin := time.Now()
	used, _ := harness.MachineTime()
	b.loadBefore = harness.LoadAverage()
	wanted := strings.FieldsFunc(b.only, func(r rune) bool { return r == ',' })
	var names []string
	for _, m := range b.measurements() {
		names = append(names, m.name)
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no case %q: name some of %s", name, strings.Join(names, ", "))
		}
	}
	for _, m := range b.measurements() {
		if len(wanted) > 0 && !slices.Contains(wanted, m.name) {
			continue
		}
		b.progress("%s", m.name)
		if err := m.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	b.overall()
	b.machineRows(begin, used)
	if err := b.draw(b.figures); err != nil {
		return err
	}
	if len(wanted) == 0 {
		if err := b.report.Write(b.out, "cache"); err != nil {
			return err
		}
	}
	return b.report.Table(os.Stdout)
}

// draw draws figures, if all is measured.
func (b *bench) draw(figures func() error) error {
	if b.only != "" {
		return nil
	}
	return figures()
}

func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05")+" "+format+"\n", args...)
}

// start starts a server with data of its own.
func (b *bench) start(ctx context.Context, args ...string) (*side, error) {
	b.started++
	s, err := server.Start(ctx, server.Options{
		Binary: b.binary, Data: filepath.Join(b.folder, strconv.Itoa(b.started)), Redis: true,
		// Functions use a small part of their limits, and an open load may be more than a busy machine can serve.
		Args: append([]string{"--memory", "65536", "--concurrent-invocations", "none", "--queued-invocations", "none"}, args...),
	})
	if err != nil {
		return nil, err
	}
	return &side{s, s.Client(4), workloads.Door(s)}, nil
}

func (s *side) stop() {
	_ = s.door.Close() // it has written all
	s.client.Close()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// count is how often to measure something.
func (b *bench) count(n int) int {
	if b.quick {
		return n / 10
	}
	return n
}

// request invokes an action on an input.
func (s *side) request(action, input, want string, headers ...string) (*harness.Request, error) {
	return harness.NewRequest(s.client.URL+"/api/v1/namespaces/_/actions/"+action+"?blocking=true&result=true", s.client.Auth, input, want, headers...)
}

func (b *bench) quantiles(s, base *subject) {
	b.row(harness.Row{Case: s.name, Metric: "p50", Unit: "ms", Value: harness.Number(s.sample.P50()), Baseline: harness.Number(base.sample.P50()), Ratio: harness.Number(s.sample.P50() / base.sample.P50())})
	b.row(harness.Row{Case: s.name, Metric: "p99", Unit: "ms", Value: harness.Number(s.sample.P99()), Baseline: harness.Number(base.sample.P99()), Ratio: harness.Number(s.sample.P99() / base.sample.P99())})
}

func (b *bench) row(r harness.Row) { b.report.Rows = append(b.report.Rows, r) }
