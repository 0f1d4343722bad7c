package native

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// folderMode is that of the folders that everybody inside may write to.
const folderMode = 0o1777

// wipe empties the folder dir without following a link, however deep it is: the folders in a subfolder are moved up
// before the subfolder is removed, so that few descriptors are enough. Nobody may be working in it.
func wipe(dir int) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&0o7777 != folderMode { // without user ids of its own a sandbox can change it
		if err := unix.Fchmod(dir, folderMode); err != nil {
			return err
		}
	}
	moved := 0
	return eachName(dir, func(name string) error {
		err := unix.Unlinkat(dir, name, 0)
		if err != unix.EISDIR {
			return err
		}
		if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != unix.ENOTEMPTY {
			return err
		}
		if err := flatten(dir, name, &moved); err != nil {
			return err
		}
		return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	})
}

// eachName calls remove with names in dir until there are none; remove takes each of them away.
func eachName(dir int, remove func(name string) error) error {
	buffer := make([]byte, 8192)
	for {
		names, err := readNames(dir, buffer)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := remove(name); err != nil {
				return fmt.Errorf("removing %q: %w", name, err)
			}
		}
	}
}

// readNames returns some of the names in dir, none if it is empty.
func readNames(dir int, buffer []byte) ([]string, error) {
	if _, err := unix.Seek(dir, 0, 0); err != nil {
		return nil, err
	}
	for {
		n, err := unix.ReadDirent(dir, buffer)
		if err != nil || n == 0 {
			return nil, err
		}
		if _, _, names := unix.ParseDirent(buffer[:n], -1, nil); len(names) > 0 { // without . and ..
			return names, nil
		}
	}
}

// flatten removes the files in the folder name of dir and moves its folders to dir, under names that nobody has.
func flatten(dir int, name string, moved *int) error {
	if err := allow(dir, name); err != nil {
		return err
	}
	sub, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(sub)
	return eachName(sub, func(name string) error {
		err := unix.Unlinkat(sub, name, 0)
		if err != unix.EISDIR {
			return err
		}
		if err := allow(sub, name); err != nil { // moving a folder writes to it
			return err
		}
		for err = unix.EEXIST; err == unix.EEXIST; *moved++ {
			err = unix.Renameat2(sub, name, dir, "moved-"+strconv.Itoa(*moved), unix.RENAME_NOREPLACE)
		}
		return err
	})
}

// allow gives the owner of a folder the rights that it may have taken from itself.
func allow(dir int, name string) error {
	handle, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(handle)
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(handle), 0o700)
}
