// Package launcher is the first process of sandboxes whose language cannot fork
// a loaded process: Node, the JVM, and native programs. It speaks the
// initializer's end of the runtime protocol (runtimes/PROTOCOL.md), unpacks
// archives, also for runtimes that need no launcher, and starts a process of the language for each Fork.
//
// It promises that nothing of an archive lands outside the code's folder, that
// every process that ends in the sandbox is reaped, and that an Exit follows the
// Handler frame of its process. Of the code itself it knows nothing.
package launcher

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/runtimewire"
)

const (
	controlFD   = 3
	codeVar     = "FORERUN_CODE" // environment: the folder of the action's code, which language processes see too
	defaultCode = "/action"
)

// MemoryVar is the environment variable with the sandbox's memory limit in MiB. Only the launcher sees it.
const MemoryVar = "FORERUN_MEMORY_MIB"

// Main is the launcher's command: Main("nodejs", "/usr/bin/node", "/forerun/node/main.cjs"), say. args[0] names the
// language, the rest is the command of its process, if it has one. It returns the exit code when the server has closed
// the control socket.
func Main(args []string) int {
	if len(args) == 2 && args[0] == unpackCommand {
		return unpackInput(args[1])
	}
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "forerun: the runtime's launcher:", err)
		return 1
	}
	return 0
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("no language was named")
	}
	// Processes of the same user cannot open this one's memory then.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming unreadable: %w", err)
	}
	syscall.CloseOnExec(controlFD)
	control, err := runtimewire.FileConn(os.NewFile(controlFD, "control"),
		runtimewire.Limits{Header: runtimewire.MaxHeader, Payload: runtimewire.MaxPayload})
	if err != nil {
		return err
	}
	l, err := newLauncher(control, args)
	if err != nil {
		return err
	}
	return l.serve()
}

// launcher is the state of the first process. Its one goroutine, serve, owns it; that of processes reaps.
type launcher struct {
	control   *runtimewire.Conn
	processes *processes
	language  language
	folder    string // of the code
	init      *runtimewire.Init
	text      []byte   // the code, if it is source text
	next      *process // loaded, and not handed out yet
}

// language is how the processes of a language are started. Methods are called from one goroutine.
type language interface {
	// unpack puts the code of an action into the folder, if it goes there.
	unpack(init *runtimewire.Init, code []byte, folder string) error
	// start starts a process and has it load the code. A loadError is for the action's author. The process is the caller's.
	start(l *launcher) (*process, error)
}

// loadError is why code could not be loaded, a sentence for its author.
type loadError string

func (e loadError) Error() string { return string(e) }

func newLauncher(control *runtimewire.Conn, args []string) (*launcher, error) {
	l := &launcher{control: control, processes: newProcesses(control), folder: defaultCode}
	if folder := os.Getenv(codeVar); folder != "" {
		l.folder = folder
	}
	if err := os.Chdir(l.folder); err != nil {
		return nil, fmt.Errorf("entering the code's folder: %w", err)
	}
	switch args[0] {
	case "nodejs":
		node := newLoader(args[1:], unpackArchive, nodeMemory)
		node.texts = true
		l.language = node
	case "java":
		l.language = newLoader(args[1:], unpackJar, javaMemory)
	case "native":
		l.language = lineProgram{}
	default:
		return nil, fmt.Errorf("there is no launcher for the language %q", args[0])
	}
	return l, control.Write(runtimewire.TypeHello, runtimewire.Hello{Protocol: runtimewire.Version, Language: args[0]}, nil)
}

// environment is what language processes are started with.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, MemoryVar+"=") })
}

// serve obeys the server until it closes the control socket.
func (l *launcher) serve() error {
	if w, ok := l.language.(*loader); ok {
		w.warm(l) // its start is the longest part of a cold start: it need not wait for the code
	}
	frames, ended := make(chan runtimewire.Frame), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			f, err := l.control.Read()
			if err != nil {
				return // the server is gone, or gave up
			}
			frames <- f
		}
	}()
	failed := make(chan error, 1)
	go func() {
		for f := range frames {
			if err := l.obey(&f); err != nil {
				failed <- err
				return
			}
		}
	}()
	select {
	case <-ended:
		return nil
	case err := <-failed:
		return err
	}
}

func (l *launcher) obey(f *runtimewire.Frame) error {
	switch {
	case f.Type == runtimewire.TypeInit && l.init == nil:
		return l.load(f)
	case f.Type == runtimewire.TypeFork && l.init != nil:
		return l.fork(f)
	case f.Type == runtimewire.TypeContinue && l.init != nil:
		var c runtimewire.Continue
		err := f.Decode(&c)
		if err == nil {
			haveOutputWait()
			l.processes.letGoOn(c.PID)
		}
		return err
	case f.Type == runtimewire.TypePause && l.init != nil:
		return l.pause(f)
	default:
		return fmt.Errorf("a frame of type %d is not expected now", f.Type)
	}
}

// load loads the code into a first process and tells the server how that went.
func (l *launcher) load(f *runtimewire.Frame) error {
	l.init = new(runtimewire.Init)
	if err := f.Decode(l.init); err != nil {
		return err
	}
	if !l.init.Binary {
		l.text = f.Payload
	}
	err := l.language.unpack(l.init, f.Payload, l.folder)
	f.Payload = nil
	if err == nil {
		l.next, err = l.language.start(l)
	}
	done := runtimewire.InitDone{OK: err == nil}
	if sentence := loadError(""); errors.As(err, &sentence) {
		done.Error = string(sentence)
	} else if err != nil {
		done.Error = fmt.Sprintf("Initialization has failed: %v.", err)
	}
	return l.control.Write(runtimewire.TypeInitDone, done, nil)
}

// fork hands out a loaded process. The first one is handed out even if it has ended: the server judges that.
func (l *launcher) fork(f *runtimewire.Frame) error {
	var how runtimewire.Fork
	if err := f.Decode(&how); err != nil {
		return err
	}
	p := l.next
	l.next = nil
	if p == nil {
		var err error
		if p, err = l.language.start(l); err != nil {
			_, code := errors.AsType[loadError](err)
			return l.control.Write(runtimewire.TypeHandler, runtimewire.Handler{Error: err.Error(), Code: code}, nil)
		}
	}
	if how.Stop {
		l.processes.stop(p)
	}
	return l.processes.announce(p)
}

// pause stops a process that was handed out.
func (l *launcher) pause(f *runtimewire.Frame) error {
	var p runtimewire.Pause
	if err := f.Decode(&p); err != nil {
		return err
	}
	return l.control.Write(runtimewire.TypePaused, runtimewire.Paused{PID: p.PID, Stopped: l.processes.pause(p.PID)}, nil)
}
