package baseline

import (
	"context"
	"fmt"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// calls are the cases that each language has.
func calls(l func(*bench) *language) []measurement {
	of := l(new(bench))
	with := func(measure func(ctx context.Context, b *bench, l *language) error) func(context.Context, *bench) error {
		return func(ctx context.Context, b *bench) error { return measure(ctx, b, l(b)) }
	}
	return []measurement{
		{of.slug() + "-call", "a warm call of a " + of.name + " function", with(measureCall)},
		{of.slug() + "-sequence", "ten trivial " + of.name + " functions in sequence", with(measureSequence)},
		{of.slug() + "-waiting", "ten " + of.name + " functions in sequence that wait 10 ms each", with(measureWaiting)},
		{of.slug() + "-cold", "the first call of a new " + of.name + " action", with(measureCold)},
		{of.slug() + "-cost", "what a warm call of a " + of.name + " function takes of the processors", with(measureCost)},
		{of.slug() + "-throughput", "32 clients that call one " + of.name + " action", with(measureThroughput)},
	}
}

// compare measures one action beside the echo server and adds its rows.
func (b *bench) compare(ctx context.Context, name string, n int, pause time.Duration, s subject, bound string) error {
	echo, samples, err := b.interleave(ctx, n, pause, s)
	if err != nil {
		return err
	}
	b.latency(name, samples[0], echo, bound)
	if pause == rest {
		b.draw(name, samples[0], echo)
	}
	return nil
}

// draw adds a sample to the figure of what calls take on a machine at rest; the first echo is in it too.
func (b *bench) draw(name string, sample, echo *harness.Sample) {
	f := b.figure("latency", "Time of a call, the machine at rest")
	if len(f.series) == 0 {
		f.add("echo", echo)
	}
	f.add(name, sample)
}

func measureCall(ctx context.Context, b *bench, l *language) error {
	if err := l.put(ctx, b.client, l.slug(), 0); err != nil {
		return err
	}
	s, err := b.action(b.client, l.slug(), trivial)
	if err != nil {
		return err
	}
	name := "warm " + l.name + " call"
	if err := b.compare(ctx, name, b.count(1000), rest, s, l.call); err != nil {
		return err
	}
	return b.compare(ctx, name+", back to back", b.count(2000), 0, s, l.call)
}

func measureSequence(ctx context.Context, b *bench, l *language) error {
	action, err := l.putSequence(ctx, b.client)
	if err != nil {
		return err
	}
	s, err := b.action(b.client, action, trivial)
	if err != nil {
		return err
	}
	name := "ten trivial " + l.name + " functions in sequence"
	if err := b.compare(ctx, name, b.count(400), rest, s, l.sequence); err != nil {
		return err
	}
	return b.compare(ctx, name+", back to back", b.count(400), 0, s, l.sequence)
}

func measureWaiting(ctx context.Context, b *bench, l *language) error {
	action, err := l.putSequence(ctx, b.client)
	if err != nil {
		return err
	}
	s, err := b.action(b.client, action, waiting)
	if err != nil {
		return err
	}
	return b.compare(ctx, "ten "+l.name+" functions that wait 10 ms each", b.count(200), rest, s, l.waiting)
}

// measureCold calls each of a number of new actions once.
func measureCold(ctx context.Context, b *bench, l *language) error {
	cold, echo := new(harness.Sample), new(harness.Sample)
	for i := range b.count(60) {
		name := fmt.Sprintf("%s-cold-%d", l.slug(), i)
		if err := l.put(ctx, b.client, name, i); err != nil {
			return err
		}
		if err := b.first(ctx, b.client, name, cold, echo); err != nil {
			return err
		}
		if err := b.client.Delete(ctx, name); err != nil {
			return err
		}
	}
	name := "cold start of a " + l.name + " action"
	b.latency(name, cold, echo, l.cold)
	b.draw(name, cold, echo)
	return nil
}

// first calls the echo server and then a new action, after a pause in which the machine came to rest.
func (b *bench) first(ctx context.Context, client *server.Client, action string, cold, echo *harness.Sample) error {
	plain, err := url("the echo server", b.echo.URL, trivial)
	if err != nil {
		return err
	}
	s, err := b.action(client, action, trivial)
	if err != nil {
		return err
	}
	callers, err := connect(ctx, plain, s)
	if err != nil {
		return err
	}
	defer disconnect(callers)
	time.Sleep(rest)
	if err := callers[0].call(ctx, echo, &b.echoed); err != nil {
		return err
	}
	return callers[1].call(ctx, cold)
}
