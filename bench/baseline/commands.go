package baseline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/bench/harness"
)

// neighbour is what each of four connections of a tenant executes again and again on its state.
type neighbour struct {
	name    string
	prepare func(ctx context.Context, r *redis.Client) error
	execute func(ctx context.Context, r *redis.Client) error
}

// neighbours compute in the server, with a command that takes some 100 ms and with one that reads much.
func neighbours() []neighbour {
	return []neighbour{
		{
			"LCS of two strings of 4 kB",
			func(ctx context.Context, r *redis.Client) error {
				return r.MSet(ctx, "a", strings.Repeat("abcdefgh", 500), "b", strings.Repeat("hgfedcba", 500)).Err()
			},
			func(ctx context.Context, r *redis.Client) error { return r.Do(ctx, "LCS", "a", "b", "LEN").Err() },
		},
		{
			"BITCOUNT of 16 MB",
			func(ctx context.Context, r *redis.Client) error {
				return r.Set(ctx, "bits", bytes.Repeat([]byte{0x5a}, 16<<20), 0).Err()
			},
			func(ctx context.Context, r *redis.Client) error { return r.BitCount(ctx, "bits", nil).Err() },
		},
	}
}

// measureCommands calls a function of one tenant. It does so alone, beside commands of another tenant on four connections to its state, and beside
// a program that computes on one processor. The commands take the server's processors. The program shows what the loss of one processor costs.
func measureCommands(ctx context.Context, b *bench) error {
	callers, err := b.calmCallers(ctx, "calm")
	if err != nil {
		return err
	}
	defer disconnect(callers)
	user, key, _ := strings.Cut(b.server.Auth, ":")
	const connections = 4
	r := redis.NewClient(&redis.Options{Addr: b.server.Redis, Username: user, Password: key, PoolSize: connections, MaxRetries: -1, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	defer r.Close()
	for _, n := range neighbours() {
		if err := n.prepare(ctx, r); err != nil {
			return err
		}
		if err := b.compareBeside(ctx, callers[0], n, r, connections); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) compareBeside(ctx context.Context, calm *caller, n neighbour, r *redis.Client, connections int) error {
	var alone, beside, besideProgram, warm quietly
	var rates harness.Sample
	round := b.lasting(4 * time.Second)
	for range 5 {
		if err := calm.during(ctx, round, &alone); err != nil {
			return err
		}
		if err := calm.duringProgram(ctx, round, &besideProgram); err != nil {
			return err
		}
		stop := n.begin(ctx, r, connections)
		err := calm.during(ctx, round/4, &warm)
		if err == nil {
			err = calm.during(ctx, round, &beside)
		}
		rate, failed := stop()
		rates.AddMilliseconds(rate)
		if err := errors.Join(err, failed); err != nil {
			return err
		}
	}
	name := "a call beside another tenant's four connections with " + n.name
	b.beside(name, &beside.all, &alone.all)
	for _, row := range []struct {
		metric, unit, bound string
		value               float64
	}{
		{"p50 in terms of that without", "x", "<=2", beside.all.P50() / alone.all.P50()},
		{"the same, calls that no other program disturbed", "x", "", beside.quiet.P50() / alone.quiet.P50()},
		{"p50 beside a program that computes on one processor, in terms of that without", "x", "", besideProgram.all.P50() / alone.all.P50()},
		{"rounds of the four connections, median of five", "1/s", "", rates.P50()},
	} {
		b.row(harness.Row{Case: name, Metric: row.metric, Unit: row.unit, Value: harness.Number(row.value), Target: harness.Text(row.bound)})
	}
	return nil
}

// during calls again and again for a while.
func (c *caller) during(ctx context.Context, d time.Duration, into *quietly) error {
	foreign := harness.FindForeign(os.Getpid())
	for begin := time.Now(); time.Since(begin) < d; time.Sleep(rest) {
		if err := into.call(ctx, c, foreign); err != nil {
			return err
		}
	}
	return nil
}

// duringProgram calls again and again while a program computes on one processor.
func (c *caller) duringProgram(ctx context.Context, d time.Duration, into *quietly) error {
	program, err := harness.StartProcess(exec.CommandContext(ctx, "sh", "-c", "while :; do :; done"))
	if err != nil {
		return err
	}
	defer program.Stop()
	return c.during(ctx, d, into)
}

// begin has connections execute the neighbour's commands until stop, which tells how often in a second.
func (n *neighbour) begin(ctx context.Context, r *redis.Client, connections int) (stop func() (rate float64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex // guards count and failed
	var count int
	var failed error
	var working sync.WaitGroup
	begin := time.Now()
	for range connections {
		working.Go(func() {
			for ctx.Err() == nil {
				err := n.execute(ctx, r)
				mu.Lock()
				count++
				if err != nil && ctx.Err() == nil {
					failed = err
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	return func() (float64, error) {
		cancel()
		working.Wait()
		return float64(count) / time.Since(begin).Seconds(), failed
	}
}
