package sandboxtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// busy are processes with several threads that write files, until something ends them.
const busy = `
import threading
def write(top):
    n = 0
    while True:
        n += 1
        try: open('%s/%d-%d' % (top, os.getpid(), n % 100), 'w').close()
        except OSError: pass
for _ in range(3):
    if os.fork() == 0:
        for n in range(6): threading.Thread(target=write, args=(('/tmp', '/dev/shm')[n % 2],)).start()
        write('/tmp')
while not os.listdir('/tmp') or not os.listdir('/dev/shm'): pass`

// taskStat is a task's line in stat from its state on, none if it has ended.
func taskStat(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// acting lists the threads of processes that may still execute something.
func acting(pids []int) (found []string) {
	const exiting = 0x4 // PF_EXITING
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // fails for a wrong pattern only
		for _, path := range threads {
			stat := taskStat(path)
			if stat == nil {
				continue
			}
			if flags, err := strconv.Atoi(stat[6]); err != nil || flags&exiting == 0 {
				found = append(found, path+": "+strings.Join(stat[:7], " "))
			}
		}
	}
	return found
}

// siblings lists the children of an orphan's parent, itself excepted: of a sandbox's initializer.
func siblings(t *testing.T, pid int) (found []int) {
	t.Helper()
	stat := taskStat(fmt.Sprintf("/proc/%d/stat", pid))
	if stat == nil {
		t.Fatal("the process has ended")
	}
	list, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", stat[1], stat[1]))
	if err != nil {
		t.Skip("this kernel does not list a process's children: ", err)
	}
	for _, name := range strings.Fields(string(list)) {
		if child, err := strconv.Atoi(name); err == nil && child != pid {
			found = append(found, child)
		}
	}
	return found
}

// testStrike: what was struck is not waited for to its end, but does nothing more.
func (s *suite) testStrike(t *testing.T) {
	a := s.agent(t)
	spare := a.host("")
	for range 20 {
		child := a.host(busy)
		victims := siblings(t, spare)
		if len(victims) < 4 || !slices.Contains(victims, child) {
			t.Fatalf("there are %v", victims)
		}
		if err := a.Strike(t.Context(), spare); err != nil {
			t.Fatal(err)
		}
		if left := acting(victims); len(left) > 0 {
			t.Fatalf("these may still do something:\n%s", strings.Join(left, "\n"))
		}
		a.expect("[] []", "import os\nresult = '%s %s' % (os.listdir('/tmp'), os.listdir('/dev/shm'))")
	}
	if killed, err := a.Reset(t.Context(), spare); err != nil || killed != 0 || !running(spare) {
		t.Errorf("a reset kills %d processes, %v; the spare runs: %v", killed, err, running(spare))
	}
}

// testStrikeLarge: memory that the next activation may miss is given back first.
func (s *suite) testStrikeLarge(t *testing.T) {
	a := s.agent(t)
	for range 3 {
		large := a.host("held = b'x' * (90 << 20)")
		if err := a.Strike(t.Context()); err != nil {
			t.Fatal(err)
		}
		if running(large) {
			t.Error("a process with most of the memory was not waited for")
		}
	}
	a.expect("ok", "x = b'x' * (90 << 20)\nresult = 'ok'")
	if kills, err := a.OOMKills(); err != nil || kills != 0 {
		t.Errorf("%d processes were killed for memory, %v", kills, err)
	}
}
