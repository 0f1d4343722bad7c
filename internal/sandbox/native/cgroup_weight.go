package native

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The kernel shares the processors among the folders of one level by their weights. A sandbox has a weight among the sandboxes of its
// instance, and an instance one among the instances. forerun/ has a weight among the programs of the machine: the largest of its instances'
// weights. With their sum, the functions of many servers would starve the clients of
// each.

// v1Weight is a weight on v1's scale, where 1024 is usual.
func v1Weight(weight int) limit {
	return limit{file: "cpu.shares", value: strconv.Itoa(max(2, weight*1024/100))}
}

// weight is the file that sets a sandbox's share of the processors. It stays open in the server: that changes often.
type weight struct {
	file   *os.File
	shares bool // on v1's scale
}

// scaled reports whether the weights of its sandboxes are on v1's scale.
func (c *cgroups) scaled() bool { return c.roots["cpu"] != "" }

// openWeight opens it, in the helper. Where shares cannot be set it takes everything.
func (g *group) openWeight() (*os.File, error) {
	path := os.DevNull
	if folder, ok := g.folders["cpu"]; ok {
		path = filepath.Join(folder, v1Weight(0).file)
	} else if g.v2["cpu"] {
		path = filepath.Join(g.folders[""], v2Weight(0).file)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox's weight: %w", err)
	}
	return f, nil
}

func (w weight) set(to int) error {
	set := v2Weight(to)
	if w.shares {
		set = v1Weight(to)
	}
	if _, err := w.file.WriteAt([]byte(set.value+"\n"), 0); err != nil {
		return fmt.Errorf("setting a limit: %w", err)
	}
	return nil
}

func v2Weight(weight int) limit {
	return limit{file: "cpu.weight", value: strconv.Itoa(weight)}
}

// weigh sets the weight of the instance's folder, and the weight of forerun/ by it.
func (c *cgroups) weigh(root string, form func(int) limit) error {
	if err := writeLimits(c.folder(root), []limit{form(c.weight)}); err != nil {
		return err
	}
	return weighTop(filepath.Join(root, "forerun"), form)
}

// weighRest sets the weight of forerun/ by the instances that are left.
func (c *cgroups) weighRest(root string) {
	form := v2Weight
	if root == c.roots["cpu"] {
		form = v1Weight
	} else if root != c.unified || !c.v2["cpu"] {
		return
	}
	_ = weighTop(filepath.Join(root, "forerun"), form) // an instance that begins or ends meanwhile does the same
}

// weighTop sets the weight of forerun/, which is top, to the largest weight in it. It looks again after it has written: instances take no
// lock, so another may have begun and written meanwhile.
func weighTop(top string, form func(int) limit) error {
	file := form(0).file
	for written := 0; ; {
		largest := 0
		for _, instance := range glob(top, "*") {
			largest = max(largest, readWeight(filepath.Join(instance, file)))
		}
		if largest == written || largest == 0 {
			return nil
		}
		if err := writeLimits(top, []limit{{file: file, value: strconv.Itoa(largest)}}); err != nil {
			return err
		}
		written = largest
	}
}

// readWeight reads a weight as the kernel shows it; of a folder that has gone it is 0.
func readWeight(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}
