package native

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// base is what every sandbox sees of the host, read-only, where it exists. Symbolic links are made again.
var base = []string{
	"/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/share/zoneinfo", "/usr/share/ca-certificates",
	"/bin", "/lib", "/lib64", "/etc/ssl", "/etc/pki/tls", "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/localtime",
	"/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/mime.types", "/etc/alternatives",
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// written are the small files of every sandbox.
var written = map[string]string{
	"/etc/passwd":      "root:x:0:0:root:/:/usr/bin/false\nfn:x:1000:1000:function:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/bin/false\n",
	"/etc/group":       "root:x:0:\nfn:x:1000:\nnogroup:x:65534:\n",
	"/etc/hosts":       "127.0.0.1 localhost fn\n::1 localhost\n",
	"/etc/resolv.conf": "nameserver 127.0.0.1\n",
	"/etc/hostname":    hostname + "\n",
}

var links = map[string]string{
	"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
}

// Parts of /proc that tell about the host or reach its kernel. All of /proc is read-only anyway. That also keeps a handler from writing to
// the memory of the initializer or the spare, which are processes of its own user.
var (
	maskedFiles = []string{
		"buddyinfo", "cmdline", "config.gz", "consoles", "crypto", "devices", "diskstats", "dma", "execdomains", "interrupts", "iomem", "ioports",
		"kallsyms", "kcore", "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "locks", "mdstat", "misc", "modules",
		"mtrr", "pagetypeinfo", "partitions", "sched_debug", "schedstat", "slabinfo", "softirqs", "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo",
		"vmcore", "zoneinfo", "sys/fs/dentry-state", "sys/fs/file-nr", "sys/fs/inode-nr", "sys/fs/inode-state", "sys/kernel/random/boot_id",
	}
	maskedFolders = []string{"acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "pressure", "scsi", "sysvipc", "tty"}
)

// inodes bounds the files of one writable folder; each costs the kernel about a kilobyte.
const inodes = 65536

// mounted is a host's tree, cloned but not attached yet, and where it belongs.
type mounted struct {
	fd   int
	at   string
	file bool
}

// buildRoot makes a tmpfs with an allow-list of the host's folders the root of this mount namespace. fds are the
// trees of p.binds if the helper opened them, since this process may not be able to.
func buildRoot(p plan, files []sandbox.File, fds []int) error {
	unix.Umask(0)
	trees, symlinks, err := openHost(p.binds, fds)
	if err != nil {
		return err
	}
	nodes, err := openDevices()
	if err != nil {
		return err
	}
	if err := enterRoot(); err != nil {
		return err
	}
	if err := fillRoot(trees, symlinks, files); err != nil {
		return err
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}); err != nil {
		return fmt.Errorf("making the root read-only: %w", err)
	}
	for _, n := range nodes {
		if err := attachDevice(n); err != nil {
			return err
		}
	}
	if err := maskProc(); err != nil {
		return err
	}
	return mountWritable(p)
}

// openHost clones the trees of the host that the sandbox shall see.
func openHost(binds []sandbox.Bind, fds []int) (trees []mounted, symlinks map[string]string, err error) {
	symlinks = map[string]string{}
	for _, host := range base {
		switch target, err := os.Readlink(host); {
		case err == nil:
			symlinks[host] = target
		case errors.Is(err, unix.EINVAL): // not a link
			tree, err := openTree(host, host)
			if err != nil {
				return nil, nil, err
			}
			trees = append(trees, tree)
		}
	}
	for i, b := range binds {
		var tree mounted
		if fds != nil {
			tree, err = describe(fds[i], b.Inside)
		} else {
			tree, err = openTree(b.Host, b.Inside)
		}
		if err != nil {
			return nil, nil, err
		}
		trees = append(trees, tree)
	}
	return trees, symlinks, nil
}

func openDevices() (nodes []mounted, err error) {
	for _, d := range devices {
		node, err := openTree(d, d)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func openTree(host, at string) (mounted, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, host, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return mounted{}, fmt.Errorf("showing the host's %s at %s: %w", host, at, err)
	}
	return describe(fd, at)
}

func describe(fd int, at string) (mounted, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return mounted{}, fmt.Errorf("looking at what shall be %s: %w", at, err)
	}
	return mounted{fd: fd, at: at, file: st.Mode&unix.S_IFMT != unix.S_IFDIR}, nil
}

// enterRoot makes an empty tmpfs with a /proc the root, and lets go of the host's.
func enterRoot() error {
	const over = "/tmp" // any folder that every host has
	steps := []struct {
		what string
		do   func() error
	}{
		{"separating the mounts", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"mounting the root", func() error {
			return unix.Mount("tmpfs", over, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=32m,nr_inodes=16384")
		}},
		{"entering the root", func() error { return unix.Chdir(over) }},
		{"making /proc", func() error { return unix.Mkdir("proc", 0o555) }},
		// While the host's own is still visible: the kernel asks for one that is not covered.
		{"mounting /proc (it fails where the machine's own is partly covered, as in some containers)", func() error {
			return unix.Mount("proc", "proc", "proc", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}},
		{"changing the root", func() error { return unix.PivotRoot(".", ".") }},
		{"letting go of the host's root", func() error { return unix.Unmount(".", unix.MNT_DETACH) }},
		{"entering the new root", func() error { return unix.Chdir("/") }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return nil
}

func fillRoot(trees []mounted, symlinks map[string]string, files []sandbox.File) error {
	for _, folder := range []string{"/action", "/dev/shm", "/etc", "/tmp", "/usr", "/var/empty"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, table := range []map[string]string{symlinks, links} {
		for at, target := range table {
			if err := makeParent(at); err != nil {
				return err
			}
			if err := os.Symlink(target, at); err != nil {
				return err
			}
		}
	}
	for at, text := range written {
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, d := range devices {
		if err := os.WriteFile(d, nil, 0o644); err != nil {
			return err
		}
	}
	for _, t := range trees {
		if err := makeTarget(t); err != nil {
			return err
		}
		if err := attach(t); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := writeFile(f); err != nil {
			return err
		}
	}
	return nil
}

func makeParent(at string) error {
	parent := path.Dir(at)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", parent, err)
	}
	return nil
}

// makeTarget makes the mount point of a tree.
func makeTarget(t mounted) error {
	if !strings.HasPrefix(t.at, "/") {
		return fmt.Errorf("the place %q of a bind is not an absolute path", t.at)
	}
	if !t.file {
		return os.MkdirAll(t.at, 0o755)
	}
	if err := makeParent(t.at); err != nil {
		return err
	}
	f, err := os.OpenFile(t.at, os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func attach(t mounted) error {
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mounting %s: %w", t.at, err)
	}
	return unix.Close(t.fd)
}

// attachDevice attaches a device for use. The times of its node cannot be set, because all sandboxes and the host would see that.
func attachDevice(n mounted) error {
	if err := attach(n); err != nil {
		return err
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, n.at, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC}); err != nil {
		return fmt.Errorf("making %s read-only: %w", n.at, err)
	}
	return nil
}

func writeFile(f sandbox.File) error {
	if !strings.HasPrefix(f.Path, "/") {
		return fmt.Errorf("the path %q of a file is not absolute", f.Path)
	}
	if err := makeParent(f.Path); err != nil {
		return err
	}
	if err := os.WriteFile(f.Path, f.Data, os.FileMode(f.Mode&0o777)); err != nil {
		return fmt.Errorf("writing %s into the sandbox: %w", f.Path, err)
	}
	return nil
}

// maskProc covers parts of /proc with /dev/null or an empty folder, where this kernel has them.
func maskProc() error {
	cover := func(with, at string) error {
		err := unix.Mount(with, at, "", unix.MS_BIND, "")
		if err != nil && err != unix.ENOENT {
			return fmt.Errorf("covering %s: %w", at, err)
		}
		return nil
	}
	for _, name := range maskedFiles {
		if err := cover("/dev/null", "/proc/"+name); err != nil {
			return err
		}
	}
	for _, name := range maskedFolders {
		if err := cover("/var/empty", "/proc/"+name); err != nil {
			return err
		}
	}
	return nil
}

// openSeal opens the file that makes the code's file system read-only, wherever it was mounted. The helper can use it, although it cannot
// enter these namespaces.
func openSeal() (int, error) {
	const fspickCloexec = 1
	folder, err := unix.BytePtrFromString("/action")
	if err != nil {
		return -1, err
	}
	at := unix.AT_FDCWD
	fd, _, errno := unix.Syscall(unix.SYS_FSPICK, uintptr(at), uintptr(unsafe.Pointer(folder)), fspickCloexec)
	if errno != 0 {
		return -1, fmt.Errorf("opening the file system of the code: %w", errno)
	}
	if err := unix.FsconfigSetFlag(int(fd), "ro"); err != nil {
		return -1, fmt.Errorf("preparing the file system of the code: %w", err)
	}
	return int(fd), nil
}

func mountWritable(p plan) error {
	owner := fmt.Sprintf("uid=%d,gid=%d", insideUID, insideUID)
	for _, m := range []struct {
		at, options string
		flags       uintptr
		mib         int
	}{
		{"/tmp", "mode=1777", 0, p.tmpMiB},
		{"/dev/shm", "mode=1777", unix.MS_NOEXEC, p.tmpMiB},
		{"/action", "mode=755," + owner, 0, p.codeMiB},
	} {
		options := fmt.Sprintf("%s,size=%dm,nr_inodes=%d", m.options, max(m.mib, 1), inodes)
		if err := unix.Mount("tmpfs", m.at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|m.flags, options); err != nil {
			return fmt.Errorf("mounting %s: %w", m.at, err)
		}
	}
	return nil
}
