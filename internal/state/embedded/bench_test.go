package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// BenchmarkLazyApply is one activation record of 1 kB in the log.
func BenchmarkLazyApply(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	defer s.Close()
	value := make([]byte, 1000)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := s.Apply(context.Background(), lazySet(fmt.Sprint("record", n), value)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLazyApplyBesideSyncs is the same while another client waits for the disk all the time.
func BenchmarkLazyApplyBesideSyncs(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			strict := lazySet("other", []byte("x"))
			strict.Lazy = false
			_, _ = s.Apply(ctx, strict) // until the end
		}
	}()
	value := make([]byte, 1000)
	for n := 0; b.Loop(); n++ {
		if _, err := s.Apply(context.Background(), lazySet(fmt.Sprint("record", n), value)); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-done
}

// BenchmarkLeaderboard works on a sorted set of 10,000 members.
func BenchmarkLeaderboard(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	defer s.Close()
	do := func(line string) {
		args := bytes.Fields([]byte(line))
		reply, _, err := s.Do(context.Background(), state.Command{Space: "space", Args: args})
		if err != nil || reply.Kind == state.Error {
			b.Fatal(string(reply.Text), err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	const players, points = 10_000, 1_000_000
	for n := range players {
		do(fmt.Sprintf("ZADD board %d player%d", rng.IntN(points), n))
	}
	for _, c := range []struct {
		name string
		line func() string
	}{
		{"top", func() string { return "ZRANGE board 0 9 REV WITHSCORES" }},
		{"rank", func() string { return fmt.Sprintf("ZREVRANK board player%d", rng.IntN(players)) }},
		{"add", func() string { return fmt.Sprintf("ZADD board %d player%d", rng.IntN(points), rng.IntN(players)) }},
		{"increment", func() string { return fmt.Sprintf("ZINCRBY board 10 player%d", rng.IntN(players)) }},
		{"top later", func() string { return "ZRANGE board 0 9 REV WITHSCORES" }},
		{"rank later", func() string { return fmt.Sprintf("ZREVRANK board player%d", rng.IntN(players)) }},
		{"page", func() string { return fmt.Sprintf("ZRANGE board %[1]d %[1]d", rng.IntN(players)) }},
		{"count", func() string { return fmt.Sprintf("ZCOUNT board %d inf", rng.IntN(points)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do(c.line())
			}
		})
	}
}

// BenchmarkWays executes commands at once, observed, and on images that were fetched.
func BenchmarkWays(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	defer s.Close()
	ctx := context.Background()
	for _, line := range []string{"SET a 1", "GET a", "INCR a"} {
		op := state.Command{Space: "space", Args: bytes.Fields([]byte(line))}
		for name, way := range map[string]func() error{
			"do":      func() error { _, _, err := s.Do(ctx, op); return err },
			"observe": func() error { _, err := s.Observe(ctx, nil, []state.Command{op}); return err },
			"images": func() error {
				step := command.NewStep("space", time.UnixMilli(1000), op.Args)
				fetched, err := s.Fetch(ctx, step.Reads()...)
				images := make([]state.Image, len(fetched))
				for i, f := range fetched {
					images[i] = f.Image
				}
				o, _ := new(command.Executor).Execute(step, images)
				return errors.Join(err, o.Err)
			},
		} {
			b.Run(line+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := way(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
