package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"time"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/runtimewire"
)

// shutDown is what an activation ends with that the worker's end cut short.
const shutDown = "The server was shut down before the action ended."

// resultOf checks what a function returned, which may have so many bytes.
func resultOf(h runtimewire.Result, payload []byte, limit int) forerun.Result {
	switch h.Status {
	case runtimewire.StatusOK:
	case runtimewire.StatusError:
		return forerun.Failure(forerun.DeveloperError, h.Error)
	default:
		return forerun.Failure(forerun.InternalError, fmt.Sprintf("The language's runtime answered with the unknown status %q.", h.Status))
	}
	if len(payload) > limit {
		return sizeFailure(len(payload), limit)
	}
	value, err := canonical.ObjectOrArray(payload)
	if err != nil {
		return forerun.Failure(forerun.DeveloperError, "The action did not return a dictionary or array: "+err.Error())
	}
	if e := errorOf(value); e != nil {
		return forerun.Result{Status: forerun.ApplicationError, Value: e}
	}
	return forerun.Result{Status: forerun.Success, Value: value}
}

// errorOf returns a canonical object without what it has besides its member "error", as OpenWhisk does; nil if it has none.
func errorOf(value json.RawMessage) json.RawMessage {
	if value[0] != '{' || !bytes.Contains(value, []byte(`"error":`)) {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil || members["error"] == nil {
		return nil
	}
	return slices.Concat([]byte(`{"error":`), members["error"], []byte("}"))
}

func sizeFailure(size, limit int) forerun.Result {
	return forerun.Failure(forerun.DeveloperError,
		fmt.Sprintf("The action produced a response that exceeded the allowed length: %d > %d bytes.", size, limit))
}

func timeoutFailure(milliseconds int) forerun.Result {
	return forerun.Failure(forerun.DeveloperError,
		fmt.Sprintf("The action exceeded its time limits of %d milliseconds.", milliseconds))
}

func memoryFailure(limit, all int) forerun.Result {
	return forerun.Failure(forerun.DeveloperError, fmt.Sprintf(
		"The action's memory limit of %d MiB is over the %d MiB that all sandboxes of this server may use together: lower the limit, or raise the server's.", limit, all))
}

func waitFailure(limit time.Duration) forerun.Result {
	return forerun.Failure(forerun.InternalError, fmt.Sprintf(
		"The activation waited %v for a sandbox, as long as one may wait on this server, and was given up: it has more to do than it can. Try again later.", limit))
}

// outOfMemory is what an activation ends with whose processes were killed for the memory limit.
const outOfMemory = "The action exhausted its memory and was aborted."

// earlyExitFailure says how a process ended that had not read its activation.
func earlyExitFailure(s *spare) forerun.Result {
	how := fmt.Sprintf("with status %d", s.exit.Status)
	if s.exit.Signal != 0 {
		how = fmt.Sprintf("by signal %d (%s)", s.exit.Signal, syscall.Signal(s.exit.Signal))
	}
	return forerun.Failure(forerun.DeveloperError, "The action's process ended "+how+" before it read the input. See the logs for details."+hint(s))
}

// exitFailure says how a handler ended that sent no result.
func exitFailure(s *spare) forerun.Result {
	if s.exit.Signal != 0 {
		return forerun.Failure(forerun.DeveloperError,
			fmt.Sprintf("The action exited unexpectedly: it was killed by signal %d (%s).", s.exit.Signal, syscall.Signal(s.exit.Signal)))
	}
	return forerun.Failure(forerun.DeveloperError,
		fmt.Sprintf("The action exited unexpectedly with status %d: it must return a dictionary.%s", s.exit.Status, hint(s)))
}

// hint tells the author of a program that ended well, without a result, what a program is to do.
func hint(s *spare) string {
	if !s.lines || s.exit.Status != 0 || s.exit.Signal != 0 {
		return ""
	}
	return " A native program serves until its input ends: for each activation it reads a line of JSON from its standard input, and writes its result, a line of JSON, to descriptor 3."
}
