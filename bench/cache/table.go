package cache

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// filling is how many clients fill a table.
const filling = 8

// fill invokes an action on n inputs.
func (s *side) fill(ctx context.Context, action string, n int, input func(i int) string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var next atomic.Int64
	for range filling {
		all.Go(func() {
			var conn *harness.Connection
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				r, err := s.request(action, input(int(i)), "{")
				if err == nil && conn == nil {
					if conn, err = r.Connect(ctx); err == nil {
						defer conn.Close()
					}
				}
				if err == nil {
					_, err = conn.Send(ctx, r)
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// table measures the server's memory when its table is at its bound, and what another tenant's inputs do to a tenant's hits.
func (b *bench) table(ctx context.Context) error {
	if err := b.bytes(ctx); err != nil {
		return err
	}
	return b.tenants(ctx)
}

// bytes compares the memory of two servers after the same calls: one has a table at its bound, the other has no table.
func (b *bench) bytes(ctx context.Context) error {
	mebibytes := 256
	if b.quick {
		mebibytes = 48
	}
	const size = 8 << 10 // of an output
	long := strings.Repeat("x", size)
	var resident []float64
	var told float64
	for _, cache := range []string{"off", "on"} {
		s, err := b.start(ctx, "--speculate", "off", "--cache", cache, "--cache-rows", "1000000", "--cache-megabytes", strconv.Itoa(mebibytes))
		if err != nil {
			return err
		}
		defer s.stop()
		if err := b.deploySingles(ctx, s); err != nil {
			return err
		}
		if err := s.fill(ctx, "known", mebibytes<<20/size*5/4, func(i int) string { return fmt.Sprintf(`{"n":%d,"long":"%s"}`, i, long) }); err != nil {
			return err
		}
		if told, err = s.metric(ctx, "forerun_cache_bytes"); err != nil {
			return err
		}
		resident = append(resident, harness.ResidentKiB(strconv.Itoa(s.PID()))/1024)
	}
	told /= 1 << 20
	name := fmt.Sprintf("a table at its bound of %d MiB", mebibytes)
	b.row(harness.Row{Case: name, Metric: "bytes of the table, as it says", Unit: "MiB", Value: harness.Number(told)})
	b.row(harness.Row{Case: name, Metric: "resident memory of the server (cache off)", Unit: "MiB", Value: harness.Number(resident[1]), Baseline: harness.Number(resident[0])})
	b.row(harness.Row{Case: name, Metric: "difference beside what the table says", Unit: "x", Value: harness.Number((resident[1] - resident[0]) / told), Target: harness.Text("<=1.15")})
	return nil
}

// tenants measures a tenant's hits before and after another tenant's distinct inputs.
func (b *bench) tenants(ctx context.Context) error {
	s, err := b.start(ctx, "--speculate", "off")
	if err != nil {
		return err
	}
	defer s.stop()
	if err := b.deploySingles(ctx, s); err != nil {
		return err
	}
	other, err := b.otherTenant(ctx, s.Server, s.client)
	if err != nil {
		return err
	}
	distinct, hits := 1_000_000, 20_000
	if b.quick {
		distinct, hits = 15_000, 2000
	}
	var before, after harness.Sample
	for _, sample := range []*harness.Sample{&before, &after} {
		if sample == &after {
			begin := time.Now()
			if err := s.fill(ctx, "known", distinct, func(i int) string { return fmt.Sprintf(`{"n":%d}`, i) }); err != nil {
				return err
			}
			b.progress("%d distinct inputs in %v", distinct, time.Since(begin).Round(time.Second))
		}
		conn, err := other.Connect(ctx)
		if err != nil {
			return err
		}
		for i := range hits {
			took, err := conn.Call(ctx)
			if err != nil {
				return err
			}
			if i >= hits/10 { // the first makes it known
				sample.Add(took)
			}
		}
		conn.Close()
	}
	name := fmt.Sprintf("a tenant's hits after another tenant's %d distinct inputs", distinct)
	b.row(harness.Row{Case: name, Metric: "p50", Unit: "ms", Value: harness.Number(after.P50()), Baseline: harness.Number(before.P50()), Ratio: harness.Number(after.P50() / before.P50())})
	b.row(harness.Row{Case: name, Metric: "slowest", Unit: "ms", Value: harness.Number(after.Quantile(1)), Baseline: harness.Number(before.Quantile(1))})
	b.row(harness.Row{Case: name, Metric: "p99 beside before", Unit: "x", Value: harness.Number(after.P99() / before.P99()), Target: harness.Text("<=1.2")})
	return nil
}

// otherTenant makes a tenant with a known function, and returns the request for it.
func (b *bench) otherTenant(ctx context.Context, s *server.Server, client *server.Client) (*harness.Request, error) {
	other, err := harness.NewTenant(ctx, s, client, "other")
	if err != nil {
		return nil, err
	}
	known, err := b.nativeAction(annotated())
	if err != nil {
		return nil, err
	}
	if err := other.Put(ctx, "known", known); err != nil {
		return nil, err
	}
	return (&side{client: other}).request("known", input, sent)
}
