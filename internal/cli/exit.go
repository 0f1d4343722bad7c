package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

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

	exitInterrupted = 130
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
// a file given is wrong, 3 the API cannot be reached, 4 it refused, 5 the function failed, 6 it took too long; 130 the person
// interrupted, as shells have it.
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
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case isTimeout(err):
		return exitTimeout
	case isNetwork(err):
		return exitNetwork
	case forerun.KindOf(err) == forerun.Invalid:
		return exitUsage
	}
	return exitGeneral
}

func isNetwork(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok && !errors.Is(err, context.Canceled)
}

// isCutOff reports whether the connection ended after the request was sent.
func isCutOff(err error) bool {
	return isNetwork(err) && slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}, func(end error) bool { return errors.Is(err, end) })
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// Explain is what the person is told about an error: its cause and what to do next.
func Explain(err error) string {
	if refused, ok := errors.AsType[*whisk.Error](err); ok {
		return withNext(err, nextAfter(refused))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case isTimeout(err):
		return withNext(err, "The API did not answer in time. Is --apihost right?")
	case isUnknownAuthority(err):
		return withNext(err, "No trusted authority has signed the server's certificate: pass --ca with the file ca.crt of the server's data folder, or run `forerun login` in a terminal.")
	case isWrongName(err):
		return withNext(err, "The server's certificate is for other names: use one of them, or have the operator name this one with --tls-name.")
	case errors.Is(err, syscall.ECONNREFUSED):
		return withNext(err, "No server listens there: start the server with `forerun serve`, or name another with --apihost.")
	case isCutOff(err):
		return withNext(err, "The connection ended before the answer. "+nextAfterCutOff(err))
	case isNetwork(err):
		return withNext(err, "The API cannot be reached: is --apihost right?")
	}
	return err.Error()
}

func withNext(err error, next string) string {
	if next == "" {
		return err.Error()
	}
	return err.Error() + "\n" + next
}

func nextAfterCutOff(err error) string {
	if request, ok := errors.AsType[*url.Error](err); ok && strings.EqualFold(request.Op, http.MethodPost) {
		return "The call may have run: see `forerun activation list`. A repeat with the header Idempotency-Key never runs it twice."
	}
	return "Does the server still run? Then repeat the command."
}

// nextAfter is what to do after an answer that refused; empty if its own words say it.
func nextAfter(e *whisk.Error) string {
	admin := strings.Contains(e.URL, adminRoot)
	switch {
	case admin && e.Status == http.StatusNotFound && strings.Contains(e.URL, adminRoot+"tenants"):
		return "Run `forerun tenant list` to see those that are there."
	case admin:
		return ""
	case e.Status == http.StatusUnauthorized:
		return "The key is not valid here: run `forerun login`, or pass --auth UUID:KEY."
	case e.Status == http.StatusForbidden && strings.Contains(e.Message, "suspended"):
		return ""
	case e.Status == http.StatusForbidden:
		return "Run `forerun namespace list` to see where the key is valid."
	case e.Status == http.StatusConflict && strings.Contains(e.Message, "already exists"):
		return "It is there already: use `update` to change it, or delete it first."
	case e.Status == http.StatusConflict && e.Method == http.MethodDelete && strings.Contains(e.Path, "/"+whisk.Packages+"/"):
		return "Delete what is in it first, or all together with --recursive."
	}
	switch what, name := e.Missing(); {
	case what == "package" && e.Method == http.MethodPut:
		return "Run `forerun package create " + name + "` first."
	case what == "activation":
		return "An activation gets its record at its end: ask again later. Run `forerun activation list` to see those that have ended."
	case what != "":
		return "Run `forerun " + what + " list` to see those that are there."
	}
	return ""
}
