package baseline

import (
	"context"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// settle lets a server come to rest.
func settle(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// residentMiB is the memory of a process and all its descendants in 2^20 bytes. Pages that two of them share count twice.
func residentMiB(pid int) (total float64) {
	for _, process := range harness.Descendants(pid) {
		total += harness.ResidentKiB(process) / 1024
	}
	return total
}
