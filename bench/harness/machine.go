package harness

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine describes what the figures were measured on.
func Machine() map[string]any {
	m := map[string]any{
		"cores": runtime.NumCPU(), "go": runtime.Version(), "os": runtime.GOOS + "/" + runtime.GOARCH,
		"measured": time.Now().UTC().Format(time.RFC3339),
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m["kernel"] = strings.TrimSpace(string(release))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m["load"] = strings.TrimSpace(string(load)) // when the run began: above 1 somebody else is at work
	}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		m["cpu"] = model
	}
	if memory := field("/proc/meminfo", "MemTotal"); memory != "" {
		m["memory"] = memory
	}
	return m
}

// LoadAverage is how many processes wanted a processor in the last minute, on average; 0 if the machine does not tell.
func LoadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// field returns the value of the first line "name: value" of a file, or nothing.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ResidentKiB is the resident memory of a process, or 0 if it is not there.
func ResidentKiB(pid string) float64 { return kibOf("/proc/"+pid+"/status", "VmRSS") }

// ProportionalKiB is the proportional set size of a process, in which shared pages count in part, or 0 if it is not there.
func ProportionalKiB(pid string) float64 { return kibOf("/proc/"+pid+"/smaps_rollup", "Pss") }

// kibOf is a field "name: number kB" of a file.
func kibOf(path, name string) (kib float64) {
	for _, digit := range strings.TrimSuffix(field(path, name), " kB") {
		if digit < '0' || digit > '9' {
			return 0
		}
		kib = kib*10 + float64(digit-'0')
	}
	return kib
}

// Disk measures this machine's fdatasync, on a file that it appends to.
type Disk struct{ file *os.File }

// OpenDisk makes the file in a folder.
func OpenDisk(folder string) (*Disk, error) {
	f, err := os.CreateTemp(folder, "fdatasync")
	if err != nil {
		return nil, err
	}
	return &Disk{f}, nil
}

// Sync appends 4 KiB, waits until they are on disk, and returns how long that took.
func (d *Disk) Sync() (time.Duration, error) {
	begin := time.Now()
	if _, err := d.file.Write(make([]byte, 4096)); err != nil {
		return 0, err
	}
	err := syscall.Fdatasync(int(d.file.Fd()))
	return time.Since(begin), err
}

// Close removes the file.
func (d *Disk) Close() error {
	d.file.Close()
	return os.Remove(d.file.Name())
}
