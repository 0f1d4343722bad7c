package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Descendants are the ids of a process, and of all that it and they have started and that have not ended.
func Descendants(pid int) []string {
	all := []string{strconv.Itoa(pid)}
	for _, child := range Children(pid) {
		all = append(all, Descendants(child)...)
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

// TreeFaults is how many page faults a process and its descendants have had. It counts the processes that ended and were waited for, too.
func TreeFaults(pid int) (total int64) {
	const own, waitedFor = 7, 8
	for _, process := range Descendants(pid) {
		_, values := stat(process)
		for _, i := range []int{own, waitedFor} {
			if i < len(values) {
				n, _ := strconv.ParseInt(values[i], 10, 64)
				total += n
			}
		}
	}
	return total
}

// Children are the ids of the processes that a process has started and that have not ended.
func Children(pid int) (ids []int) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children") // the pattern is well-formed
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// MachineTime is the processor time that all processes of the machine have used since it started, and what its neighbours on the
// same host have kept it from using.
func MachineTime() (used, stolen time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	const stolenField = 8
	for i, value := range strings.Fields(line) {
		n, _ := strconv.ParseInt(value, 10, 64)
		switch i {
		case 0, 4, 5: // its name, idle, waiting for disks
		case stolenField:
			return used, time.Duration(n) * tick // what guests used counts already
		default:
			used += time.Duration(n) * tick
		}
	}
	return used, 0
}

// tick is the unit in which the kernel tells times to programs.
const tick = 10 * time.Millisecond

// ProcessorTime is what a process has used of the processors, its ended threads included, to 10 ms; 0 if it is not there.
func ProcessorTime(pid int) time.Duration { return processorTime(strconv.Itoa(pid), 2) }

// processorTime adds the first fields of: user and system time, and the same of the children that were waited for.
func processorTime(pid string, fields int) (total time.Duration) {
	_, values := stat(pid)
	const first = 11
	for i := first; i < min(first+fields, len(values)); i++ {
		n, _ := strconv.ParseInt(values[i], 10, 64)
		total += time.Duration(n) * tick
	}
	return total
}

// stat is the name of a process, which may hold spaces, and what the kernel tells of it after that; nothing if it is not there.
func stat(pid string) (name string, values []string) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", nil
	}
	_, name, _ = strings.Cut(string(text), "(")
	end := strings.LastIndexByte(name, ')')
	if end < 0 {
		return "", nil
	}
	return name[:end], strings.Fields(name[end+1:])
}
