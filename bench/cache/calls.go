package cache

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"

	"forerun.dev/forerun/bench/harness"
)

// Parts of the requests to single functions, and of each answer.
const (
	sent  = `"x":1`
	input = "{" + sent + "}"
)

// readsCode reads records, whose number the input has.
const readsCode = `
import os, redis

state = redis.Redis.from_url(os.environ["REDIS_URL"], protocol=2, driver_info=None)

def main(args):
    state.mget([f"read:{i}" for i in range(args["n"])])
    return args
`

// annotated are the annotations of a function whose results are kept, and stand at once.
func annotated() []any {
	return []any{map[string]any{"key": "state_cache", "value": true}, map[string]any{"key": "cache-verify", "value": 0}}
}

// nativeAction is the compiled function, which answers its input.
func (b *bench) nativeAction(annotations []any) (map[string]any, error) {
	program, err := os.ReadFile(b.native)
	if err != nil {
		return nil, fmt.Errorf("there is no native function: make bench-cache builds it: %w", err)
	}
	return map[string]any{"exec": map[string]any{"kind": "native", "code": base64.StdEncoding.EncodeToString(program)}, "annotations": annotations}, nil
}

// steps is how many functions the known sequence has.
const steps = 10

// deploySingles deploys native functions, "executed" and, with kept results, "known" and the steps of "sequence"; and "reads".
func (b *bench) deploySingles(ctx context.Context, on *side) error {
	executed, err := b.nativeAction(nil)
	if err != nil {
		return err
	}
	known, err := b.nativeAction(annotated())
	if err != nil {
		return err
	}
	actions := map[string]map[string]any{
		"executed": executed, "known": known,
		"reads": {"exec": map[string]any{"kind": "python:3", "code": readsCode}, "annotations": annotated()},
	}
	var all []string
	for i := range steps {
		name := fmt.Sprintf("step%d", i)
		all, actions[name] = append(all, name), known
	}
	for name, action := range actions {
		if err := on.client.Put(ctx, name, action); err != nil {
			return err
		}
	}
	return on.client.PutSequence(ctx, "sequence", all...)
}

// calls are single functions, without speculation: a native one that is executed; known ones that read no record, ten and a hundred; a
// sequence of known ones.
func (b *bench) calls(ctx context.Context) error {
	on, err := b.start(ctx, "--speculate", "off")
	if err != nil {
		return err
	}
	defer on.stop()
	if err := b.deploySingles(ctx, on); err != nil {
		return err
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
		{"known sequence of ten", "sequence", input},
	} {
		r, err := on.request(s.action, s.input, sent)
		if err != nil {
			return err
		}
		all = append(all, newSubject(s.name, r))
	}
	if err := interleave(ctx, b.count(4000), all...); err != nil {
		return err
	}
	echo, known := all[0], all[2]
	for _, s := range all[1:] {
		b.quantiles(s, echo)
	}
	b.quotient(known, echo, "p50 beside the echo's", "<=2.5")
	b.row(harness.Row{Case: known.name, Metric: "p50 above the echo's", Unit: "ms", Value: harness.Number(known.sample.P50() - echo.sample.P50()), Target: harness.Text("<=0.25")})
	b.quotient(all[3], known, "p50 beside that of a known call without reads", "<=1.1")
	b.quotient(all[4], known, "p50 beside that of a known call without reads", "<=1.5")
	b.row(harness.Row{Case: all[5].name, Metric: "p50 above the echo's", Unit: "ms", Value: harness.Number(all[5].sample.P50() - echo.sample.P50()), Target: harness.Text("<=1")})
	return nil
}

// quotient adds the median of a subject beside another's, with the quartiles of the rounds.
func (b *bench) quotient(s, base *subject, metric, target string) {
	b.row(harness.Row{Case: s.name, Metric: metric, Unit: "x", Value: harness.Number(s.sample.P50() / base.sample.P50()), Target: harness.Text(target)})
	lower, _, upper := harness.Ratios(&s.sample, &base.sample)
	b.row(harness.Row{Case: s.name, Metric: metric + ": lower quartile of the rounds", Unit: "x", Value: harness.Number(lower)})
	b.row(harness.Row{Case: s.name, Metric: metric + ": upper quartile of the rounds", Unit: "x", Value: harness.Number(upper)})
}
