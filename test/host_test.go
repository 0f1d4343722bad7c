package test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// footprint is what a running server was seen to have on the host: what must be gone when it is.
type footprint struct {
	processes  map[string]bool // "pid start-time" of it and all its descendants
	namespaces map[string]bool // "net:[4026531840]" of those that were there when it was last observed, ours excepted
	strangers  map[string]bool // processes that were there then, too, and in none of these
	data       string
	observed   int64 // when that was, in the kernel's ticks since the boot
}

func newFootprint(data string) *footprint {
	return &footprint{processes: make(map[string]bool), namespaces: make(map[string]bool), data: data}
}

// observe adds what a process and its descendants have now. The kernel gives the number of a namespace that is gone to a new
// one, so only those that are there now are looked for later, and only in processes that are there now and no strangers: another
// server's may be about to get its own.
func (f *footprint) observe(pid int) {
	f.namespaces, f.strangers = make(map[string]bool), make(map[string]bool)
	f.add(pid)
	for _, other := range allProcesses() {
		if id := identity(other); id != "" && !f.processes[id] && len(f.shared(other)) == 0 {
			f.strangers[id] = true
		}
	}
	f.observed = ticks()
}

// shared lists the namespaces of the footprint that a process is in.
func (f *footprint) shared(pid int) (found []string) {
	for namespace := range namespacesOf(pid) {
		if f.namespaces[namespace] {
			found = append(found, namespace)
		}
	}
	return found
}

func (f *footprint) add(pid int) {
	if id := identity(pid); id != "" {
		f.processes[id] = true
	}
	maps.Copy(f.namespaces, namespacesOf(pid))
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, file := range children {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(child); err == nil {
				f.add(id)
			}
		}
	}
}

// ticks is the time since the boot in hundredths of a second, as processes' start times are given.
func ticks() int64 {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	up, _, _ := strings.Cut(string(text), " ")
	seconds, _ := strconv.ParseFloat(up, 64) // the kernel's own form
	return int64(seconds * 100)
}

// started is when the process of an identity was started, in ticks.
func started(id string) int64 {
	_, start, _ := strings.Cut(id, " ")
	at, _ := strconv.ParseInt(start, 10, 64) // the kernel's own form
	return at
}

// identity tells a process from a later one with the same id; empty if there is none or it is only waited for.
func identity(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fmt.Sprintf("%d %s", pid, fields[19])
}

// namespacesOf lists the namespaces of a process that are not ours.
func namespacesOf(pid int) map[string]bool {
	found := make(map[string]bool)
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		ours, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			continue
		}
		if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind)); err == nil && theirs != ours {
			found[theirs] = true
		}
	}
	return found
}

// left lists what of the footprint is still there.
func (f *footprint) left() (found []string) {
	for _, pid := range allProcesses() {
		id := identity(pid)
		if f.processes[id] {
			found = append(found, fmt.Sprintf("process %d (%s)", pid, commandLine(pid)))
		}
		if id == "" || started(id) > f.observed || f.strangers[id] {
			continue
		}
		for _, namespace := range f.shared(pid) {
			found = append(found, fmt.Sprintf("namespace %s, of process %d (%s)", namespace, pid, commandLine(pid)))
		}
	}
	return slices.Concat(found, f.mounts(), f.cgroups())
}

func allProcesses() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty if it has ended
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

// mounts lists the host's mounts that hold one of the namespaces, or belong to the data.
func (f *footprint) mounts() (found []string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return []string{err.Error()}
	}
	for line := range strings.Lines(string(text)) {
		ours := strings.Contains(line, f.data)
		for namespace := range f.namespaces {
			ours = ours || strings.Contains(line, namespace)
		}
		if ours {
			found = append(found, "mount "+strings.TrimSpace(line))
		}
	}
	return found
}

// cgroups lists the folders of the hierarchies whose name begins with a sum of the data folder's, and ends with the id of one of the
// processes.
func (f *footprint) cgroups() (found []string) {
	sum := sha256.Sum256([]byte(f.data))
	instances := "/forerun/" + hex.EncodeToString(sum[:6]) + "-"
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // it has just been removed
		}
		for id := range f.processes {
			pid, _, _ := strings.Cut(id, " ")
			if strings.Contains(path, instances) && strings.HasSuffix(path, "-"+pid) {
				found = append(found, "cgroup "+path)
			}
		}
		return nil
	})
	return found
}

// mustVanish waits until nothing of the footprint is left, and returns how long that took.
func (f *footprint) mustVanish(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		left := f.left()
		if len(left) == 0 {
			return time.Since(begin)
		}
		if time.Since(begin) > patience {
			t.Fatalf("%v after the end of the server there are still:\n%s", patience, strings.Join(left, "\n"))
		}
		<-tick.C
	}
}

// links lists the host's network links.
func links(t *testing.T) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	return names
}
