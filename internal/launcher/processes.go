package launcher

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/runtimewire"
)

// process is a language process: a handler, once it is announced.
type process struct {
	pid    int
	ends   []*os.File         // the server's, until it is announced: of its socket, or of the pipes to and from a program that speaks lines
	exited chan struct{}      // closed when it was reaped
	status syscall.WaitStatus // valid then

	stopped   bool // it executes nothing until it is let go on
	announced bool // guarded by processes.mu
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// howItEnded says so in a part of a sentence. The process has exited.
func (p *process) howItEnded() string {
	if p.status.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%s)", p.status.Signal(), p.status.Signal())
	}
	return fmt.Sprintf("exited with status %d", p.status.ExitStatus())
}

// processes are the children. This process is the first of a sandbox, so orphans become its children too.
type processes struct {
	control *runtimewire.Conn

	mu    sync.Mutex // guards byPID, and is held while a process is started, announced or reaped
	byPID map[int]*process
}

func newProcesses(control *runtimewire.Conn) *processes {
	ps := &processes{control: control, byPID: make(map[int]*process)}
	ends := make(chan os.Signal, 1)
	// The others are heard so that they do not end this process: what executes in the sandbox may send them to everyone.
	signal.Notify(ends, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		for range ends {
			ps.reap()
		}
	}()
	return ps
}

// start starts a program with files as its descriptors from 0 on.
func (ps *processes) start(argv, env []string, files []*os.File) (*process, error) {
	attr := &syscall.ProcAttr{Env: env, Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	haveOutputWait()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	pid, err := forkApart(argv[0], argv, attr)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	p := &process{pid: pid, exited: make(chan struct{})}
	ps.byPID[pid] = p
	return p, nil
}

// haveOutputWait has what is printed wait for room in the pipes, whatever a process has set that is gone: all have the same. Others would lose
// what they print then.
func haveOutputWait() {
	for output := 1; output <= 2; output++ {
		_ = syscall.SetNonblock(output, false) // who started this process may have given it none
	}
}

// reap collects every child that ended, and tells of those that were announced.
func (ps *processes) reap() {
	for {
		var status syscall.WaitStatus
		ps.mu.Lock()
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		p := ps.byPID[pid]
		if p != nil {
			delete(ps.byPID, pid)
			p.status = status
			close(p.exited)
			ps.tell(p)
		}
		ps.mu.Unlock()
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// tell tells the server of an announced process's end. mu is held.
func (ps *processes) tell(p *process) {
	if !p.announced {
		return
	}
	e := runtimewire.Exit{PID: p.pid}
	if p.status.Signaled() {
		e.Signal = int(p.status.Signal())
	} else {
		e.Status = p.status.ExitStatus()
	}
	_ = ps.control.Write(runtimewire.TypeExit, e, nil) // if the server is gone, serve hears that
}

// own makes a process the owner of a pipe. One that has ended owns nothing.
func (ps *processes) own(p *process, pipe *os.File) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.hasExited() {
		return nil
	}
	_, err := unix.FcntlInt(pipe.Fd(), unix.F_SETOWN, p.pid) // it is not reaped yet, so the id is its own
	return err
}

// announce hands a process to the server.
func (ps *processes) announce(p *process) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	defer closeAll(p.ends...)
	p.announced = true
	if err := ps.control.WriteFiles(runtimewire.Handler{PID: p.pid, Lines: len(p.ends) > 1, Stopped: p.stopped}, p.ends...); err != nil {
		return err
	}
	if p.hasExited() {
		ps.tell(p)
	}
	return nil
}

// kill ends a process and waits until it has.
func (ps *processes) kill(p *process) {
	ps.mu.Lock()
	if !p.hasExited() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // it is not reaped yet, so the id is its own
	}
	ps.mu.Unlock()
	<-p.exited
}

// socketpair makes a handler's socket. The kernel tells the reader of the server's end who sent, in the namespace of
// the reader.
func socketpair() (server, handler *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a handler's socket: %w", err)
	}
	server, handler = os.NewFile(uintptr(fds[0]), "server's end"), os.NewFile(uintptr(fds[1]), "handler's end")
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return nil, nil, errors.Join(err, server.Close(), handler.Close())
	}
	return server, handler, nil
}
