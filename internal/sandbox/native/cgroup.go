package native

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups are the hierarchies in which this instance has folders: forerun/<instance>/<sandbox> in each.
type cgroups struct {
	instance string
	bound    int               // MiB of memory for all sandboxes together; 0: no bound
	weight   int               // their share of the processors; 0: the kernel's default
	roots    map[string]string // by controller, the folder in which forerun/ is; v1 only
	unified  string            // the same of the v2 hierarchy, which lists and freezes; "" if there is none
	v2       map[string]bool   // the controllers that the v2 hierarchy limits with
}

// controllers in the order in which folders are made.
var controllers = []string{"memory", "pids", "cpu"}

// leastMore is what all sandboxes may at least use, in MiB, beyond what the server lets them: it counts some too late, as one that closes.
const leastMore = 128

// instancePrefix is the common beginning of the names of all instances of one data folder.
func instancePrefix(dataDir string) string {
	sum := sha256.Sum256([]byte(dataDir))
	return hex.EncodeToString(sum[:6]) + "-"
}

// openCgroups finds the cgroups of this machine and user, removes the leftovers of dead instances of the same data folder, and makes this
// instance's folders. All sandboxes together may use the settings' memory and a little more, and have their weight. reasons explains by
// controller why one is missing.
func openCgroups(s settings) (c *cgroups, reasons map[string]string) {
	prefix := instancePrefix(s.dataDir)
	c = &cgroups{instance: prefix + strconv.Itoa(os.Getpid()), weight: s.cpuWeight, roots: map[string]string{}, v2: map[string]bool{}}
	if s.memoryMiB > 0 {
		c.bound = s.memoryMiB + max(s.memoryMiB/8, leastMore)
	}
	reasons = map[string]string{}
	mounts := cgroupMounts()
	for _, name := range controllers {
		root, ok := mounts[name]
		if !ok {
			reasons[name] = "this machine has no " + name + " controller in its cgroups"
			continue
		}
		err := c.claim(root, prefix)
		if err == nil {
			err = c.limitAll(name, root, v1Memory(c.bound, false), v1Weight)
		}
		if err != nil {
			reasons[name] = "the cgroups at " + root + " cannot be used: " + err.Error()
			continue
		}
		c.roots[name] = root
	}
	if root, ok := mounts[""]; ok {
		c.openUnified(root, prefix, reasons)
	}
	return c, reasons
}

// folder is the instance's folder below root.
func (c *cgroups) folder(root string) string { return filepath.Join(root, "forerun", c.instance) }

// limitAll sets what a controller limits of all sandboxes together.
func (c *cgroups) limitAll(controller, root string, memory []limit, weight func(int) limit) error {
	switch {
	case controller == "memory" && c.bound > 0:
		return writeLimits(c.folder(root), memory)
	case controller == "cpu" && c.weight > 0:
		return c.weigh(root, weight)
	}
	return nil
}

// claim makes the instance's folder below root.
func (c *cgroups) claim(root, prefix string) error {
	top := filepath.Join(root, "forerun")
	removeLeftovers(top, prefix)
	var err error
	for range 3 { // another instance that ends may take top away in between
		if err = os.MkdirAll(filepath.Join(top, c.instance), 0o755); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	return err
}

// removeLeftovers ends and removes the sandboxes that instances with this prefix left. The data folder's lock guarantees that none of them
// serves any more.
func removeLeftovers(top, prefix string) {
	for _, old := range glob(top, prefix+"*") {
		for _, group := range append(glob(old, "*"), old) {
			for range 100 { // a killed process needs a moment to leave
				if len(killListed(group)) == 0 {
					break
				}
				time.Sleep(time.Millisecond)
			}
			_ = removeGroup(group)
		}
	}
}

// glob lists the folders in dir that match.
func glob(dir, pattern string) []string {
	var folders []string
	found, _ := filepath.Glob(filepath.Join(dir, pattern)) // fails for a wrong pattern only
	for _, path := range found {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			folders = append(folders, path)
		}
	}
	return folders
}

// killListed kills the processes in the cgroup and returns them.
func killListed(group string) []int {
	procs := filepath.Join(group, "cgroup.procs")
	list := func() ([]int, error) { return readPIDs(procs) }
	victims, _, err := openListed(list, nil)
	if err != nil {
		return nil
	}
	var pids []int
	for pid, fd := range victims {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		_ = unix.Close(fd)
		pids = append(pids, pid)
	}
	return pids
}

// removeGroup removes an empty cgroup; the kernel may need a moment to see that it is.
func removeGroup(path string) error {
	for delay := 100 * time.Microsecond; ; delay *= 2 {
		err := os.Remove(path)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || delay > time.Second {
			return err
		}
		time.Sleep(delay)
	}
}

// close removes the instance's folders, and forerun's if no other instance has one.
func (c *cgroups) close() {
	for _, root := range append(mapValues(c.roots), c.unified) {
		if root != "" {
			_ = removeGroup(filepath.Join(root, "forerun", c.instance))
			c.weighRest(root)
			_ = os.Remove(filepath.Join(root, "forerun"))
		}
	}
}

func mapValues(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// group is one sandbox's place in every hierarchy.
type group struct {
	folders map[string]string // by controller; the one of the v2 hierarchy is ""
	v2      map[string]bool
	memory  int        // MiB, the limit
	tasks   []*os.File // to be joined by the first stage itself (v1)
	dir     *os.File   // the v2 folder, to be born in; nil if there is none
	procs   *os.File   // its list of processes
}

// create makes the sandbox's cgroups with their limits.
func (c *cgroups) create(id string, r startRequest) (*group, error) {
	g := &group{folders: map[string]string{}, v2: c.v2, memory: r.memoryMiB}
	if err := c.fill(g, id, r); err != nil {
		return nil, errors.Join(err, g.remove())
	}
	return g, nil
}

func (c *cgroups) fill(g *group, id string, r startRequest) error {
	for _, name := range controllers {
		root, ok := c.roots[name]
		if !ok {
			continue
		}
		folder := filepath.Join(root, "forerun", c.instance, id)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		g.folders[name] = folder
		if err := writeLimits(folder, v1Limits(name, r)); err != nil {
			return err
		}
		tasks, err := os.OpenFile(filepath.Join(folder, "tasks"), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		g.tasks = append(g.tasks, tasks)
	}
	if c.unified == "" {
		return nil
	}
	return c.fillUnified(g, id, r)
}

// limit is a control file with its value; an optional one is missing on some kernels.
type limit struct {
	file, value string
	optional    bool
}

func v1Limits(controller string, r startRequest) []limit {
	switch controller {
	case "memory":
		return append(v1Memory(r.memoryMiB, false), limit{"memory.swappiness", "0", true})
	case "pids":
		return []limit{{file: "pids.max", value: strconv.Itoa(r.processes)}}
	default:
		return []limit{v1Weight(r.cpuWeight)}
	}
}

// v1Memory sets two limits: memory, and memory with swap. The second is never the lower one, so it goes first when they grow.
func v1Memory(mib int, grows bool) []limit {
	bytes := strconv.Itoa(mib << 20)
	limits := []limit{{file: "memory.limit_in_bytes", value: bytes}, {"memory.memsw.limit_in_bytes", bytes, true}}
	if grows {
		slices.Reverse(limits)
	}
	return limits
}

// resize changes its limit of memory, where that can be limited.
func (g *group) resize(mib int) (err error) {
	folder, v1 := g.folders["memory"]
	switch {
	case mib == g.memory:
	case v1:
		err = writeLimits(folder, v1Memory(mib, mib > g.memory))
	case g.v2["memory"]:
		err = writeLimits(g.folders[""], v2Memory(mib))
	}
	if err == nil {
		g.memory = mib
	}
	return err
}

func writeLimits(folder string, limits []limit) error {
	for _, l := range limits {
		err := os.WriteFile(filepath.Join(folder, l.file), []byte(l.value), 0)
		if err != nil && !(l.optional && errors.Is(err, os.ErrNotExist)) {
			return fmt.Errorf("setting a limit: %w", err)
		}
	}
	return nil
}

// listing reports whether the cgroups can list the sandbox's processes.
func (g *group) listing() bool { return g.procs != nil || len(g.folders) > 0 }

// pids lists the sandbox's processes, those that have ended excepted.
func (g *group) pids() ([]int, error) {
	if g.procs != nil {
		return readPIDsOf(g.procs)
	}
	for _, folder := range g.folders { // any: all have the same members
		return readPIDs(filepath.Join(folder, "cgroup.procs"))
	}
	return nil, errors.New("the sandbox has no cgroup")
}

// freeze stops all processes of the sandbox, or lets them go on; where that is not possible it does nothing.
func (g *group) freeze(on bool) {
	if folder, ok := g.folders[""]; ok {
		value := "0"
		if on {
			value = "1"
		}
		_ = os.WriteFile(filepath.Join(folder, "cgroup.freeze"), []byte(value), 0)
	}
}

// remove removes the folders. Its processes must have ended.
func (g *group) remove() error {
	closeAll(append(g.tasks, g.dir, g.procs))
	var errs []error
	for _, folder := range g.folders {
		errs = append(errs, removeGroup(folder))
	}
	return errors.Join(errs...)
}

// joined closes what only the start needs.
func (g *group) joined() {
	closeAll(g.tasks)
	g.tasks = nil
}
