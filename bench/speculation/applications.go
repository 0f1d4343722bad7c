package speculation

import (
	"context"

	"forerun.dev/forerun/bench/workloads"
	"forerun.dev/forerun/test/server"
)

// applications are the paper's sixteen. Branches that the data do not decide go the usual way at the rate hits.
func applications(hits float64, companies *workloads.Companies) ([]*subject, error) {
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
				requests, err := a.Requests(stream, hits)
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
