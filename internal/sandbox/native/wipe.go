package native

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// folderMode is the mode of the folders to which all users inside may write.
const folderMode = 0o1777

// wiper empties a folder of any depth without following a link or leaving its mount. It goes down and up again with one descriptor.
type wiper struct {
	top, at int // folders; at is where it works
	depth   int // of at below top
	buffer  []byte
}

// wipe empties the folder dir, if that can be before ctx is done: a process that stays may fill it without an end.
func wipe(ctx context.Context, dir int) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&0o7777 != folderMode { // without user ids of its own a sandbox can change it
		if err := unix.Fchmod(dir, folderMode); err != nil {
			return err
		}
	}
	if err := strip(dir); err != nil {
		return err
	}
	w := wiper{top: dir, at: dir, buffer: make([]byte, 4096)}
	defer w.enter(dir, 0)
	for {
		names, err := w.names()
		if err == nil && len(names) == 0 {
			if w.depth == 0 {
				return nil
			}
			err = w.up()
		} else if err == nil {
			err = w.remove(names)
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// attributes lists the attributes that an opened folder's owner has set. Without user ids of its own, the owner is a sandbox.
func attributes(folder int, buffer []byte) (names []string, err error) {
	n, err := unix.Flistxattr(folder, buffer)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(string(buffer[:n]), "\x00") {
		if strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_") {
			names = append(names, name)
		}
	}
	return names, nil
}

// strip removes them.
func strip(folder int) error {
	n, err := unix.Flistxattr(folder, nil)
	if n == 0 || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	var names []string
	if err == nil {
		names, err = attributes(folder, make([]byte, n))
	}
	if err != nil {
		return fmt.Errorf("listing a folder's attributes: %w", err)
	}
	for _, name := range names {
		if err := unix.Fremovexattr(folder, name); err != nil {
			return fmt.Errorf("removing a folder's attribute %q: %w", name, err)
		}
	}
	return nil
}

// enter makes dir the folder to work in.
func (w *wiper) enter(dir, depth int) {
	if w.at != w.top {
		_ = unix.Close(w.at)
	}
	w.at, w.depth = dir, depth
}

// names returns some of the names in the folder, none if it is empty.
func (w *wiper) names() ([]string, error) {
	if _, err := unix.Seek(w.at, 0, 0); err != nil {
		return nil, err
	}
	for {
		n, err := unix.ReadDirent(w.at, w.buffer)
		if err != nil || n == 0 {
			return nil, err
		}
		if _, _, names := unix.ParseDirent(w.buffer[:n], -1, nil); len(names) > 0 { // without . and ..
			return names, nil
		}
	}
}

// remove removes the names, up to a folder that is not empty: that one it enters.
func (w *wiper) remove(names []string) error {
	for _, name := range names {
		err := unix.Unlinkat(w.at, name, 0)
		if err == unix.EISDIR {
			err = unix.Unlinkat(w.at, name, unix.AT_REMOVEDIR)
		}
		if err == unix.ENOTEMPTY {
			return w.down(name)
		}
		if err != nil && !hasMoved(err) {
			return fmt.Errorf("removing %q: %w", name, err)
		}
	}
	return nil
}

// hasMoved reports whether a name was another's as something was done to it: a process that stays has renamed or removed it meanwhile. The
// folder is listed again.
func hasMoved(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

const openFolder = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// down enters a folder, to which its owner may have forbidden itself the access.
func (w *wiper) down(name string) error {
	handle, err := unix.Openat(w.at, name, unix.O_PATH|openFolder, 0)
	if hasMoved(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("entering %q: %w", name, err)
	}
	defer unix.Close(handle)
	if err := unix.Chmod("/proc/self/fd/"+strconv.Itoa(handle), 0o700); err != nil {
		return fmt.Errorf("entering %q: %w", name, err)
	}
	sub, err := unix.Openat(handle, ".", unix.O_RDONLY|openFolder, 0)
	if err != nil {
		return fmt.Errorf("entering %q: %w", name, err)
	}
	w.enter(sub, w.depth+1)
	return nil
}

// up goes back to the folder above, which then finds the one it comes from empty.
func (w *wiper) up() error {
	if w.depth == 1 {
		w.enter(w.top, 0)
		return nil
	}
	above, err := unix.Openat2(w.at, "..", &unix.OpenHow{Flags: unix.O_RDONLY | openFolder, Resolve: unix.RESOLVE_NO_XDEV})
	if err != nil {
		return fmt.Errorf("going up from a folder: %w", err)
	}
	w.enter(above, w.depth-1)
	return nil
}
