package baseline

import (
	"context"
	"fmt"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

const (
	stages  = 10 // functions of a sequence
	rounds  = 20
	unasked = 5 // calls that are not counted, before those that are
)

// rest is the pause before each call of a case: the machine has then ended what the call before left it to do. Back to back,
// what is measured is also how fast the processors get through all of that. The bar is the same for both.
const rest = 20 * time.Millisecond

// subject is what is called: by name, for errors.
type subject struct {
	name string
	*harness.Request
}

// action is a subject: an action of a server that returns its input.
func (b *bench) action(c *server.Client, name, input string) (subject, error) {
	r, err := harness.NewRequest(c.URL+"/api/v1/namespaces/_/actions/"+name+"?blocking=true&result=true", c.Auth, input, sent)
	return subject{name, r}, err
}

// url is a subject that is no action: it too answers with its input.
func url(name, address, input string) (subject, error) {
	r, err := harness.NewRequest(address, "", input, sent)
	return subject{name, r}, err
}

// caller is a subject with a connection and what was measured on it.
type caller struct {
	subject
	conn   *harness.Connection
	sample harness.Sample
}

func connect(ctx context.Context, subjects ...subject) (callers []*caller, err error) {
	for _, s := range subjects {
		c := &caller{subject: s}
		callers = append(callers, c)
		if c.conn, err = s.Connect(ctx); err != nil {
			disconnect(callers)
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return callers, nil
}

func disconnect(callers []*caller) {
	for _, c := range callers {
		if c.conn != nil {
			c.conn.Close()
		}
	}
}

// call calls once and adds the time to the samples.
func (c *caller) call(ctx context.Context, samples ...*harness.Sample) error {
	took, err := c.conn.Call(ctx)
	if err != nil {
		return fmt.Errorf("a call of %s: %w", c.name, err)
	}
	for _, s := range samples {
		s.Add(took)
	}
	return nil
}

// interleave calls the echo server and then each subject, n times, in rounds, with a pause before each subject, after some calls that are
// not counted. Which subject comes first changes from turn to turn. The samples are in the order of the subjects.
func (b *bench) interleave(ctx context.Context, n int, pause time.Duration, subjects ...subject) (echo *harness.Sample, samples []*harness.Sample, err error) {
	plain, err := url("the echo server", b.echo.URL, trivial)
	if err != nil {
		return nil, nil, err
	}
	callers, err := connect(ctx, append([]subject{plain}, subjects...)...)
	if err != nil {
		return nil, nil, err
	}
	defer disconnect(callers)
	for _, c := range callers {
		samples = append(samples, &c.sample)
		for range unasked {
			if err := c.call(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	for range rounds {
		if err := b.round(ctx, max(1, n/rounds), pause, callers[0], callers[1:]); err != nil {
			return nil, nil, err
		}
	}
	return samples[0], samples[1:], nil
}

func (b *bench) round(ctx context.Context, n int, pause time.Duration, echo *caller, subjects []*caller) error {
	for _, s := range []*harness.Sample{&echo.sample, &b.echoed, &b.synced} {
		s.Round()
	}
	for _, c := range subjects {
		c.sample.Round()
	}
	for turn := range n {
		for i := range subjects {
			time.Sleep(pause)
			if i == 0 {
				if err := echo.call(ctx, &echo.sample, &b.echoed); err != nil {
					return err
				}
			}
			c := subjects[(turn+i)%len(subjects)]
			if err := c.call(ctx, &c.sample); err != nil {
				return err
			}
		}
	}
	return b.sync()
}

// sync measures some fdatasyncs of the machine.
func (b *bench) sync() error {
	for range 3 {
		took, err := b.disk.Sync()
		if err != nil {
			return err
		}
		b.synced.Add(took)
	}
	return nil
}
