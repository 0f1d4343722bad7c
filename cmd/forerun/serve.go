package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"forerun.dev/forerun/internal/config"
	"forerun.dev/forerun/internal/proc"
	"forerun.dev/forerun/internal/service"
)

func serveCommand() *cobra.Command {
	settings := config.Settings(os.Geteuid() == 0, config.StateHome(os.Getenv))
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server: the REST API, the sandboxes of the functions and the store, in one process and a small helper.

Each setting is a flag here, an environment variable (FORERUN_LISTEN for --listen), or a line of the
configuration file ("listen = 127.0.0.1:3233"); the first of these that is given counts.`,
		Args: cobra.NoArgs,
	}
	for _, s := range settings {
		if s.Default == "false" {
			cmd.Flags().Bool(s.Name, false, s.Usage)
		} else {
			cmd.Flags().String(s.Name, s.Default, s.Usage)
		}
	}
	file := cmd.Flags().String("config", os.Getenv("FORERUN_CONFIG"), "configuration `FILE`; none by default")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_ = proc.RelaxMonitor() // where it may not it takes more of the processors
		// Who reads what it says may end before it does, as `| tee` at Ctrl-C. Caught, not ignored: that sandboxes would inherit.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		given := make(map[string]string)
		cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
		c, err := config.Load(settings, given, os.Getenv, *file)
		if err != nil {
			return err
		}
		ctx, hurry := untilSignalled(cmd.Context())
		return service.Run(ctx, hurry, c, version(), cmd.ErrOrStderr())
	}
	return cmd
}

// untilSignalled returns a context that is done with the first SIGTERM or SIGINT, and a channel that is closed with the second. A third
// kills the process.
func untilSignalled(above context.Context) (context.Context, <-chan struct{}) {
	signals, hurry := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	ctx, stop := context.WithCancel(above)
	go func() {
		<-signals
		stop()
		<-signals
		signal.Stop(signals)
		close(hurry)
	}()
	return ctx, hurry
}
