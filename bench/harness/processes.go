package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Descendants are the ids of a process, and of all that it and they have started and that have not ended.
func Descendants(pid int) []string {
	all := []string{strconv.Itoa(pid)}
	tasks, _ := filepath.Glob("/proc/" + all[0] + "/task/*/children") // the pattern is well-formed
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				all = append(all, Descendants(id)...)
			}
		}
	}
	return all
}

// TreeTime is the processor time that a process and its descendants have used, with that of those which ended and were waited
// for. It grows while no process of the tree is left behind by its parent.
func TreeTime(pid int) (total time.Duration) {
	for _, process := range Descendants(pid) {
		total += processorTime(process, 4)
	}
	return total
}

// MachineTime is the processor time that all processes of the machine have used since it started.
func MachineTime() (total time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	values := strings.Fields(line)
	for i, value := range values {
		if i == 0 || i == 4 || i == 5 || i > 7 { // its name, idle, waiting for disks; what guests used counts already
			continue
		}
		n, _ := strconv.ParseInt(value, 10, 64)
		total += time.Duration(n) * tick
	}
	return total
}

// tick is the unit in which the kernel tells times to programs.
const tick = 10 * time.Millisecond

// ProcessorTime is what a process has used of the processors, its ended threads included, to 10 ms; 0 if it is not there.
func ProcessorTime(pid int) time.Duration { return processorTime(strconv.Itoa(pid), 2) }

// processorTime adds the first fields of: user and system time, and the same of the children that were waited for.
func processorTime(pid string, fields int) (total time.Duration) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	const first = 11 // after the name, which may hold spaces
	values := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	for i := first; i < min(first+fields, len(values)); i++ {
		n, _ := strconv.ParseInt(values[i], 10, 64)
		total += time.Duration(n) * tick
	}
	return total
}
