package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// The exit codes.
const (
	exitGeneral  = 1
	exitUsage    = 2
	exitNetwork  = 3
	exitHTTP     = 4
	exitFunction = 5
	exitTimeout  = 6
)

// failure is an error with an exit code of its own.
type failure struct {
	code    int
	message string
}

func (f *failure) Error() string { return f.message }

// usagef is the error of a command line that cannot be read.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &failure{exitUsage, fmt.Sprintf(format, args...) + "\nRun `" + cmd.CommandPath() + " --help` for how it is written."}
}

// wrongf is the error of something that the caller gave and that cannot be used.
func wrongf(format string, args ...any) error {
	return &failure{exitUsage, fmt.Sprintf(format, args...)}
}

// ExitCode is the code with which the process ends on err: 0 nothing went wrong, 1 something general, 2 the command line or
// a file given is wrong, 3 the API cannot be reached, 4 it refused, 5 the function failed, 6 it took too long.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	if _, ok := errors.AsType[*whisk.Error](err); ok {
		return exitHTTP
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return exitTimeout
	}
	if isNetwork(err) {
		return exitNetwork
	}
	if forerun.KindOf(err) == forerun.Invalid {
		return exitUsage
	}
	return exitGeneral
}

func isNetwork(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok && !errors.Is(err, context.Canceled)
}

// Explain is what the person is told about an error: its cause and what to do next.
func Explain(err error) string {
	switch refused, _ := errors.AsType[*whisk.Error](err); {
	case refused != nil && strings.Contains(refused.Request, adminRoot):
		return err.Error()
	case refused != nil && refused.Status == http.StatusUnauthorized:
		return err.Error() + "\nThe key is not valid here: run `forerun login`, or pass --auth UUID:KEY."
	case refused != nil && refused.Status == http.StatusConflict && strings.HasPrefix(refused.Request, http.MethodPut):
		return err.Error() + "\nIt is there already: use `update` to change it, or delete it first."
	case refused != nil && refused.Status == http.StatusNotFound:
		return err.Error() + "\nRun `forerun namespace get` to see what is there."
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case isNetwork(err):
		return err.Error() + "\nThe API cannot be reached: is `forerun serve` running, and is --apihost right?"
	}
	return err.Error()
}
