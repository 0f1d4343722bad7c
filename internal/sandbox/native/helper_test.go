package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// sleeper is a specification of a sandbox that does nothing until it is closed.
func sleeper(id string) sandbox.Spec {
	return sandbox.Spec{ID: id, Argv: []string{"/bin/sleep", "1000"}, Env: []string{"PATH=/bin"}, MemoryMiB: 64, Processes: 16, TmpMiB: 4, CodeMiB: 4}
}

func startHelper(t testing.TB, c Config) *Maker {
	t.Helper()
	if c.DataDir == "" {
		c.DataDir = t.TempDir()
	}
	m, err := StartHelper(c)
	if err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func startSleeper(t testing.TB, m *Maker, id string) *serverSandbox {
	t.Helper()
	s, err := m.Start(t.Context(), sleeper(id))
	if err != nil {
		t.Fatal(err)
	}
	return s.(*serverSandbox)
}

// sandboxed lists the processes whose parent is the helper: the first processes of its sandboxes.
func sandboxed(m *Maker) []int { return children(m.helper.Process.Pid) }

// cgroupsOf finds the cgroups of all instances of a data folder, in every hierarchy.
func cgroupsOf(dataDir string) (found []string) {
	for _, at := range cgroupMounts() {
		found = append(found, glob(filepath.Join(at, "forerun"), instancePrefix(dataDir)+"*")...)
	}
	return found
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		left := 0
		for _, pid := range pids {
			if alive(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %v still run", left, pids)
		}
	}
}

func TestServerEndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	m := startHelper(t, Config{DataDir: dir})
	sandboxes := []*serverSandbox{startSleeper(t, m, "a"), startSleeper(t, m, "b")}
	pids := append(sandboxed(m), m.helper.Process.Pid)
	if len(pids) != 3 {
		t.Fatalf("the helper's children are %v", pids)
	}
	m.link.conn.Close() // as the helper sees it when the server is killed
	if err := sandboxes[0].Close(); err != nil {
		t.Errorf("closing a sandbox whose helper is ending: %v", err)
	}
	<-m.Done()
	gone(t, pids)
	for _, b := range sandboxes {
		<-b.Done()
	}
	if left := cgroupsOf(dir); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), "/action") {
		t.Errorf("mounts are left: %v", err)
	}
}

func TestHelperKilled(t *testing.T) {
	dir := t.TempDir()
	m := startHelper(t, Config{DataDir: dir})
	b := startSleeper(t, m, "a")
	pids := sandboxed(m)
	if err := m.helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-m.Done()
	if err := m.Err(); err == nil || !strings.Contains(err.Error(), "helper") {
		t.Errorf("the maker says %v", err)
	}
	<-b.Done()
	gone(t, pids) // by their parent-death signal
	if _, err := b.Reset(t.Context()); err == nil {
		t.Error("a sandbox can be reset without a helper")
	}
	if err := b.Close(); err != nil {
		t.Errorf("closing a sandbox whose helper has gone: %v", err)
	}
	if _, err := m.Start(t.Context(), sleeper("b")); err == nil {
		t.Error("a sandbox can be started without a helper")
	}
	// The next instance of the same data folder finds the cgroups that were not removed.
	if left := cgroupsOf(dir); len(left) == 0 && m.limited() {
		t.Error("a killed helper has removed its cgroups")
	}
	next := startHelper(t, Config{DataDir: dir})
	for _, group := range cgroupsOf(dir) {
		if !strings.HasSuffix(group, "-"+strconv.Itoa(next.helper.Process.Pid)) {
			t.Errorf("%s is left of a dead instance", group)
		}
	}
}

func (m *Maker) limited() bool {
	for _, e := range m.Enforced() {
		if e.What == "memory limit" {
			return e.On
		}
	}
	return false
}

// TestSpent: the processor time of sandboxes and the helper is counted, also of ended ones.
func TestSpent(t *testing.T) {
	m := startHelper(t, Config{DataDir: t.TempDir()})
	b := startSleeper(t, m, "a")
	if _, ok := cgroupMounts()[""]; !ok {
		t.Skip("this machine has no cgroups of version 2")
	}
	first, known := m.Spent()
	if !known {
		t.Error("it is not known after a start")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if second, _ := m.Spent(); second <= first {
		t.Errorf("%v after the sandbox's end, %v before it", second, first)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, known := m.Spent(); known {
		t.Error("it is known without a helper")
	}
}

// TestLeftoversEnd has a process in the cgroup of an instance that no longer exists.
func TestLeftoversEnd(t *testing.T) {
	dir := t.TempDir()
	m := startHelper(t, Config{DataDir: dir})
	if !m.limited() {
		t.Skip("there are no cgroups here")
	}
	startSleeper(t, m, "a")
	pids := sandboxed(m)
	// A second instance takes the first's sandboxes for leftovers, as it would after a crash.
	startHelper(t, Config{DataDir: dir})
	gone(t, pids)
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestManySandboxesLeakNothing(t *testing.T) {
	m := startHelper(t, Config{})
	cycle := func(n int) {
		b := startSleeper(t, m, fmt.Sprintf("s-%d", n))
		if _, err := b.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	helper := m.helper.Process.Pid
	cycle(0) // opened once
	before := [2]int{descriptors(t, os.Getpid()), descriptors(t, helper)}
	for n := range 200 {
		cycle(n + 1)
	}
	// Goroutines close their files a moment after the reply.
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		after := [2]int{descriptors(t, os.Getpid()), descriptors(t, helper)}
		if after[0] <= before[0] && after[1] <= before[1] {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("server and helper had %v descriptors open, after 200 sandboxes %v", before, after)
		}
	}
	if left := sandboxed(m); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestHostIDs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives sandboxes user ids of their own")
	}
	m := startHelper(t, Config{})
	startSleeper(t, m, "a")
	startSleeper(t, m, "b")
	seen := map[uint32]bool{}
	for _, pid := range sandboxed(m) {
		var st unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &st); err != nil {
			t.Fatal(err)
		}
		if st.Uid < firstHostID || st.Uid%idsPerRange != (firstHostID+insideUID)%idsPerRange || st.Uid != st.Gid {
			t.Errorf("process %d is user %d, group %d", pid, st.Uid, st.Gid)
		}
		seen[st.Uid] = true
	}
	if len(seen) != 2 {
		t.Errorf("two sandboxes have the users %v", seen)
	}
}

// usersOf are the users of a helper's sandboxes.
func usersOf(t *testing.T, m *Maker) (users []uint32) {
	t.Helper()
	for _, pid := range sandboxed(m) {
		var st unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &st); err != nil {
			t.Fatal(err)
		}
		users = append(users, st.Uid)
	}
	return users
}

// TestServersShareNoIDs: sandboxes of two servers on a machine never have the same users at a time, and a server that died holds none.
func TestServersShareNoIDs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives sandboxes user ids of their own")
	}
	one, two := startHelper(t, Config{}), startHelper(t, Config{})
	for n := range 5 {
		startSleeper(t, one, fmt.Sprint("s-", n))
		startSleeper(t, two, fmt.Sprint("s-", n))
	}
	users := append(usersOf(t, one), usersOf(t, two)...)
	if slices.Sort(users); len(slices.Compact(slices.Clone(users))) != 10 {
		t.Errorf("ten sandboxes have the users %v", users)
	}
}

// TestHelperIsConfined: every thread of the helper has the capabilities that it uses, no way to others, and a system-call filter.
func TestHelperIsConfined(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's helper has capabilities")
	}
	m := startHelper(t, Config{})
	startSleeper(t, m, "a")
	mask := uint64(0)
	for _, c := range helperCapabilities() {
		mask |= 1 << c
	}
	want := fmt.Sprintf("%016x", mask)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", m.helper.Process.Pid))
	if err != nil || len(threads) < 2 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		has := map[string]string{}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			has[name] = strings.TrimSpace(value)
		}
		if has["CapPrm"] != want || has["CapEff"] != want || has["CapBnd"] != want || strings.Trim(has["CapInh"]+has["CapAmb"], "0") != "" || has["Seccomp"] != "2" {
			t.Errorf("%s: permitted %s, effective %s, bounding %s, filter %s; want %s", thread, has["CapPrm"], has["CapEff"], has["CapBnd"], has["Seccomp"], want)
		}
	}
}

// TestIDLocks: a range is another server's until that frees it, or ends in any way.
func TestIDLocks(t *testing.T) {
	folder := t.TempDir()
	open := func() idLocks {
		l, err := openIDLocks(folder)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	one, two := open(), open()
	defer two.file.Close()
	if !one.take(0) || !one.take(7) || two.take(7) || !two.take(8) || one.take(8) {
		t.Error("a range is given to two, or to none")
	}
	if one.free(7); !two.take(7) {
		t.Error("a freed range is not to be had")
	}
	if one.file.Close(); !two.take(0) {
		t.Error("the ranges of a server that has ended are not to be had")
	}
}

// TestMemoryOfAll: all sandboxes together have no more memory than the server, whatever each may use.
func TestMemoryOfAll(t *testing.T) {
	m := startHelper(t, Config{MemoryMiB: 48})
	for _, e := range m.Enforced() {
		if e.What == "memory limit" && !e.On {
			t.Skip("memory is not limited here: ", e.Why)
		}
	}
	large := sleeper("large")
	large.MemoryMiB, large.Argv = 512, []string{"/bin/sh", "-c", "head -c 400M /dev/zero | tail | wc -c"}
	s, err := m.Start(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	stdout, _ := s.Output()
	if got, err := io.ReadAll(stdout); err != nil || strings.TrimSpace(string(got)) != "0" {
		t.Errorf("of 400 MiB it keeps %s, %v", got, err)
	}
}

func TestHelperIsSmall(t *testing.T) {
	m := startHelper(t, Config{})
	const sandboxes = 30
	for n := range sandboxes {
		startSleeper(t, m, fmt.Sprint("s-", n))
	}
	if threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", m.helper.Process.Pid)); err != nil || len(threads) >= sandboxes {
		t.Errorf("the helper has %d threads for %d sandboxes, %v", len(threads), sandboxes, err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.helper.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "RssAnon:" {
			if kib, err := strconv.Atoi(f[1]); err != nil || kib > 32<<10 {
				t.Errorf("the helper's own memory: %s KiB, %v", f[1], err)
			}
			return
		}
	}
	t.Error("the kernel does not tell the helper's memory")
}

// TestNames resolves through a nameserver that the test is.
func TestNames(t *testing.T) {
	const server = "127.0.0.77"
	udp, err := net.ListenPacket("udp", server+":53")
	if err != nil {
		t.Skipf("this user cannot be a nameserver: %v", err)
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp", server+":53")
	if err != nil {
		t.Skipf("this user cannot be a nameserver: %v", err)
	}
	defer tcp.Close()
	go func() { // answers everything with itself, backwards enough to be told from an echo
		b := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(append([]byte("udp:"), b[:n]...), from)
		}
	}()
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, io.MultiReader(strings.NewReader("tcp:"), c))
			c.Close()
		}
	}()
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("# comment\nsearch x\nnameserver "+server+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := startHelper(t, Config{ResolvConf: conf})
	spec := sleeper("names")
	spec.Argv = []string{"/usr/bin/bash", "-c", `exec 5<>/dev/udp/127.0.0.1/53; printf query >&5; head -c 9 <&5; echo; exec 6<>/dev/tcp/127.0.0.1/53; printf query >&6; head -c 9 <&6`}
	s, err := m.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(2 * time.Minute):
	}
	stdout, _ := s.Output()
	b := make([]byte, 100)
	n, _ := stdout.Read(b)
	if got := string(b[:n]); got != "udp:query\ntcp:query" {
		t.Errorf("through the relay: %q", got)
	}
}

func TestNameservers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if got, err := nameservers(path); err != nil || len(got) != 1 || got[0] != "127.0.0.1:53" {
		t.Errorf("without a file: %v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("nameserver 10.0.0.1\n#nameserver 10.0.0.2\nnameserver  fe80::1%eth0\nnameserver\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := nameservers(path); err != nil || len(got) != 2 || got[0] != "10.0.0.1:53" || got[1] != "[fe80::1%eth0]:53" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestStartIsCancelled(t *testing.T) {
	m := startHelper(t, Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("because")
	cancel(because)
	if _, err := m.Start(ctx, sleeper("a")); !errors.Is(err, because) {
		t.Errorf("%v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sandboxes) > 0 || len(m.waiting) > 0 {
		t.Errorf("the maker still knows %d sandboxes and %d requests", len(m.sandboxes), len(m.waiting))
	}
}
