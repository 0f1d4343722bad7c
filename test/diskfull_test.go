package test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestDiskFull has something else fill the disk of a server, to the last byte, and free it again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a disk to fill is mounted, which takes root")
	}
	needPackages(t)
	disk := smallDisk(t, 96)
	s := start(t, server.Options{Data: filepath.Join(disk, "data"), Redis: true})
	c, r := client(t, s), redisClient(s)
	defer r.Close()
	putPython(t, c, map[string]string{"echo": "def main(args):\n    return args\n", "spare": "def main(args):\n    return {}\n"})
	before := invoke(t, c, "echo", map[string]string{"a": "b"})
	if err := r.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	filler := fill(t, disk)

	eventually(t, func() bool {
		err := r.Set(t.Context(), "k", strings.Repeat("x", 64<<10), 0).Err()
		return err != nil && strings.HasPrefix(err.Error(), "MISCONF") && strings.Contains(err.Error(), "disk is full")
	})
	for request, body := range map[string]any{
		"PUT actions/new":                 map[string]any{"exec": map[string]string{"kind": "python:3", "code": "def main(args):\n    return {}\n"}},
		"POST actions/echo?blocking=true": map[string]string{},
		"POST actions/echo":               map[string]string{},
	} {
		method, path, _ := strings.Cut(request, " ")
		status, answer, err := c.Do(t.Context(), method, path, body)
		if err != nil || status != http.StatusInsufficientStorage || !strings.Contains(string(answer), "disk is full") {
			t.Errorf("%s is answered %d %s, %v", request, status, answer, err)
		}
	}
	if err := r.Get(t.Context(), "k").Err(); err != nil {
		t.Errorf("a read: %v", err)
	}
	equalJSON(t, stored(t, c, before.ActivationID).Response.Result, `{"a":"b"}`)
	if err := c.Get(t.Context(), "actions/echo", new(any)); err != nil {
		t.Error(err)
	}

	if full := gauge(t, s, "forerun_store_full"); full != "1" {
		t.Errorf("the metric says %s", full)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return r.Set(t.Context(), "k", "w", 0).Err() == nil })
	equalJSON(t, invoke(t, c, "echo", map[string]string{"c": "d"}).Response.Result, `{"c":"d"}`)
	if err := c.Delete(t.Context(), "spare"); err != nil {
		t.Error(err)
	}
}

// TestDiskFilledByATenant has one tenant store all that the disk takes, and remove it again. Meanwhile the operator rotates keys, and suspends and
// deletes other tenants. Then all are served as before.
func TestDiskFilledByATenant(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a disk to fill is mounted, which takes root")
	}
	disk := smallDisk(t, 256)
	s := start(t, server.Options{Data: filepath.Join(disk, "data"), Redis: true, Args: []string{"--stored-megabytes", "none"}})
	c := client(t, s)
	putPython(t, c, map[string]string{"echo": echoes})
	r := redisAs(t, s, operate(t, s, "create", "ada"))
	putRules(t, c)
	operate(t, s, "create", "bob")
	operate(t, s, "create", "eve")
	n := 0
	noise := make([]byte, 1<<19)
	for refused := error(nil); refused == nil; n++ {
		_, _ = rand.Read(noise) // crypto/rand.Read never fails (Go 1.24)
		refused = r.Set(t.Context(), "k"+strconv.Itoa(n), noise, 0).Err()
		if refused != nil && !strings.HasPrefix(refused.Error(), "MISCONF") {
			t.Fatal(refused)
		}
	}
	if code, answer := status(t, c, "POST", "actions/echo?blocking=true", map[string]string{}); code != http.StatusInsufficientStorage {
		t.Errorf("the disk is not full: %d %s", code, answer)
	}
	stopRules(t, c)
	if key := operate(t, s, "rotate", "eve"); key == "" {
		t.Error("no new key")
	}
	operate(t, s, "suspend", "eve")
	operate(t, s, "resume", "eve")
	operate(t, s, "update", "bob", "--stored-megabytes", "7")
	operate(t, s, "delete", "bob")
	for i := range n {
		if err := r.Del(t.Context(), "k"+strconv.Itoa(i)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() bool { // without a restart
		code, _ := status(t, c, "POST", "actions/echo?blocking=true", map[string]string{})
		return code == http.StatusOK
	})
	if err := r.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Error(err)
	}
}

// TestRecordsDoNotFillTheDisk has a tenant's functions return more than the disk takes, in a burst. The server takes what is new at any moment,
// and another tenant is served.
func TestRecordsDoNotFillTheDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a disk to fill is mounted, which takes root")
	}
	s := start(t, server.Options{Data: filepath.Join(smallDisk(t, 160), "data")})
	c, ada := client(t, s), as(t, s, operate(t, s, "create", "ada"))
	putPython(t, c, map[string]string{"noise": "import os\ndef main(args):\n    return {'noise': os.urandom(2_900_000).hex()}\n"})
	putPython(t, ada, map[string]string{"echo": echoes})
	full := 0
	for range 40 { // 230 MB, of which half is noise
		code, answer := status(t, c, "POST", "actions/noise?blocking=true&result=false", map[string]string{})
		if code == http.StatusInsufficientStorage && strings.Contains(answer, "disk is full") {
			full++
		}
		if code, answer := status(t, ada, "POST", "actions/echo?blocking=true", map[string]string{}); code != http.StatusOK {
			t.Errorf("another tenant: %d %.200s", code, answer)
		}
	}
	d := storedBy(t, s, "guest")
	if full > 0 || d.Records == 0 || d.Records > *d.Allowed {
		t.Errorf("the disk was full %d times; stored: %+v", full, d)
	}
}

// putRules makes a trigger with three rules for the action echo.
func putRules(t *testing.T, c *server.Client) {
	t.Helper()
	if code, answer := status(t, c, "PUT", "triggers/fired", map[string]any{}); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	for _, rule := range []string{"stopped", "removed", "left"} {
		if code, answer := status(t, c, "PUT", "rules/"+rule, map[string]string{"trigger": "/_/fired", "action": "/_/echo"}); code != http.StatusOK {
			t.Fatal(code, answer)
		}
	}
}

// stopRules ends what might fill a disk or a quota that is full, and finds that nothing can be begun.
func stopRules(t *testing.T, c *server.Client) {
	t.Helper()
	for _, x := range []struct {
		method, path, state string
		want                int
	}{
		{"POST", "rules/stopped", "inactive", http.StatusOK},
		{"POST", "rules/stopped", "active", http.StatusInsufficientStorage},
		{"DELETE", "rules/removed", "", http.StatusOK},
		{"DELETE", "triggers/fired", "", http.StatusOK},
	} {
		if code, answer := status(t, c, x.method, x.path, map[string]string{"status": x.state}); code != x.want {
			t.Errorf("%s %s %s is answered %d %s, want %d", x.method, x.path, x.state, code, answer, x.want)
		}
	}
}

// smallDisk mounts a disk of so many MB.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", size)); err != nil {
		t.Skip("a disk to fill cannot be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// fill takes all room of a disk with one file.
func fill(t *testing.T, disk string) (file string) {
	t.Helper()
	file = filepath.Join(disk, "filler")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4 << 10} {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	return file
}
