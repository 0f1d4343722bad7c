package worker

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox"
)

// processes is a sandbox.Maker without isolation: each sandbox is a process of this machine, with real sockets, pipes
// and listeners, so the worker's side can be tested where sandboxes cannot be made.
type processes struct {
	t *testing.T

	memory atomic.Int64 // bytes that each sandbox is said to use; 0: not known

	mu        sync.Mutex // guards the rest
	sandboxes []*process
	fail      error // what Start answers
}

func (m *processes) Start(_ context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	p, err := startProcess(m.t.TempDir(), s)
	if err != nil {
		return nil, err
	}
	p.memory, p.owner = &m.memory, s.Owner
	m.sandboxes = append(m.sandboxes, p)
	return p, nil
}

func (m *processes) Enforced() []sandbox.Enforcement { return nil }
func (m *processes) Spent() (time.Duration, bool)    { return 0, false }
func (m *processes) Close() error                    { return nil }

func (m *processes) started() []*process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sandboxes)
}

// process is one such sandbox.
type process struct {
	folder         string // in the command or the environment of every process inside
	cmd            *exec.Cmd
	control        *net.UnixConn
	stdout, stderr *os.File
	doors          map[string]net.Listener
	refused        chan string
	done           chan struct{}
	oomKills       atomic.Int64
	memory         *atomic.Int64 // bytes that it is said to use
	owner          string
	limits         atomic.Pointer[sandbox.Limits]
	reached        atomic.Bool
	asked          atomic.Pointer[sandbox.Asked] // nil: nothing
	confined       atomic.Pointer[egress.Lists]
	permitted      atomic.Pointer[[]string] // hosts
	flooded        chan struct{}
	held           atomic.Int32 // 1 between Hold and Release
	weighed        chan int     // weights that it was given
	sealBy         atomic.Pointer[time.Time]
	fragile        atomic.Bool // it ends as its limits are changed
}

func startProcess(folder string, s sandbox.Spec) (*process, error) {
	p := &process{folder: folder, weighed: make(chan int, 8), refused: make(chan string, 8), flooded: make(chan struct{}), done: make(chan struct{}), doors: make(map[string]net.Listener)}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env := append(slices.Clone(s.Env), "FORERUN_CODE="+filepath.Join(folder, "action"), "FORERUN_PROGRAM="+program)
	if err := os.Mkdir(filepath.Join(folder, "action"), 0o700); err != nil {
		return nil, err
	}
	for _, f := range s.Files {
		path := filepath.Join(folder, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{sandbox.DoorState, sandbox.DoorAPI} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		p.doors[name] = l
		env = append(env, fmt.Sprintf("TEST_%s_PORT=%d", strings.ToUpper(name), l.Addr().(*net.TCPAddr).Port))
	}
	argv := slices.Clone(s.Argv)
	argv[len(argv)-1] = strings.ReplaceAll(argv[len(argv)-1], runtimeFolder, filepath.Join(folder, runtimeFolder))
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = env
	return p, p.launch()
}

func (p *process) launch() error {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	conn, err := net.FileConn(ours)
	if err != nil {
		return err
	}
	_ = ours.Close()
	p.control = conn.(*net.UnixConn)
	var out, errs *os.File
	if p.stdout, out, err = os.Pipe(); err != nil {
		return err
	}
	if p.stderr, errs, err = os.Pipe(); err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = out, errs, []*os.File{theirs}
	err = p.cmd.Start()
	for _, f := range []*os.File{theirs, out, errs} {
		_ = f.Close()
	}
	if err == nil {
		go func() {
			_ = p.cmd.Wait()
			close(p.done)
		}()
	}
	return err
}

func (p *process) Control() *net.UnixConn            { return p.control }
func (p *process) Output() (stdout, stderr *os.File) { return p.stdout, p.stderr }
func (p *process) Door(name string) net.Listener     { return p.doors[name] }
func (p *process) Denied() <-chan struct{}           { return nil }
func (p *process) Flooded() <-chan struct{}          { return p.flooded }
func (p *process) Done() <-chan struct{}             { return p.done }
func (p *process) Limit(_ context.Context, l sandbox.Limits) error {
	p.limits.Store(&l)
	if p.fragile.Load() {
		p.die()
	}
	if l.CPUWeight > 0 {
		select {
		case p.weighed <- l.CPUWeight:
		default:
		}
	}
	return nil
}

func (p *process) Reached() bool { return p.reached.Load() }

func (p *process) Asked() (asked sandbox.Asked, known bool) {
	if a := p.asked.Load(); a != nil {
		asked = *a
	}
	return asked, true
}

func (p *process) Confine(_ context.Context, lists egress.Lists) error {
	p.confined.Store(&lists)
	return nil
}

func (p *process) Permit(_ context.Context, hosts []string) error {
	p.permitted.Store(&hosts)
	return nil
}

func (p *process) Refused() (sentences []string) {
	for len(p.refused) > 0 {
		sentences = append(sentences, <-p.refused)
	}
	return sentences
}

func (p *process) Hold(context.Context, []string) (sandbox.Held, error) {
	p.held.Store(1)
	return sandbox.Held{}, nil
}

func (p *process) Release(context.Context) (time.Duration, error) {
	p.held.Store(0)
	return 0, nil
}

func (p *process) TakeHeld() func() { return nil }

func (p *process) Seal(ctx context.Context) (bool, error) {
	by, _ := ctx.Deadline()
	p.sealBy.Store(&by)
	return true, ctx.Err()
}

func (p *process) Reachable(context.Context, ...int) (bool, error) { return false, nil }

func (p *process) Spent() (time.Duration, error) { return 0, nil }

func (p *process) Memory() (bytes int64, err error) { return p.memory.Load(), nil }

func (p *process) OOMKills() (int, error) { return int(p.oomKills.Load()), nil }

func (p *process) Reset(_ context.Context, keep ...int) (killed int, err error) {
	return 0, p.killAllBut(append(keep, p.cmd.Process.Pid)...)
}

func (p *process) Strike(ctx context.Context, keep ...int) error {
	_, err := p.Reset(ctx, keep...)
	return err
}

// die ends as a sandbox does whose first process ends: with all others.
func (p *process) die() {
	_ = p.killAllBut()
	<-p.done
}

// killAllBut kills the sandbox's processes until there are no others, ones that were just forked included, and none has a
// descriptor left.
func (p *process) killAllBut(keep ...int) error {
	killed := make(map[int]bool)
	for {
		others := slices.DeleteFunc(p.pids(), func(pid int) bool { return slices.Contains(keep, pid) })
		for _, pid := range others {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
			killed[pid] = true
		}
		if len(others) > 0 {
			continue
		}
		for pid := range killed {
			for !over(pid) {
			}
		}
		return nil
	}
}

// over reports whether a process is gone, or a zombie.
func over(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// pids are the processes inside that are alive: by their command, as what the initializer forks shares it and hides its
// environment, or by their environment.
func (p *process) pids() []int {
	var pids []int
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, folder := range folders {
		command, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(folder, "environ"))
		if !strings.Contains(string(command), p.folder) && !strings.Contains(string(environment), p.folder) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (p *process) Close() error {
	p.die()
	for _, l := range p.doors {
		_ = l.Close()
	}
	_ = p.control.Close()
	_ = p.stdout.Close()
	_ = p.stderr.Close()
	return nil
}
