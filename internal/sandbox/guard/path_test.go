package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWalk follows paths as a process whose root is a folder.
func TestWalk(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	makeFolders(t, root, "inner/deep")
	for name, text := range map[string]string{"absolute": "/inner/deep", "up": "../../..", "inner/beside": "deep/../deep", "loop": "loop", "long": strings.Repeat("inner/../", 80), "here": strings.Repeat("./", 2000)} {
		if err := os.Symlink(text, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"inner/deep": "inner/deep", "/inner//./deep/": "inner/deep", "inner/../inner": "inner", "absolute": "inner/deep", "absolute/..": "inner",
		"/../../inner": "inner", "up/inner": "inner", "inner/beside": "inner/deep", "file": "file", "long/inner": "inner", "here/here//inner/.": "inner", "absolute/../../../..": "",
	} {
		if got, errno := walkFrom(t, root, path); errno != 0 || got != filepath.Join(root, want) {
			t.Errorf("%q leads to %q, %v; want %q", path, got, errno, want)
		}
	}
	for path, want := range map[string]unix.Errno{
		"none": unix.ENOENT, "loop": unix.ELOOP, "long/long": unix.ELOOP, "file/": unix.ENOTDIR, "file/x": unix.ENOTDIR,
		"file/.//": unix.ENOTDIR, "here/file/./": unix.ENOTDIR, strings.Repeat("inner/../", namesAtMost/2+1): unix.ELOOP,
	} {
		if got, errno := walkFrom(t, root, path); errno != want {
			t.Errorf("%q leads to %q, %v; want %v", path, got, errno, want)
		}
	}
}

// TestWalkInProc follows links of /proc, where each process sees its own.
func TestWalkInProc(t *testing.T) {
	folder := t.TempDir()
	makeFolders(t, folder, "inner")
	t.Chdir(folder)
	f, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, path := range []string{
		"/proc/self/cwd/inner", fmt.Sprintf("/proc/self/fd/%d/inner", f.Fd()), fmt.Sprintf("/dev/fd/%d/inner", f.Fd()), "/proc/self/root" + folder + "/inner",
		fmt.Sprintf("/proc/thread-self/fd/%d/inner/../inner", f.Fd()), fmt.Sprintf("/proc/%d/task/%[1]d/cwd/inner", os.Getpid()), "/proc/self/../self/cwd/inner",
	} {
		if got, errno := walkFrom(t, "/", path); errno != 0 || got != folder+"/inner" {
			t.Errorf("%q leads to %q, %v", path, got, errno)
		}
	}
}

// TestWalkWhileRenamed: what is renamed meanwhile, wherever that is, does not keep a path with ".." from being found.
func TestWalkWhileRenamed(t *testing.T) {
	root, other := t.TempDir(), filepath.Join(t.TempDir(), "a")
	makeFolders(t, root, "inner")
	makeFolders(t, other, "")
	var renames sync.WaitGroup
	end := make(chan struct{})
	renames.Go(func() {
		for from, to := other, other+"b"; ; from, to = to, from {
			select {
			case <-end:
				return
			default:
				_ = os.Rename(from, to)
			}
		}
	})
	for range 500 {
		if _, errno := walkFrom(t, root, "inner/../inner"); errno != 0 {
			t.Error(errno)
			break
		}
	}
	close(end)
	renames.Wait()
}

func makeFolders(t *testing.T, root, inner string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, inner), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestLongLinks: links that lead by more names than the longest path has cost no more than that.
func TestLongLinks(t *testing.T) {
	root := t.TempDir()
	for i := range linksAtMost {
		if err := os.Symlink(fmt.Sprintf("link-%d", i+1)+strings.Repeat("/x", 2000), filepath.Join(root, fmt.Sprintf("link-%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	w := startAt(t, root, "link-0")
	defer w.end()
	if errno := w.follow(atOnce); errno != unix.ELOOP || len(w.left) > namesAtMost {
		t.Errorf("%v, with %d names left", errno, len(w.left))
	}
}

// startAt begins to follow a path as this process with a root.
func startAt(t *testing.T, root, path string) *walk {
	t.Helper()
	w := &walk{caller: -1, process: os.Getpid(), thread: os.Getpid(), user: os.Getuid(), left: strings.Split(path, "/")}
	for _, fd := range []*int{&w.root, &w.at} {
		var err error
		if *fd, err = unix.Open(root, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func atOnce(do func() unix.Errno) unix.Errno { return do() }

// walkFrom follows a path as this process with a root, and says where it leads.
func walkFrom(t *testing.T, root, path string) (found string, errno unix.Errno) {
	t.Helper()
	w := startAt(t, root, path)
	defer w.end()
	if errno := w.follow(atOnce); errno != 0 {
		return "", errno
	}
	found, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", w.at))
	if err != nil {
		t.Fatal(err)
	}
	return found, 0
}
