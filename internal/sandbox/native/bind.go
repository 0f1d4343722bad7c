package native

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// openBindRoots opens the folders below which specifications may bind, as they are now; one that is missing has
// nothing to bind.
func openBindRoots(paths []string) (map[string]*os.File, error) {
	roots := map[string]*os.File{}
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("opening %s, which sandboxes shall see: %w", path, err)
		}
		roots[path] = os.NewFile(uintptr(fd), path)
	}
	return roots, nil
}

// openBind opens a folder or file of the host that a specification names, if it lies below one of the roots. Its name alone does not
// decide: links on the way must lead below a root, too.
func (h *helper) openBind(host string) (*os.File, error) {
	for path, root := range h.roots {
		below, err := filepath.Rel(path, filepath.Clean(host))
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			continue
		}
		f, err := openRoot(path, root)
		if err != nil || below == "." {
			return f, err
		}
		defer f.Close()
		fd, err := unix.Openat2(int(f.Fd()), below, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH})
		if err != nil {
			return nil, fmt.Errorf("opening %s to show it in a sandbox: %w", host, err)
		}
		return os.NewFile(uintptr(fd), host), nil
	}
	return nil, fmt.Errorf("%s may not be shown in a sandbox: it is below none of the folders that the server named at its start", host)
}

// openRoot opens a root again, as it was at the start. If it was removed since, it opens the folder in its place, as after a build of
// Forerun. That folder must have the same owner, so that no other user can put a folder there.
func openRoot(path string, root *os.File) (*os.File, error) {
	var was, is unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &was); err != nil {
		return nil, err
	}
	if was.Nlink > 0 {
		fd, err := unix.FcntlInt(root.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), path), nil
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("%s, which sandboxes see, was removed; put it back, or start the server again: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if err := unix.Fstat(fd, &is); err != nil || is.Uid != was.Uid || is.Mode&unix.S_IFMT != was.Mode&unix.S_IFMT {
		f.Close()
		return nil, fmt.Errorf("%s, which sandboxes see, was replaced by something of another kind or owner; start the server again", path)
	}
	return f, nil
}

// openBinds clones the trees of binds where only this process can reach them.
func (h *helper) openBinds(binds []sandbox.Bind) (trees []*os.File, err error) {
	for _, b := range binds {
		host, err := h.openBind(b.Host)
		if err != nil {
			closeAll(trees)
			return nil, err
		}
		var fd int
		if h.root {
			fd, err = unix.OpenTree(int(host.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
		}
		host.Close()
		if err != nil {
			closeAll(trees)
			return nil, fmt.Errorf("showing %s in a sandbox: %w", b.Host, err)
		}
		if h.root {
			trees = append(trees, os.NewFile(uintptr(fd), b.Host))
		}
	}
	return trees, nil
}
