package baseline

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/bench/harness"
)

//go:embed get.py
var getProgram string

// getTimes is what get.py returns.
type getTimes struct {
	Times  []float64 `json:"times"`  // microseconds
	Python string    `json:"python"` // the interpreter's path
}

// measureGet runs the same loop of GETs in a function and outside, against a local redis-server, in turn.
func measureGet(ctx context.Context, b *bench) error {
	if err := b.client.PutPython(ctx, "get", getProgram); err != nil {
		return err
	}
	var first getTimes
	if err := b.client.Result(ctx, "get", map[string]int{"count": 1}, &first); err != nil {
		return err
	}
	r, err := harness.StartRedis(ctx, b.folder, false)
	if err != nil {
		return err
	}
	defer r.Stop()
	outside, err := startProgram(first.Python, b.packages, r.Address)
	if err != nil {
		return err
	}
	defer outside.stop()
	return b.compareGets(ctx, outside)
}

func (b *bench) compareGets(ctx context.Context, outside *program) error {
	var inside, plain harness.Sample
	input := map[string]int{"count": 200}
	for range b.count(30) {
		var within getTimes
		if err := b.client.Result(ctx, "get", input, &within); err != nil {
			return err
		}
		without, err := outside.measure(input)
		if err != nil {
			return err
		}
		inside.Round()
		plain.Round()
		for i := range within.Times {
			inside.AddMilliseconds(within.Times[i] / 1000)
			plain.AddMilliseconds(without.Times[i] / 1000)
		}
	}
	const name, us = "redis-py GET inside a function", 1000
	b.row(harness.Row{Case: name, Metric: "p50", Unit: "us", Value: harness.Number(us * inside.P50()), Baseline: harness.Number(us * plain.P50()), Ratio: harness.Number(inside.P50() / plain.P50())})
	b.row(harness.Row{Case: name, Metric: "p99", Unit: "us", Value: harness.Number(us * inside.P99()), Baseline: harness.Number(us * plain.P99()), Ratio: harness.Number(inside.P99() / plain.P99())})
	b.row(harness.Row{Case: name, Metric: "p50 above the same against a local redis-server", Unit: "us", Value: harness.Number(us * (inside.P50() - plain.P50())), Baseline: harness.Number(us * plain.P50()), Target: harness.Text("<=30")})
	return nil
}

// program is get.py running outside of Forerun.
type program struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	file   string
}

func startProgram(python, packages, address string) (*program, error) {
	file, err := os.CreateTemp("", "forerun-get-*.py")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.WriteString(getProgram); err != nil {
		return nil, err
	}
	p := &program{cmd: exec.Command(python, "-B", file.Name()), file: file.Name()}
	p.cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "REDIS_URL=redis://"+address+"/0")
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdout = bufio.NewReader(stdout)
	return p, p.cmd.Start()
}

func (p *program) measure(input any) (*getTimes, error) {
	if err := json.NewEncoder(p.stdin).Encode(input); err != nil {
		return nil, err
	}
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the program outside ended: %w", err)
	}
	times := new(getTimes)
	return times, json.Unmarshal(line, times)
}

func (p *program) stop() {
	p.stdin.Close()
	_ = p.cmd.Wait() // its failure showed when it was asked
	_ = os.Remove(p.file)
}

const writers = 64

// measureSet counts durable SETs in rounds, beside a redis-server that also syncs each write before its answer.
func measureSet(ctx context.Context, b *bench) error {
	user, key, _ := strings.Cut(b.server.Auth, ":")
	ours := redis.NewClient(&redis.Options{Addr: b.server.Redis, Username: user, Password: key, PoolSize: writers})
	defer ours.Close()
	r, err := harness.StartRedis(ctx, b.folder, true)
	if err != nil {
		return err
	}
	defer r.Stop()
	theirs := redis.NewClient(&redis.Options{Addr: r.Address, PoolSize: writers})
	defer theirs.Close()
	var subject, plain, times harness.Sample
	for range 4 {
		rate, err := writeAll(ctx, theirs, b.lasting(time.Second), new(harness.Sample))
		if err != nil {
			return fmt.Errorf("redis-server: %w", err)
		}
		plain.AddMilliseconds(rate)
		if rate, err = writeAll(ctx, ours, b.lasting(2*time.Second), &times); err != nil {
			return err
		}
		subject.AddMilliseconds(rate)
		if err := b.sync(); err != nil {
			return err
		}
	}
	b.row(harness.Row{
		Case: "durable SET from 64 connections", Metric: "SETs, median of four rounds", Unit: "1/s", Value: harness.Number(subject.P50()),
		Baseline: harness.Number(plain.P50()), Ratio: harness.Number(subject.P50() / plain.P50()), Target: harness.Text(">=10000"),
	})
	b.row(harness.Row{Case: "durable SET from 64 connections", Metric: "p50", Unit: "ms", Value: harness.Number(times.P50())})
	b.row(harness.Row{Case: "durable SET from 64 connections", Metric: "p99", Unit: "ms", Value: harness.Number(times.P99())})
	return nil
}

// writeAll has 64 writers set keys as fast as they are answered. It returns the SETs per second and adds their times.
func writeAll(ctx context.Context, c *redis.Client, d time.Duration, times *harness.Sample) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var count atomic.Int64
	var mu sync.Mutex // guards times
	var all sync.WaitGroup
	begin := time.Now()
	for w := range writers {
		all.Go(func() {
			var own []time.Duration
			for i := 0; time.Since(begin) < d && ctx.Err() == nil; i++ {
				start := time.Now()
				if err := c.Set(ctx, "bench:"+strconv.Itoa(w)+":"+strconv.Itoa(i%1000), trivial, 0).Err(); err != nil {
					cancel(err)
					return
				}
				own = append(own, time.Since(start))
			}
			count.Add(int64(len(own)))
			mu.Lock()
			defer mu.Unlock()
			for _, t := range own {
				times.Add(t)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	return float64(count.Load()) / time.Since(begin).Seconds(), nil
}
