package native

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// openListed opens a pidfd of every listed process but the ones in keep. A number counts if it is listed before and after its pidfd was
// opened. The pidfd then is of one of the list's own processes, or of one that has ended since. It cannot be of another process that got a
// number which was free in between.
//
// none is true if the list held no others.
func openListed(list func() ([]int, error), keep []int) (opened map[int]int, none bool, err error) {
	before, err := list()
	if err != nil {
		return nil, false, err
	}
	before = slices.DeleteFunc(before, func(pid int) bool { return slices.Contains(keep, pid) })
	if len(before) == 0 {
		return nil, true, nil
	}
	opened = map[int]int{}
	for _, pid := range before {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			opened[pid] = fd
		}
	}
	after, err := list()
	for pid, fd := range opened {
		if err != nil || !slices.Contains(after, pid) {
			_ = unix.Close(fd)
			delete(opened, pid)
		}
	}
	return opened, false, err
}

// killer ends the processes of a sandbox.
type killer struct {
	list   func() ([]int, error)
	keep   []int
	freeze func(bool) // stops all, or lets them go on
	fades  fades      // nil: nothing may
}

// fades decides about fading. Before a kill it says whether processes may fade. After the kill it says whether one does, and then takes
// over its pidfd, or that it never will.
type fades interface {
	mayFade(victims map[int]int) bool
	fades(pid, pidfd int) (fades, never bool)
}

// killAll kills every listed process but the ones in keep, and all that they fork meanwhile. It returns when none is left. Processes that
// fork faster than they are killed are stopped before the second round.
func (k killer) killAll(ctx context.Context) (killed int, err error) {
	frozen := false
	defer func() {
		if frozen {
			k.freeze(false)
		}
	}()
	for round := 0; ; round++ {
		victims, none, err := openListed(k.list, k.keep)
		if none || err != nil {
			return killed, err
		}
		killed += len(victims)
		if round > 0 && !frozen {
			frozen = true
			k.freeze(true)
		}
		err = k.killAndWait(ctx, victims)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return killed, err
		}
	}
}

// killAndWait returns when the processes have ended, or fade. It closes the pidfds.
func (k killer) killAndWait(ctx context.Context, victims map[int]int) error {
	mayFade := k.fades != nil && k.fades.mayFade(victims)
	for _, fd := range victims {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // fails if it has ended
	}
	var failed error
	for pid, fd := range victims {
		faded, err := k.await(ctx, pid, fd, mayFade && failed == nil)
		if !faded {
			_ = unix.Close(fd)
		}
		if err != nil {
			failed = err
		}
	}
	return failed
}

// await waits for one process that was killed.
func (k killer) await(ctx context.Context, pid, fd int, mayFade bool) (faded bool, err error) {
	wait := firstWait
	for looks := 1; !hasEnded(fd, wait); looks++ {
		if mayFade {
			fades, never := k.fades.fades(pid, fd)
			if fades {
				return true, nil
			}
			mayFade = !never && looks < fadeLooks
		} else {
			wait = min(2*wait, longestWait)
		}
		if ctx.Err() != nil {
			return false, fmt.Errorf("process %d does not end after SIGKILL: %w", pid, context.Cause(ctx))
		}
	}
	return false, nil
}

// The helper waits for a killed process this long before it looks at it. The kernel adds its usual delay of a wait, some 50 µs.
const (
	firstWait   = 10 * time.Microsecond
	longestWait = 20 * time.Millisecond
	fadeLooks   = 150 // at one that may fade, each after firstWait
)

// walks is how often the tree of a sandbox's processes is walked for one list. A walk can miss a process whose parent ends meanwhile. A
// list without others means that no walk met one.
const walks = 20

// inhabitants lists the processes of the PID namespace whose first process is root, as several walks met them. Some may have ended since.
// Machines without cgroups need it.
func inhabitants(root int) ([]int, error) {
	var met []int
	for range walks {
		met = append(met, descendants(root)...)
	}
	slices.Sort(met)
	return slices.Compact(met), nil
}

// descendants lists the living descendants of process root, and root itself. If root is the first process of its PID namespace, that is
// all of the namespace, since orphans become its children.
func descendants(root int) []int {
	found := []int{root}
	for i := 0; i < len(found); i++ {
		for _, child := range children(found[i]) {
			if !slices.Contains(found, child) && alive(child) {
				found = append(found, child)
			}
		}
	}
	return found
}

func children(pid int) []int {
	var all []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // fails for a wrong pattern only
	for _, path := range lists {
		if pids, err := readPIDs(path); err == nil {
			all = append(all, pids...)
		}
	}
	return all
}

// alive tells a process from one that has ended and waits for its parent.
func alive(pid int) bool {
	t, ok := proc.ReadTask("/proc/" + strconv.Itoa(pid) + "/stat")
	return ok && !t.HasEnded()
}

// resetDeadline bounds the wait until an activation's leftovers are gone. Nothing else happens to its sandbox meanwhile.
const resetDeadline = 5 * time.Second
