package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
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

// BenchmarkSetCounted is a SET of 100 bytes, of a store that counts what tenants store and of one that does not.
func BenchmarkSetCounted(b *testing.B) {
	for name, a := range map[string]Accounting{"counted": accounting(state.Allowance{Bytes: 1 << 40, Share: 50}), "not counted": {}} {
		b.Run(name, func(b *testing.B) {
			s := mustOpen(b, b.TempDir(), Options{Stored: a})
			defer s.Close()
			defer s.Watch(func(forerun.Key, forerun.Version) {})()
			args := [][]byte{[]byte("SET"), nil, bytes.Repeat([]byte("v"), 100)}
			b.ReportAllocs()
			before := processorTime(b)
			defer func() { b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op") }()
			for n := 0; b.Loop(); n++ {
				args[1] = []byte(fmt.Sprint("key", n%1000))
				if _, _, err := s.Do(context.Background(), state.Command{Space: "ada/values", Args: args}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAccounting is what counting adds to a SET.
func BenchmarkAccounting(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{Stored: accounting(state.Allowance{Bytes: 1 << 40, Share: 50})})
	defer s.Close()
	key := command.RecordKey(forerun.Key{Space: "ada/values", Name: "key"})
	o := s.counting(command.NewOverlay(context.Background(), reader{db: s.db}))
	if _, _, err := o.Get(key); err != nil {
		b.Fatal(err)
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	before := processorTime(b)
	defer func() { b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op") }()
	b.ReportAllocs()
	c := change{overlay: o} // whose room a SET without accounts needs, too
	for n := 0; b.Loop(); n++ {
		c.bill = bill{books: s.books}
		if err := c.account(key, 100+n%2); err != nil {
			b.Fatal(err)
		}
		if err := c.bill.admit(s.room); err != nil {
			b.Fatal(err)
		}
		c.bill.entries[0].bytes = int64(n%2*2 - 1)
		if err := c.bill.enter(batch); err != nil {
			b.Fatal(err)
		}
	}
}

// processorTime is what this process has used, which other processes do not change.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
