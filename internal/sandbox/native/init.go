package native

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox/guard"
)

// maxProgram bounds the part of a Spec that travels in a memory file.
const maxProgram = 16 << 20

// InitMain is the first stage of a sandbox, process 1 of the new namespaces. It builds the initializer's root, gives up every privilege
// and becomes the initializer. It returns, with an exit code, only if that fails; the helper has then been told why.
func InitMain() int {
	// Credentials, filter and cgroups are set for this one thread, which execve makes the whole process.
	runtime.LockOSThread()
	err := becomeInitializer()
	_, _ = unix.Write(setupFD, []byte(err.Error())) // fails if the helper has gone
	return 1
}

// becomeInitializer returns only if it cannot.
func becomeInitializer() error {
	// Files that were inherited on purpose came without the flag; the initializer keeps only 0 to 3.
	if err := unix.CloseRange(setupFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("marking the descriptors: %w", err)
	}
	p, prog, err := readPlan()
	if err != nil {
		return err
	}
	// When the machine runs out of memory, functions go before the server. Handlers inherit it.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0); err != nil {
		return err
	}
	forgetEnds()
	const firstExtra = setupFD + 2 // the memory file comes between
	if err := joinCgroups(firstExtra, p.tasks); err != nil {
		return err
	}
	var bindFDs []int
	if p.bindFDs {
		for i := range p.binds {
			bindFDs = append(bindFDs, firstExtra+p.tasks+i)
		}
	}
	if err := buildRoot(p, prog.files, bindFDs); err != nil {
		return err
	}
	ready, err := openNetwork()
	if err != nil {
		return err
	}
	for _, folder := range []string{"/tmp", "/dev/shm"} {
		fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening %s: %w", folder, err)
		}
		ready = append(ready, fd)
	}
	seal, err := openSeal()
	if err != nil {
		return err
	}
	ready = append(ready, seal)
	if err := limitSelf(p); err != nil {
		return err
	}
	if err := dropPrivileges(p.root); err != nil {
		return err
	}
	return execute(prog, ready)
}

// forgetEnds makes the kernel forget a TCP connection inside once both ends are closed. Otherwise the next activation would see it for a
// minute, and not get its port. On a loopback none of its packets can come late. Where the host's /proc cannot be written, as in some
// containers, the setting is left.
func forgetEnds() {
	_ = os.WriteFile("/proc/sys/net/ipv4/tcp_max_tw_buckets", []byte("0"), 0)
}

// readPlan receives the helper's plan and the caller's program.
func readPlan() (plan, program, error) {
	buffer := make([]byte, maxFrame)
	n, err := unix.Read(setupFD, buffer)
	if err != nil {
		return plan{}, program{}, fmt.Errorf("receiving the plan: %w", err)
	}
	p, err := decodePlan(buffer[:n])
	if err != nil {
		return plan{}, program{}, fmt.Errorf("reading the plan: %w", err)
	}
	f := os.NewFile(setupFD+1, "program")
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxProgram+1))
	if err != nil {
		return plan{}, program{}, fmt.Errorf("receiving the program: %w", err)
	}
	if len(b) > maxProgram {
		return plan{}, program{}, fmt.Errorf("the command, environment and files of the sandbox are more than %d MiB together", maxProgram>>20)
	}
	prog, err := decodeProgram(b)
	if err != nil {
		return plan{}, program{}, fmt.Errorf("reading the program: %w", err)
	}
	return p, prog, nil
}

// joinCgroups moves this one thread: unlike moving a process, it takes no lock that the whole machine shares. The
// other threads of this stage end with execve.
func joinCgroups(first, count int) error {
	for fd := first; fd < first+count; fd++ {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			return fmt.Errorf("joining the sandbox's cgroups: %w", err)
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("making a cgroup namespace: %w", err)
	}
	return nil
}

// execute installs the filter, hands helper and server the files that they need, and becomes the program. The setup socket closes with the
// execve, which tells the helper.
func execute(prog program, ready []int) error {
	if len(prog.argv) == 0 || !strings.HasPrefix(prog.argv[0], "/") {
		return fmt.Errorf("the initializer's command %q does not begin with an absolute path", prog.argv)
	}
	env := prog.env
	if !slices.ContainsFunc(env, func(s string) bool { return strings.HasPrefix(s, "HOME=") }) {
		env = append(env, "HOME=/tmp")
	}
	listener, err := guard.Install()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(setupFD, []byte{0}, unix.UnixRights(append(ready, listener)...), nil, 0); err != nil {
		return fmt.Errorf("handing out the doors: %w", err)
	}
	if err := limitFiles(); err != nil {
		return err
	}
	return fmt.Errorf("executing %s: %w", prog.argv[0], unix.Exec(prog.argv[0], prog.argv, env))
}
