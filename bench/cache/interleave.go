package cache

import (
	"context"
	"fmt"

	"forerun.dev/forerun/bench/harness"
)

// subject is what is called, again and again with its requests in turn.
type subject struct {
	name     string
	requests []*harness.Request
	conn     *harness.Connection
	sample   harness.Sample
}

func newSubject(name string, requests ...*harness.Request) *subject {
	return &subject{name: name, requests: requests}
}

// rounds are how many parts a sample has.
const rounds = 20

// unasked are the calls of single requests that are not counted, before those that are.
const unasked = 5

// interleave calls each subject n times in all.
func interleave(ctx context.Context, n int, subjects ...*subject) error {
	return interleaved(ctx, n, unasked, subjects...)
}

// interleaved calls each subject n times, after some calls that are not counted. Which subject comes first changes from turn to turn.
func interleaved(ctx context.Context, n, before int, subjects ...*subject) (err error) {
	for _, s := range subjects {
		if s.conn, err = s.requests[0].Connect(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		defer s.conn.Close()
		for i := range before {
			if _, err := s.call(ctx, i); err != nil {
				return err
			}
		}
	}
	for turn := range n {
		for i := range subjects {
			s := subjects[(turn+i)%len(subjects)]
			if turn%max(1, n/rounds) == 0 {
				s.sample.Round()
			}
			took, err := s.call(ctx, turn)
			if err != nil {
				return err
			}
			s.sample.AddMilliseconds(took)
		}
	}
	return nil
}

// call sends the request of a turn, and returns the milliseconds until its answer.
func (s *subject) call(ctx context.Context, turn int) (float64, error) {
	took, err := s.conn.Send(ctx, s.requests[turn%len(s.requests)])
	if err != nil {
		return 0, fmt.Errorf("a call of %s: %w", s.name, err)
	}
	return took.Seconds() * 1000, nil
}

// mean is the mean time in milliseconds.
func (s *subject) mean() float64 {
	sum := 0.0
	for _, ms := range s.sample.All() {
		sum += ms
	}
	return sum / float64(s.sample.Count())
}
