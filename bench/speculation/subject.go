package speculation

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/workloads"
	"forerun.dev/forerun/test/server"
)

// subject is an application that is measured.
type subject struct {
	slug  string
	suite string
	bound float64 // the speedup that Amdahl's law leaves; 0: profile tells, or it is not known
	// profile, if there is one, measures what its functions do on n requests; the actions are to be deployed again.
	profile func(ctx context.Context, c *server.Client, n int) (*workloads.Profile, error)
	cpu     bool // its functions work and do not wait
	// deploy puts its actions on a server, and whatever state they need.
	deploy func(ctx context.Context, c *server.Client, s *server.Server) error
	action string
	// inputs are those of the first n requests of a stream.
	inputs    func(stream uint64, n int) ([]any, error)
	want      string   // is part of each right answer
	arguments []string // of the server
	// settings are added to the header that asks for a mode.
	settings string
}

// modes are those that are compared, the baseline first.
func modes() []string { return []string{"off", "branches", "all"} }

// In these modes a squash ends the sandbox, as in the paper without its last step. They are measured at the first load only.
const (
	naiveBranches = "branches; squash=sandbox"
	naive         = "all; squash=sandbox"
)

// naiveModes are those of them that tell something of an application. Where functions call one another, branches alone do not.
func (s *subject) naiveModes() []string {
	switch {
	case s.suite == suites()[0].name:
		return []string{naiveBranches, naive}
	case slices.ContainsFunc(suites(), func(one suite) bool { return one.name == s.suite }):
		return []string{naive}
	}
	return nil
}

// anyLoad is added to settings where all is to run ahead that may, however busy the processors are.
const anyLoad = "; load=any"

func isNaive(mode string) bool { return mode == naive || mode == naiveBranches }

// again is the baseline once more, as if it were a mode: by how much it differs from itself is the machine's noise.
const again = "again"

// started is a subject on a server of its own.
type started struct {
	*subject
	server  *server.Server
	client  *server.Client
	clients *clients
}

func (b *bench) start(ctx context.Context, s *subject) (*started, error) {
	running, err := server.Start(ctx, server.Options{
		Binary: b.binary, Data: filepath.Join(b.folder, s.slug), Redis: true,
		Args: append([]string{"--speculate", naive + anyLoad, "--memory", "65536"}, s.arguments...), // functions use a small part of their limits
	})
	if err != nil {
		return nil, err
	}
	on := &started{subject: s, server: running, client: running.Client(4), clients: new(clients)}
	if err := s.deploy(ctx, on.client, running); err != nil {
		on.stop(b)
		return nil, err
	}
	return on, nil
}

func (s *started) stop(b *bench) {
	s.clients.close()
	s.client.Close()
	if err := s.server.Stop(); err != nil {
		b.progress("%v", err)
	}
}

// requests are the first n requests of a stream, to be executed in a mode.
func (s *started) requests(stream uint64, n int, mode string) ([]*harness.Request, error) {
	inputs, err := s.inputs(stream, n)
	if err != nil {
		return nil, err
	}
	if mode == again {
		mode = modes()[0]
	}
	all := make([]*harness.Request, n)
	for i, input := range inputs {
		body, err := json.Marshal(input)
		if err != nil {
			return nil, err
		}
		target := s.client.URL + "/api/v1/namespaces/_/actions/" + s.action + "?blocking=true&result=true"
		all[i], err = harness.NewRequest(target, s.client.Auth, string(body), s.want, "X-Forerun-Speculate", mode+s.settings)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// flood keeps n requests of a stream under way for a time.
func (s *started) flood(ctx context.Context, n int, stream uint64, mode string, d time.Duration) (*answered, error) {
	requests, err := s.requests(stream, 500, mode)
	if err != nil {
		return nil, err
	}
	a, err := s.clients.closed(ctx, n, 0, d, requests)
	if err != nil {
		return nil, fmt.Errorf("%d at a time, %s: %w", n, mode, err)
	}
	return a, nil
}
