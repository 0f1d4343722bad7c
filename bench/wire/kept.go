package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// subject is a client with kept connections to a server.
type subject struct {
	name   string
	server *server.Server
	client *http.Client
	end    func()
	sample harness.Sample
	rates  []float64
}

// newSubject makes a client that speaks one protocol: http/1.1, h2 or h3.
func newSubject(name, protocol string, s *server.Server) *subject {
	sub := &subject{name: name, server: s}
	if protocol == "h3" {
		transport := &http3.Transport{TLSClientConfig: s.TLS()}
		sub.client, sub.end = &http.Client{Transport: transport}, func() { _ = transport.Close() } // its process ends soon
		return sub
	}
	p := new(http.Protocols)
	p.SetHTTP1(protocol == "http/1.1")
	p.SetHTTP2(protocol == "h2")
	transport := &http.Transport{Protocols: p, MaxIdleConnsPerHost: clients}
	if strings.HasPrefix(s.URL, "https:") {
		transport.TLSClientConfig = s.TLS()
	}
	sub.client, sub.end = &http.Client{Transport: transport}, transport.CloseIdleConnections
	return sub
}

// call invokes the function.
func (s *subject) call(ctx context.Context) error {
	return post(ctx, s.client, s.server.URL, s.server.Auth, "")
}

// post invokes the function with a client, and with an idempotency key if there is one.
func post(ctx context.Context, c *http.Client, url, auth, key string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(input))
	if err != nil {
		return err
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	r.Header.Set("Content-Type", "application/json")
	return send(c, r, auth, input)
}

// get reads from the management API.
func get(ctx context.Context, c *http.Client, url, auth string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+read, http.NoBody)
	if err != nil {
		return err
	}
	return send(c, r, auth, "[")
}

func send(c *http.Client, r *http.Request, auth, want string) error {
	user, key, _ := strings.Cut(auth, ":")
	r.SetBasicAuth(user, key)
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want)) {
		err = fmt.Errorf("the answer was %d: %.200s", answer.StatusCode, text)
	}
	return err
}

// subjects starts a plain server and one with TLS, and makes a client for each protocol. The first is plain HTTP's.
func (b *bench) subjects(ctx context.Context, name string) (all []*subject, end func(), err error) {
	var servers []*server.Server
	end = func() {
		for _, s := range all {
			s.end()
		}
		for _, s := range servers {
			stop(s)
		}
	}
	add := func(binary, name string, args ...string) (s *server.Server, err error) {
		if s, err = b.start(ctx, binary, name, args...); err == nil {
			servers = append(servers, s)
		}
		return s, err
	}
	plain, err := add(b.binary, name+"-plain")
	if err != nil {
		return nil, nil, err
	}
	secure, err := add(b.binary, name+"-tls", "--tls", "on")
	if err != nil {
		end()
		return nil, nil, err
	}
	all = []*subject{newSubject("plain HTTP/1.1", "http/1.1", plain), newSubject("HTTP/1.1 over TLS", "http/1.1", secure), newSubject("HTTP/2", "h2", secure), newSubject("HTTP/3", "h3", secure)}
	if b.other != "" {
		other, err := add(b.other, name+"-other")
		if err != nil {
			end()
			return nil, nil, err
		}
		all = append(all, newSubject("plain HTTP/1.1 of the other binary", "http/1.1", other))
	}
	return all, end, nil
}

// rounds are how many parts a sample has.
const rounds = 20

// kept are calls on kept connections, one client, in turn.
func (b *bench) kept(ctx context.Context) error {
	all, end, err := b.subjects(ctx, "kept")
	if err != nil {
		return err
	}
	defer end()
	for _, s := range all {
		for range 50 {
			if err := s.call(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	n := b.count(4000)
	for turn := range n {
		for i := range all {
			s := all[(turn+i)%len(all)]
			if turn%max(1, n/rounds) == 0 {
				s.sample.Round()
			}
			begin := time.Now()
			if err := s.call(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			s.sample.Add(time.Since(begin))
		}
	}
	for i, target := range []string{"<=0.15", "<=0.15", "<=0.3", ""} {
		if i+1 >= len(all) {
			break
		}
		s := all[i+1]
		b.beside("kept, "+s.name, "plain HTTP/1.1", &s.sample, &all[0].sample)
		b.row(harness.Row{Case: "kept, " + s.name, Metric: "p50 above plain HTTP/1.1", Unit: "ms", Value: harness.Number(s.sample.P50() - all[0].sample.P50()), Target: harness.Text(target)})
	}
	return nil
}

// clients is how many call at the same time.
const clients = 32

// rate is how many calls a second go through, by protocol, in turns.
func (b *bench) rate(ctx context.Context) error {
	all, end, err := b.subjects(ctx, "rate")
	if err != nil {
		return err
	}
	defer end()
	for turn := range 1 + max(3, b.count(20)) { // the first starts sandboxes
		for i := range all {
			s := all[(turn+i)%len(all)]
			n, err := s.load(ctx, time.Second)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if turn > 0 {
				s.rates = append(s.rates, n)
			}
		}
	}
	base := middle(all[0].rates)
	for i, target := range []string{"", ">=0.85", ">=0.7", ""} {
		if i+1 >= len(all) {
			break
		}
		s := all[i+1]
		rate := middle(s.rates)
		b.row(harness.Row{Case: fmt.Sprintf("%d clients, %s", clients, s.name), Metric: "calls a second", Unit: "1/s", Value: harness.Number(rate), Baseline: harness.Number(base), Ratio: harness.Number(rate / base)})
		b.row(harness.Row{Case: fmt.Sprintf("%d clients, %s", clients, s.name), Metric: "rate beside plain HTTP/1.1", Unit: "x", Value: harness.Number(rate / base), Target: harness.Text(target)})
	}
	return nil
}

// load has all clients call for a time, and returns how many calls a second were answered.
func (s *subject) load(ctx context.Context, d time.Duration) (float64, error) {
	var mu sync.Mutex // guards n and errs
	var n int
	var errs []error
	var all sync.WaitGroup
	begin := time.Now()
	for range clients {
		all.Go(func() {
			calls := 0
			var err error
			for err == nil && time.Since(begin) < d {
				if err = s.call(ctx); err == nil {
					calls++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			n += calls
			errs = append(errs, err)
		})
	}
	all.Wait()
	return float64(n) / time.Since(begin).Seconds(), errors.Join(errs...)
}

// middle is the median.
func middle(values []float64) float64 {
	var s harness.Sample
	for _, v := range values {
		s.AddMilliseconds(v)
	}
	return s.P50()
}

// cost is what TLS and HTTP/3 add to an idle server.
func (b *bench) cost(ctx context.Context) error {
	var starts, memory [2]harness.Sample
	for i := range max(3, b.count(20)) {
		for side, args := range [][]string{nil, {"--tls", "on"}} {
			s, err := server.Start(ctx, server.Options{Binary: b.binary, Data: fmt.Sprintf("%s/cost-%d-%d", b.folder, i, side), Args: args})
			if err != nil {
				return err
			}
			stop(s) // the first start makes the data folder
			if s, err = server.Start(ctx, server.Options{Binary: b.binary, Data: s.Options.Data, Args: args}); err != nil {
				return err
			}
			starts[side].Add(s.Took)
			time.Sleep(time.Second) // it comes to rest
			kib := 0.0
			for _, process := range harness.Descendants(s.PID()) {
				kib += harness.ResidentKiB(process)
			}
			memory[side].AddMilliseconds(kib / 1000)
			stop(s)
		}
	}
	b.row(harness.Row{Case: "start with TLS and HTTP/3", Metric: "p50 above plain", Unit: "ms", Value: harness.Number(starts[1].P50() - starts[0].P50()), Baseline: harness.Number(starts[0].P50()), Target: harness.Text("<=20")})
	b.row(harness.Row{Case: "idle server with TLS and HTTP/3", Metric: "resident memory above plain", Unit: "MB", Value: harness.Number(memory[1].P50() - memory[0].P50()), Baseline: harness.Number(memory[0].P50()), Target: harness.Text("<=6")})
	return nil
}
