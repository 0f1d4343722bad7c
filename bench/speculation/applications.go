package speculation

import (
	"context"
	"iter"
	"sync/atomic"

	"forerun.dev/forerun/bench/workloads"
	"forerun.dev/forerun/test/server"
)

// drawing returns the requests of a stream.
type drawing func(a *workloads.Application, stream uint64) (iter.Seq[workloads.Request], error)

// usual has branches that the data do not decide go the usual way at the rate hits; few make mistakes, and theirs again and again.
func usual(hits float64) drawing {
	return func(a *workloads.Application, stream uint64) (iter.Seq[workloads.Request], error) {
		return a.Requests(stream, hits)
	}
}

// fresh has no mistake come twice, so that nothing but the rate hits can be learnt of them.
func fresh(hits float64) drawing {
	made := new(atomic.Int64)
	return func(a *workloads.Application, stream uint64) (iter.Seq[workloads.Request], error) {
		return a.FreshRequests(stream, hits, made)
	}
}

// applications are the paper's sixteen.
func applications(draw drawing, companies *workloads.Companies) ([]*subject, error) {
	all, err := workloads.Applications()
	if err != nil {
		return nil, err
	}
	var subjects []*subject
	for _, a := range all {
		subjects = append(subjects, &subject{
			slug: a.Slug, suite: a.Suite, action: a.Action(), want: "{", arguments: workloads.ServerArguments(),
			deploy: func(ctx context.Context, c *server.Client, s *server.Server) error {
				if err := workloads.SetupServer(ctx, s); err != nil {
					return err
				}
				return a.Deploy(ctx, c)
			},
			profile: func(ctx context.Context, c *server.Client, n int) (*workloads.Profile, error) {
				return a.Measure(ctx, c, companies, n)
			},
			inputs: func(stream uint64, n int) ([]any, error) {
				requests, err := draw(a, stream)
				if err != nil {
					return nil, err
				}
				var inputs []any
				for r := range requests {
					if len(inputs) == n {
						break
					}
					inputs = append(inputs, r)
				}
				return inputs, nil
			},
		})
	}
	return subjects, nil
}
