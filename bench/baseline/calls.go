package baseline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

const (
	sent    = `"x":1`
	body    = "{" + sent + "}"
	trivial = "def main(args):\n    return args\n"
	waiting = "import time\n\ndef main(args):\n    time.sleep(0.01)\n    return args\n"
	stages  = 10 // functions of a sequence
	rounds  = 20
)

// request makes the request of a call of an action, or one for the echo server if action is empty.
func (b *bench) request(ctx context.Context, action string) (*http.Request, error) {
	url := b.echo.URL
	if action != "" {
		url = b.client.URL + "/api/v1/namespaces/_/actions/" + action + "?blocking=true&result=true"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	user, password, _ := strings.Cut(b.client.Auth, ":")
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// call sends one request and returns how long its answer took, which must hold what was sent.
func (b *bench) call(ctx context.Context, action string) (time.Duration, error) {
	req, err := b.request(ctx, action)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	resp, err := b.client.HTTP.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	took := time.Since(begin)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(sent))) {
		err = fmt.Errorf("the call of %q answered %d: %s", action, resp.StatusCode, answer)
	}
	return took, err
}

// rest is the pause before each call of a case: the machine has then ended what the call before left it to do. Back to back,
// what is measured is also how fast the processors get through all of that. The bar is the same for both.
const rest = 20 * time.Millisecond

// interleave calls an action and the echo server in turn, after some calls that are not counted.
func (b *bench) interleave(ctx context.Context, action string, n int, pause time.Duration) (subject, echo *harness.Sample, err error) {
	for range 5 {
		if _, err := b.call(ctx, action); err != nil {
			return nil, nil, err
		}
	}
	subject, echo = new(harness.Sample), new(harness.Sample)
	for range rounds {
		subject.Round()
		echo.Round()
		b.echoed.Round()
		b.synced.Round()
		for range max(1, n/rounds) {
			time.Sleep(pause)
			if err := b.pair(ctx, action, subject, echo); err != nil {
				return nil, nil, err
			}
		}
		if err := b.sync(); err != nil {
			return nil, nil, err
		}
	}
	return subject, echo, nil
}

func (b *bench) pair(ctx context.Context, action string, subject, echo *harness.Sample) error {
	plain, err := b.call(ctx, "")
	if err != nil {
		return err
	}
	took, err := b.call(ctx, action)
	if err != nil {
		return err
	}
	echo.Add(plain)
	b.echoed.Add(plain)
	subject.Add(took)
	return nil
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

func measureCall(ctx context.Context, b *bench) error {
	if err := b.client.PutPython(ctx, "trivial", trivial); err != nil {
		return err
	}
	subject, echo, err := b.interleave(ctx, "trivial", b.count(1000), rest)
	if err != nil {
		return err
	}
	b.figures = append(b.figures, harness.Series{Name: "echo", Sample: echo})
	b.latency("warm Python call", subject, echo, "<=1.2")
	return b.backToBack(ctx, "warm Python call", "trivial", b.count(2000), "<=1.2")
}

// backToBack measures the same without pauses.
func (b *bench) backToBack(ctx context.Context, name, action string, n int, bound string) error {
	subject, echo, err := b.interleave(ctx, action, n, 0)
	if err != nil {
		return err
	}
	b.latency(name+", back to back", subject, echo, bound)
	return nil
}

func measureSequence(ctx context.Context, b *bench) error {
	if err := b.putSequence(ctx, "trivial", trivial); err != nil {
		return err
	}
	subject, echo, err := b.interleave(ctx, "trivial-sequence", b.count(400), rest)
	if err != nil {
		return err
	}
	b.latency("ten trivial Python functions in sequence", subject, echo, "<=9")
	return b.backToBack(ctx, "ten trivial Python functions in sequence", "trivial-sequence", b.count(400), "<=9")
}

func measureWaiting(ctx context.Context, b *bench) error {
	if err := b.putSequence(ctx, "waiting", waiting); err != nil {
		return err
	}
	subject, echo, err := b.interleave(ctx, "waiting-sequence", b.count(200), rest)
	if err != nil {
		return err
	}
	b.latency("ten Python functions that wait 10 ms each", subject, echo, "<=112")
	return nil
}

// putSequence deploys a sequence of ten actions, NAME-sequence: each of them is another one.
func (b *bench) putSequence(ctx context.Context, name, code string) error {
	var components []string
	for i := range stages {
		component := fmt.Sprintf("%s-%d", name, i)
		if err := b.client.PutPython(ctx, component, code); err != nil {
			return err
		}
		components = append(components, component)
	}
	return b.client.PutSequence(ctx, name+"-sequence", components...)
}

// measureCold calls each of a number of new actions once.
func measureCold(ctx context.Context, b *bench) error {
	subject, echo := new(harness.Sample), new(harness.Sample)
	for i := range b.count(60) {
		name := fmt.Sprintf("cold-%d", i)
		if err := b.client.PutPython(ctx, name, fmt.Sprintf("# %d\n%s", i, trivial)); err != nil {
			return err
		}
		if err := b.pair(ctx, name, subject, echo); err != nil {
			return err
		}
		if err := b.client.Delete(ctx, name); err != nil {
			return err
		}
	}
	b.latency("cold start of a Python action", subject, echo, "<=60")
	return nil
}

const callers = 32

// measureThroughput counts the answers to 32 clients, in rounds with the echo server.
func measureThroughput(ctx context.Context, b *bench) error {
	if err := b.client.PutPython(ctx, "trivial", trivial); err != nil {
		return err
	}
	if _, err := b.flood(ctx, "trivial", b.lasting(3*time.Second)); err != nil { // until there are sandboxes enough
		return err
	}
	subject, echo := new(harness.Sample), new(harness.Sample)
	for range 5 {
		echoed, err := b.flood(ctx, "", b.lasting(500*time.Millisecond))
		if err != nil {
			return err
		}
		served, err := b.flood(ctx, "trivial", b.lasting(2*time.Second))
		if err != nil {
			return err
		}
		echo.AddMilliseconds(echoed)
		subject.AddMilliseconds(served)
	}
	b.row(harness.Row{
		Case: "32 clients of a Python action", Metric: "calls, median of five rounds", Unit: "1/s", Value: harness.Number(subject.P50()),
		Baseline: harness.Number(echo.P50()), Ratio: harness.Number(subject.P50() / echo.P50()), Target: harness.Text(">=700"),
	})
	return nil
}

// flood has 32 clients call as fast as they are answered, and returns the calls per second.
func (b *bench) flood(ctx context.Context, action string, d time.Duration) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls atomic.Int64
	var clients sync.WaitGroup
	begin := time.Now()
	for range callers {
		clients.Go(func() {
			for time.Since(begin) < d && ctx.Err() == nil {
				if _, err := b.call(ctx, action); err != nil {
					cancel(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	clients.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	return float64(calls.Load()) / time.Since(begin).Seconds(), nil
}

// measureStart starts servers of their own.
func measureStart(ctx context.Context, b *bench) error {
	var starts, idle harness.Sample
	for i := range max(3, b.count(10)) {
		s, err := server.Start(ctx, server.Options{Binary: b.binary, Data: fmt.Sprintf("%s/start-%d", b.folder, i)})
		if err != nil {
			return err
		}
		starts.Add(s.Took)
		if i < 2 {
			settle(ctx, 2*time.Second)
			idle.AddMilliseconds(residentMiB(s.PID()))
		}
		if err := s.Stop(); err != nil {
			return err
		}
	}
	b.row(harness.Row{Case: "start", Metric: "p50 until the first answer", Unit: "ms", Value: harness.Number(starts.P50()), Target: harness.Text("<=500")})
	b.row(harness.Row{Case: "start", Metric: "longest until the first answer", Unit: "ms", Value: harness.Number(starts.Quantile(1))})
	b.row(harness.Row{Case: "idle server", Metric: "resident memory with its helper", Unit: "MB", Value: harness.Number(idle.Quantile(1)), Target: harness.Text("<=80")})
	return nil
}
