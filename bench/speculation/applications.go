package speculation

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/bench/workloads"
	"forerun.dev/forerun/test/server"
)

// applications are the paper's sixteen. Branches that the data do not decide go the usual way at the rate hits.
func applications(hits float64) ([]*subject, error) {
	all, err := workloads.Applications()
	if err != nil {
		return nil, err
	}
	var subjects []*subject
	for _, a := range all {
		subjects = append(subjects, &subject{
			slug: a.Slug, suite: a.Suite, action: a.Action(), want: "{", arguments: workloads.ServerArguments(),
			deploy: func(ctx context.Context, c *server.Client, s *server.Server) error {
				if err := setUp(ctx, s); err != nil {
					return err
				}
				return a.Deploy(ctx, c)
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

// setUp writes the state that the applications start with.
func setUp(ctx context.Context, s *server.Server) error {
	user, password, _ := strings.Cut(s.Auth, ":")
	door := redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: password, Protocol: 2})
	defer door.Close()
	return workloads.Setup(ctx, door)
}
