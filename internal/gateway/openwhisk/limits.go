package openwhisk

import (
	"errors"

	"forerun.dev/forerun/internal/forerun"
)

// limitsPut are the limits in a body.
type limitsPut struct {
	Timeout     *int `json:"timeout"`
	Memory      *int `json:"memory"`
	Logs        *int `json:"logs"`
	Concurrency *int `json:"concurrency"`
}

// Ends of the ranges of limits that no server moves: OpenWhisk's.
const (
	minTimeout                     = 100 // milliseconds
	minMemory                      = 128 // MiB
	minLogs                        = 0   // MiB
	minConcurrency, maxConcurrency = 1, 1
)

func (l limitsPut) check(b *forerun.Bounds) error {
	return errors.Join(
		inRange(l.Timeout, minTimeout, b.Timeout, "duration %d milliseconds %s allowed threshold of %d milliseconds", "--max-timeout"),
		inRange(l.Memory, minMemory, b.Memory, "memory size %d MB %s allowed threshold of %d MB", "--max-memory"),
		inRange(l.Logs, minLogs, b.Logs, "log size %d MB %s allowed threshold of %d MB", "--max-logs"),
		inRange(l.Concurrency, minConcurrency, maxConcurrency, "concurrency %d %s allowed threshold of %d", ""),
	)
}

// inRange checks a limit. flag is the server's flag that moves the upper end; empty if there is none.
func inRange(value *int, low, high int, format, flag string) error {
	if flag != "" {
		flag = ". The operator can raise it with the flag " + flag + " of forerun serve."
	}
	switch {
	case value == nil:
		return nil
	case *value < low:
		return forerun.Errorf(forerun.Invalid, "limits", format, *value, "below", low)
	case *value > high:
		return forerun.Errorf(forerun.Invalid, "limits", format+"%s", *value, "exceeds", high, flag)
	}
	return nil
}

func (l limitsPut) applyTo(limits *forerun.Limits) {
	for _, change := range []struct{ from, to *int }{
		{l.Timeout, &limits.Timeout}, {l.Memory, &limits.Memory}, {l.Logs, &limits.Logs}, {l.Concurrency, &limits.Concurrency},
	} {
		if change.from != nil {
			*change.to = *change.from
		}
	}
}
