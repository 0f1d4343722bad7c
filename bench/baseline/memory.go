package baseline

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	for _, process := range descendants(pid) {
		total += harness.ResidentKiB(process) / 1024
	}
	return total
}

// descendants are a process, and all that it and they have started and that have not ended.
func descendants(pid int) []string {
	all := []string{strconv.Itoa(pid)}
	tasks, _ := filepath.Glob("/proc/" + all[0] + "/task/*/children") // the pattern is well-formed
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				all = append(all, descendants(id)...)
			}
		}
	}
	return all
}
