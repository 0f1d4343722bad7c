package native

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// meters are the files in which the kernel counts a sandbox's usage. The server reads them by itself, because each activation may be
// measured.
type meters struct {
	mu     sync.Mutex // guards buffer
	files  []*os.File // in the order of openMeters
	views  []view     // of them
	buffer []byte
}

// The files of meters.
const (
	meterMemory = iota
	meterKills
	meterCPU
	meterFiles
)

// openMeters opens the meters of a group, in the helper. One that this machine lacks is empty.
func (g *group) openMeters() (files []*os.File, err error) {
	paths := [meterFiles]string{os.DevNull, os.DevNull, os.DevNull}
	unified := g.folders[""]
	if unified != "" {
		paths[meterCPU] = filepath.Join(unified, "cpu.stat")
	}
	if g.v2["memory"] {
		paths[meterMemory], paths[meterKills] = filepath.Join(unified, "memory.current"), filepath.Join(unified, "memory.events")
	}
	if folder, ok := g.folders["memory"]; ok {
		paths[meterMemory], paths[meterKills] = filepath.Join(folder, "memory.usage_in_bytes"), filepath.Join(folder, "memory.oom_control")
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// openMeters opens the meters of all sandboxes together, of which only the processors' is kept.
func (c *cgroups) openMeters() (files []*os.File, err error) {
	all := group{folders: map[string]string{}}
	if c != nil && c.unified != "" {
		all.folders[""] = filepath.Join(c.unified, "forerun", c.instance)
	}
	return all.openMeters()
}

func newMeters(files []*os.File) *meters {
	m := &meters{files: files, buffer: make([]byte, viewed)}
	for _, f := range files {
		m.views = append(m.views, viewOf(f))
	}
	return m
}

// spent is Sandbox.Spent.
func (m *meters) spent() (time.Duration, error) {
	cpu, err := m.number(meterCPU, "usage_usec ")
	return time.Duration(cpu) * time.Microsecond, err
}

// number reads the number behind a name, which a line begins with; 0 if there is none.
func (m *meters) number(file int, name string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.views[file].read(m.buffer)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(m.buffer[:n]) {
		if value, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
		}
	}
	return 0, nil
}

func (m *meters) close() {
	if m != nil {
		closeAll(m.files)
	}
}
