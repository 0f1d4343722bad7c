package baseline

import (
	"context"
	"fmt"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// measureStart starts servers of their own.
func measureStart(ctx context.Context, b *bench) error {
	var starts, idle harness.Sample
	for i := range max(3, b.count(10)) {
		s, err := server.Start(ctx, inTurn(b.binary, fmt.Sprintf("%s/start-%d", b.folder, i)))
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
