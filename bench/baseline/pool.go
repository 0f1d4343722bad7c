package baseline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// measurePrewarmed calls each of a number of new Python actions once, when the server had time to hold a sandbox ready: those that
// import nothing, and those that import redis.
func measurePrewarmed(ctx context.Context, b *bench) error {
	if err := b.prewarmed(ctx, "first call of a Python action, from the pool", "", b.count(200), 300*time.Millisecond); err != nil {
		return err
	}
	return b.prewarmed(ctx, "first call of a Python action that imports redis, from the pool", "import redis\n", b.count(100), time.Second)
}

// prewarmed measures one kind of actions; refill is how long after a cold start the next one waits, so that the server has a sandbox
// ready again.
func (b *bench) prewarmed(ctx context.Context, title, imports string, n int, refill time.Duration) error {
	cold, echo := new(harness.Sample), new(harness.Sample)
	for i := range n + 1 {
		name := fmt.Sprintf("prewarmed-%d", i)
		if err := b.client.PutPython(ctx, name, fmt.Sprintf("# %d\n%s\ndef main(args):\n    return args\n", i, imports)); err != nil {
			return err
		}
		settle(ctx, refill)
		into := cold
		if i == 0 {
			into = new(harness.Sample) // before anybody has used the language nothing is ready
		}
		if err := b.first(ctx, b.client, name, into, echo); err != nil {
			return err
		}
		if err := b.client.Delete(ctx, name); err != nil {
			return err
		}
	}
	b.row(harness.Row{Case: title, Metric: "p50", Unit: "ms", Value: harness.Number(cold.P50()), Baseline: harness.Number(echo.P50()), Target: harness.Text("<=25")})
	b.row(harness.Row{Case: title, Metric: "p99", Unit: "ms", Value: harness.Number(cold.P99()), Baseline: harness.Number(echo.P99()), Target: harness.Text("<=60")})
	b.draw(title, cold, echo)
	return nil
}

// measureIdle has a server of its own keep 100 sandboxes of Python actions that import nothing, and asks the kernel what
// their processes use: shared pages count in part (PSS).
func measureIdle(ctx context.Context, b *bench) error {
	s, err := server.Start(ctx, inTurn(b.binary, filepath.Join(b.folder, "idle"), "--prewarm", "0", "--memory", "4096"))
	if err != nil {
		return err
	}
	defer stop(s)
	c := s.Client(1)
	defer c.Close()
	sandboxes := max(10, b.count(100))
	for i := range sandboxes {
		name := fmt.Sprintf("idle-%d", i)
		if err := c.PutPython(ctx, name, fmt.Sprintf("def main(args):\n    return {'n': %d}\n", i)); err != nil {
			return err
		}
		if _, err := c.Invoke(ctx, name, nil); err != nil {
			return err
		}
	}
	settle(ctx, 2*time.Second)
	total, processes := 0.0, 0
	for _, pid := range harness.Descendants(s.PID()) {
		if command, _ := os.ReadFile("/proc/" + pid + "/cmdline"); bytes.Contains(command, []byte("python3")) { // the helper is none
			total += harness.ProportionalKiB(pid)
			processes++
		}
	}
	name := fmt.Sprintf("%d idle Python sandboxes", sandboxes)
	b.row(harness.Row{Case: name, Metric: "PSS of each", Unit: "MB", Value: harness.Number(total / 1024 / float64(sandboxes)), Target: harness.Text("<=15")})
	b.row(harness.Row{Case: name, Metric: "processes of each", Unit: "", Value: harness.Number(float64(processes) / float64(sandboxes))})
	return nil
}
