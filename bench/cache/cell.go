package cache

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// cell is a suite on a server of its own, with the cache on or off, and with speculation on or off.
type cell struct {
	*side
	cache, speculate string // on or off; off or all
	oracle           *oracle
	idle             harness.Idle
}

// cellOf starts a server with a suite's functions and state.
func (b *bench) cellOf(ctx context.Context, s *suite, cache, speculate string) (*cell, error) {
	on, err := b.start(ctx, "--cache", cache, "--speculate", speculate)
	if err != nil {
		return nil, err
	}
	c := &cell{side: on, cache: cache, speculate: speculate, oracle: newOracle()}
	if err := c.prepare(ctx, s); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *cell) prepare(ctx context.Context, s *suite) error {
	if err := s.setup(ctx, c.door); err != nil {
		return err
	}
	for _, a := range s.code {
		if err := a.DeployCached(ctx, c.client); err != nil {
			return err
		}
	}
	return nil
}

func (c *cell) stop() {
	c.idle.Close()
	c.side.stop()
}

// send sends a request. It returns the answer, and the time until it came.
func (c *cell) send(ctx context.Context, a ask) ([]byte, time.Duration, error) {
	r, err := c.request(a.action, text(a.input), "{")
	if err != nil {
		return nil, 0, err
	}
	conn, err := c.idle.Take(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	took, err := conn.Send(ctx, r)
	if err != nil {
		conn.Close()
		return nil, 0, fmt.Errorf("%s with the cache %s and speculation %s: %w", a.app, c.cache, c.speculate, err)
	}
	answer := bytes.Clone(conn.Answer())
	c.idle.Give(conn)
	return answer, took, nil
}

// replay sends what a script sends, has the oracle play it, and tells of each request its application, answer and time.
func (c *cell) replay(ctx context.Context, s script, tell func(app string, answer []byte, took time.Duration)) error {
	return s(func(a ask) ([]byte, error) {
		answer, took, err := c.send(ctx, a)
		if err != nil {
			return nil, err
		}
		for _, made := range a.calls(answer) {
			c.oracle.play(made)
		}
		tell(a.app, answer, took)
		return answer, nil
	})
}

// activations are how many activations of annotated functions there were, and how many of them were hits.
func (c *cell) activations(ctx context.Context) (all, hits float64, err error) {
	outcomes, err := c.metrics(ctx, "forerun_cache_requests_total{")
	for name, n := range outcomes {
		all += n
		if strings.Contains(name, `"hit"`) {
			hits += n
		}
	}
	return all, hits, err
}

// metrics are the server's metrics whose names begin with one of the prefixes.
func (s *side) metrics(ctx context.Context, prefixes ...string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	found := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				if found[name], err = strconv.ParseFloat(value, 64); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, lines.Err()
}

// metric is one of the server's metrics; 0 if it has none of that name.
func (s *side) metric(ctx context.Context, name string) (float64, error) {
	found, err := s.metrics(ctx, name)
	return found[name], err
}
