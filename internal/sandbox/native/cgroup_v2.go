package native

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupMounts finds where each controller's v1 hierarchy is mounted, and under "" the v2 hierarchy.
func cgroupMounts() map[string]string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	mounts := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		readMountLine(lines.Text(), mounts)
	}
	return mounts
}

// readMountLine notes a cgroup mount: "id parent dev root mountpoint options [tags] - type source superoptions".
func readMountLine(line string, mounts map[string]string) {
	before, after, ok := strings.Cut(line, " - ")
	fields, kind := strings.Fields(before), strings.Fields(after)
	if !ok || len(fields) < 5 || len(kind) < 3 {
		return
	}
	at := fields[4]
	switch kind[0] {
	case "cgroup2":
		mounts[""] = at
	case "cgroup":
		for _, name := range strings.Split(kind[2], ",") {
			if slices.Contains(controllers, name) {
				mounts[name] = at
			}
		}
	}
}

// openUnified claims a place in the v2 hierarchy, with the controllers that v1 does not have.
func (c *cgroups) openUnified(mount, prefix string, reasons map[string]string) {
	root, err := unifiedRoot(mount)
	if err == nil {
		err = c.claim(root, prefix)
	}
	if err != nil {
		for _, name := range controllers {
			if _, ok := c.roots[name]; !ok {
				reasons[name] = "the cgroups at " + mount + " cannot be used: " + err.Error()
			}
		}
		return
	}
	c.unified = root
	offered, _ := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	for _, name := range controllers {
		if _, ok := c.roots[name]; ok || !slices.Contains(strings.Fields(string(offered)), name) {
			continue
		}
		if err := c.enable(root, name); err != nil {
			reasons[name] = "the " + name + " controller cannot be enabled: " + err.Error()
			continue
		}
		if err := c.limitAll(name, root, v2Memory(c.bound), v2Weight); err != nil {
			reasons[name] = "the " + name + " of all sandboxes cannot be limited: " + err.Error()
			continue
		}
		c.v2[name] = true
		delete(reasons, name)
	}
}

// enable passes a controller down to the sandboxes' folders.
func (c *cgroups) enable(root, name string) error {
	for _, folder := range []string{root, filepath.Join(root, "forerun"), filepath.Join(root, "forerun", c.instance)} {
		if err := os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+name), 0); err != nil {
			return err
		}
	}
	return nil
}

// unifiedRoot finds the folder that may be used: the hierarchy's root as root, else the process's own folder if it
// was delegated to this user. In the latter no process may live beside the controllers, so it moves out of the way
// with its parent, the server.
func unifiedRoot(mount string) (string, error) {
	if os.Geteuid() == 0 {
		return mount, unix.Access(mount, unix.W_OK)
	}
	own, err := ownCgroup(mount)
	if err != nil {
		return "", err
	}
	aside := filepath.Join(own, "forerun-server")
	if err := os.Mkdir(aside, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	for _, pid := range []int{os.Getppid(), os.Getpid()} {
		if err := os.WriteFile(filepath.Join(aside, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return "", err
		}
	}
	return own, nil
}

func ownCgroup(mount string) (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return filepath.Join(mount, strings.TrimSuffix(strings.TrimSpace(path), "/forerun-server")), nil
		}
	}
	return "", errors.New("this process is in no v2 cgroup")
}

func (c *cgroups) fillUnified(g *group, id string, r startRequest) (err error) {
	folder := filepath.Join(c.unified, "forerun", c.instance, id)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	g.folders[""] = folder
	for _, name := range controllers {
		if !c.v2[name] {
			continue
		}
		if err := writeLimits(folder, v2Limits(name, r)); err != nil {
			return err
		}
	}
	if g.dir, err = os.Open(folder); err != nil {
		return err
	}
	g.procs, err = os.Open(filepath.Join(folder, "cgroup.procs"))
	return err
}

func v2Limits(controller string, r startRequest) []limit {
	switch controller {
	case "memory":
		return append(v2Memory(r.memoryMiB), limit{"memory.swap.max", "0", true})
	case "pids":
		return []limit{{file: "pids.max", value: strconv.Itoa(r.processes)}}
	default:
		return []limit{v2Weight(r.cpuWeight)}
	}
}

func v2Memory(mib int) []limit {
	return []limit{{file: "memory.max", value: strconv.Itoa(mib << 20)}}
}

// readPIDsOf reads a list that stays open: of a v2 folder each reading from the start is a fresh one.
func readPIDsOf(f *os.File) ([]int, error) {
	buffer, rest := make([]byte, 4096), ""
	for at := int64(0); ; {
		n, err := f.ReadAt(buffer, at)
		at += int64(n)
		rest += string(buffer[:n])
		switch {
		case errors.Is(err, io.EOF):
			return appendPIDs(nil, rest)
		case err != nil:
			return nil, err
		}
	}
}

func readPIDs(path string) ([]int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return appendPIDs(nil, string(b))
}

func appendPIDs(pids []int, text string) ([]int, error) {
	for field := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("a list of processes holds %q: %w", field, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
