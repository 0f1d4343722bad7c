package speculation

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/speculation/cluster"
)

// measureMachine drives the pure machine alone, on one core: chains of ten functions, each known and right.
func measureMachine(_ context.Context, b *bench) error {
	chain := cluster.NewChain(functions)
	millions := 10
	if b.quick {
		millions = 1
	}
	chain.Drive(100_000) // warm
	small := inUse()
	begin, err := processorTime()
	if err != nil {
		return err
	}
	driven := 0
	for range millions {
		driven += chain.Drive(1_000_000)
	}
	end, err := processorTime()
	if err != nil {
		return err
	}
	grown := inUse() - small
	runtime.KeepAlive(chain)
	b.row(harness.Row{
		Case: "speculate.Step", Metric: fmt.Sprintf("events, %d million", millions), Unit: "1/s of a core",
		Value: harness.Number(float64(driven) / (end - begin).Seconds()), Target: harness.Text(">=1000000"),
	})
	b.row(harness.Row{Case: "speculate.Step", Metric: "memory in use, grown by", Unit: "KiB", Value: harness.Number(grown / 1024), Target: harness.Text("<=256")})
	return nil
}

// inUse is the memory that is not garbage.
func inUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// processorTime is what this process has used of the processors, its collector of garbage included.
func processorTime() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
