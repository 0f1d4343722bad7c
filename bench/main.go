// Command bench measures Forerun on this machine, each subject interleaved with
// what it is compared with. Figures and a table are written to bench/out, the table to stdout as well.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"forerun.dev/forerun/bench/baseline"
	"forerun.dev/forerun/bench/cache"
	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/microtasks"
	"forerun.dev/forerun/bench/speculation"
	"forerun.dev/forerun/bench/wire"
	"forerun.dev/forerun/bench/workloads"
	"forerun.dev/forerun/internal/proc"
)

// command is one benchmark.
type command struct {
	name, about string
	run         func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"baseline", "calls, state and memory beside this machine's own echo, fdatasync and redis", baseline.Run},
		{"speculation", "applications with speculation off and on, beside the figures of the paper", speculation.Run},
		{"microtasks", "the policies of the scheduler on a distributed sort", microtasks.Run},
		{"cache", "the same server with known results and without, beside the echo and a native call", cache.Run},
		{"workloads", "what the applications of SpecFaaS do, and how fast they could be at best", workloads.Run},
		{"wire", "protocols beside plain HTTP/1.1, and new connections over a long way", wire.Run},
		{wire.NetCommand, "the server's end of the long way", wire.Net},
		{wire.ClientCommand, "the client's end of the long way", wire.Client},
		{harness.EchoCommand, "the plain HTTP server that calls are compared with", harness.Echo},
		{harness.FloorCommand, "the same with a Python function behind it", harness.Floor},
	}
}

func main() {
	_ = proc.RelaxMonitor() // as the server does: what clients, companies and the echo take of the processors is not its
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 {
		for _, c := range commands() {
			if c.name != os.Args[1] {
				continue
			}
			if err := c.run(ctx, os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				stop()
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: bench COMMAND [--help]")
	for _, c := range commands() {
		fmt.Fprintf(os.Stderr, "  %-11s %s\n", c.name, c.about)
	}
	stop()
	os.Exit(2)
}
