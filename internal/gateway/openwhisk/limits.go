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

// Ranges of limits: OpenWhisk's.
const (
	minTimeout, maxTimeout         = 100, 300_000 // milliseconds
	minMemory, maxMemory           = 128, 512     // MiB
	minLogs, maxLogs               = 0, 10        // MiB
	minConcurrency, maxConcurrency = 1, 1
)

func (l limitsPut) check() error {
	return errors.Join(
		inRange(l.Timeout, minTimeout, maxTimeout, "duration %d milliseconds %s allowed threshold of %d milliseconds"),
		inRange(l.Memory, minMemory, maxMemory, "memory size %d MB %s allowed threshold of %d MB"),
		inRange(l.Logs, minLogs, maxLogs, "log size %d MB %s allowed threshold of %d MB"),
		inRange(l.Concurrency, minConcurrency, maxConcurrency, "concurrency %d %s allowed threshold of %d"),
	)
}

func inRange(value *int, low, high int, format string) error {
	switch {
	case value == nil:
		return nil
	case *value < low:
		return forerun.Errorf(forerun.Invalid, "limits", format, *value, "below", low)
	case *value > high:
		return forerun.Errorf(forerun.Invalid, "limits", format, *value, "exceeds", high)
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
