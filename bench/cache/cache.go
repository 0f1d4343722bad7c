// Package cache measures what known results bring: the same server with its cache on and off, call by call, beside a plain echo and a warm
// native call. It measures no more than milliseconds of single clients; applications under load are not among its cases yet.
package cache

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
}

// side is a server with its cache on, or off.
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
	f.StringVar(&b.only, "case", "", "measure one `CASE`, and write no files: calls, gettickts")
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
	if b.echo, err = harness.StartEcho(); err != nil {
		return err
	}
	defer b.echo.Stop()
	b.report.Title, b.report.Machine = "Known results: the cache on and off, interleaved", harness.Machine()
	b.report.Machine["quick"] = b.quick
	return b.measure(ctx)
}

func (b *bench) measure(ctx context.Context) error {
	on, err := b.start(ctx, "on")
	if err != nil {
		return err
	}
	defer on.stop()
	off, err := b.start(ctx, "off")
	if err != nil {
		return err
	}
	defer off.stop()
	known := false
	for _, m := range []struct {
		name string
		run  func(context.Context, *side, *side) error
	}{{"calls", b.calls}, {"gettickts", b.tickets}} {
		if b.only != "" && b.only != m.name {
			continue
		}
		known = true
		fmt.Fprintln(os.Stderr, time.Now().Format("15:04:05"), m.name)
		if err := m.run(ctx, on, off); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if !known {
		return fmt.Errorf("there is no case %q: name calls or gettickts", b.only)
	}
	if b.only == "" {
		if err := b.report.Write(b.out, "cache"); err != nil {
			return err
		}
	}
	return b.report.Table(os.Stdout)
}

func (b *bench) start(ctx context.Context, cache string) (*side, error) {
	s, err := server.Start(ctx, server.Options{
		Binary: b.binary, Data: filepath.Join(b.folder, cache), Redis: true,
		Args: append([]string{"--cache", cache, "--memory", "65536"}, workloads.ServerArguments()...),
	})
	if err != nil {
		return nil, err
	}
	user, key, _ := strings.Cut(s.Auth, ":")
	return &side{s, s.Client(4), redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: key})}, nil
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

// calls are single functions, without speculation: a native one that is executed, and known ones that read no record, ten and a hundred.
func (b *bench) calls(ctx context.Context, on, _ *side) error {
	program, err := os.ReadFile(b.native)
	if err != nil {
		return fmt.Errorf("there is no native function: make bench-cache builds it: %w", err)
	}
	cached := []any{map[string]any{"key": "state_cache", "value": true}}
	native := map[string]any{"kind": "native", "code": base64.StdEncoding.EncodeToString(program)}
	reads := map[string]any{"kind": "python:3", "code": readsCode}
	for name, action := range map[string]map[string]any{
		"executed": {"exec": native}, "known": {"exec": native, "annotations": cached}, "reads": {"exec": reads, "annotations": cached},
	} {
		if err := on.client.Put(ctx, name, action); err != nil {
			return err
		}
	}
	plain, err := harness.NewRequest(b.echo.URL, "", input, sent)
	if err != nil {
		return err
	}
	all := []*subject{newSubject("echo", plain)}
	for _, s := range []struct{ name, action, input string }{
		{"native call", "executed", input},
		{"known call", "known", input},
		{"known call that read 10 records", "reads", `{"n":10,` + sent + `}`},
		{"known call that read 100 records", "reads", `{"n":100,` + sent + `}`},
	} {
		r, err := on.request(s.action, s.input, sent, "X-Forerun-Speculate", "off")
		if err != nil {
			return err
		}
		all = append(all, newSubject(s.name, r))
	}
	if err := interleave(ctx, b.count(4000), all...); err != nil {
		return err
	}
	echo, known := all[0], all[2]
	for i, target := range []string{"", "", "<=2.5", "", ""} {
		if i == 0 {
			continue
		}
		b.quantiles(all[i], echo)
		ratio := all[i].sample.P50() / echo.sample.P50()
		b.row(harness.Row{Case: all[i].name, Metric: "p50 beside the echo's", Unit: "x", Value: harness.Number(ratio), Target: harness.Text(target)})
	}
	b.row(harness.Row{Case: known.name, Metric: "p50 above the echo's", Unit: "ms", Value: harness.Number(known.sample.P50() - echo.sample.P50()), Target: harness.Text("<=0.25")})
	for i, target := range map[int]string{3: "<=1.1", 4: "<=1.5"} {
		b.row(harness.Row{Case: all[i].name, Metric: "p50 beside that of a known call without reads", Unit: "x", Value: harness.Number(all[i].sample.P50() / known.sample.P50()), Target: harness.Text(target)})
	}
	return nil
}

// Parts of the requests to single functions, and of each answer.
const (
	sent  = `"x":1`
	input = "{" + sent + "}"
)

const readsCode = `
import os, redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2, driver_info=None)

def main(args):
    state.mget([f"read:{i}" for i in range(args["n"])])
    return args
`

// tickets is GetTickts once each input was seen, with speculation off and on, and with one write of what it reads between any 50 requests.
func (b *bench) tickets(ctx context.Context, on, off *side) error {
	app, err := workloads.GetTickts()
	if err != nil {
		return err
	}
	searches, err := workloads.Searches()
	if err != nil {
		return err
	}
	searches = searches[:max(20, b.count(len(searches)))]
	for _, s := range []*side{on, off} {
		if err := workloads.Setup(ctx, s.door); err != nil {
			return err
		}
		if err := app.DeployCached(ctx, s.client); err != nil {
			return err
		}
		if err := s.warm(ctx, app.Action(), searches[0]); err != nil {
			return err
		}
	}
	for _, mode := range []string{"off", "all"} {
		var pair []*subject
		for name, s := range map[string]*side{"on": on, "off": off} {
			var requests []*harness.Request
			for _, search := range searches {
				body, err := json.Marshal(search)
				if err != nil {
					return err
				}
				r, err := s.request(app.Action(), string(body), `"tickets"`, "X-Forerun-Speculate", mode)
				if err != nil {
					return err
				}
				requests = append(requests, r)
			}
			one := newSubject("GetTickts, speculation "+mode, requests...)
			one.before = s.write
			if name == "on" {
				pair = append([]*subject{one}, pair...)
			} else {
				pair = append(pair, one)
			}
		}
		if err := interleave(ctx, max(10*len(searches), b.count(4000)), pair...); err != nil {
			return err
		}
		b.compare(pair[0], pair[1])
	}
	return nil
}

// warm invokes an application until it succeeds: on a busy machine its first cold starts, one after the other, may exceed its time limit.
func (s *side) warm(ctx context.Context, action string, input any) error {
	var record *server.Record
	for range 5 {
		var err error
		if record, err = s.client.Invoke(ctx, action, input); err == nil && record.Response.Success {
			return nil
		} else if ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not succeed: %+v", action, record)
}

// write has another client change the free seats of a layout now and then, which each fiftieth request may have read.
func (s *side) write(ctx context.Context, turn int) error {
	if turn%50 != 49 {
		return nil
	}
	return s.door.HSet(ctx, "answers:layout", "UA", turn%90).Err()
}

// compare adds the rows of one subject with the cache on and off.
func (b *bench) compare(on, off *subject) {
	b.quantiles(on, off)
	mean := on.mean() / off.mean()
	b.row(harness.Row{Case: on.name, Metric: "mean", Unit: "ms", Value: harness.Number(on.mean()), Baseline: harness.Number(off.mean()), Ratio: harness.Number(mean), Paper: harness.Number(119.0 / 1701)})
	b.row(harness.Row{Case: on.name, Metric: "mean beside the cache off", Unit: "x", Value: harness.Number(mean), Paper: harness.Number(119.0 / 1701), Target: harness.Text("<=0.03")})
	p99 := on.sample.P99() / off.sample.P99()
	b.row(harness.Row{Case: on.name, Metric: "p99 beside the cache off", Unit: "x", Value: harness.Number(p99), Paper: harness.Number(2300.0 / 7800), Target: harness.Text("<=0.05")})
}

func (b *bench) quantiles(s, base *subject) {
	b.row(harness.Row{Case: s.name, Metric: "p50", Unit: "ms", Value: harness.Number(s.sample.P50()), Baseline: harness.Number(base.sample.P50()), Ratio: harness.Number(s.sample.P50() / base.sample.P50())})
	b.row(harness.Row{Case: s.name, Metric: "p99", Unit: "ms", Value: harness.Number(s.sample.P99()), Baseline: harness.Number(base.sample.P99()), Ratio: harness.Number(s.sample.P99() / base.sample.P99())})
}

func (b *bench) row(r harness.Row) { b.report.Rows = append(b.report.Rows, r) }
