package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"forerun.dev/forerun/internal/runtimewire"
)

// loader is a language whose process loads the code itself: before it is handed out it gets an Init frame on its own
// socket, whose payload is the code if that is source text, and answers with InitDone.
type loader struct {
	command []string // with the options for the sandbox's memory
	archive func(code []byte, folder string) error
	texts   bool     // code may be source text
	blank   *process // started before the code was there
}

// newLoader completes the language's command by options that keep it within the sandbox's memory, if that is known.
func newLoader(command []string, archive func([]byte, string) error, options func(mib int) string) *loader {
	if mib, err := strconv.Atoi(os.Getenv(MemoryVar)); err == nil && len(command) > 0 {
		command = slices.Insert(slices.Clone(command), 1, options(mib))
	}
	return &loader{command: command, archive: archive}
}

// nodeMemory has V8 collect its garbage before the sandbox's limit is reached. What is no garbage may reach that: it is
// a clearer end than V8's own.
func nodeMemory(mib int) string { return fmt.Sprintf("--max-old-space-size=%d", mib) }

// javaMemory leaves room for what the JVM needs besides its heap.
func javaMemory(mib int) string { return fmt.Sprintf("-Xmx%dm", max(24, min(mib-80, mib*3/4))) }

func (w *loader) unpack(init *runtimewire.Init, code []byte, folder string) error {
	if w.texts && !init.Binary {
		return nil
	}
	return w.archive(code, folder)
}

// warm starts a process ahead of the code. If that fails, start says why.
func (w *loader) warm(l *launcher) {
	if p, err := w.open(l); err == nil {
		w.blank = p
	}
}

// open starts a process that waits for its Init.
func (w *loader) open(l *launcher) (*process, error) {
	if len(w.command) == 0 {
		return nil, fmt.Errorf("no command of the language was named")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	server, handler, err := socketpair()
	if err != nil {
		return nil, err
	}
	defer handler.Close()
	p, err := l.processes.start(w.command, environment(), []*os.File{null, os.Stdout, os.Stderr, handler})
	if err != nil {
		server.Close()
		return nil, err
	}
	p.ends = []*os.File{server}
	return p, nil
}

func (w *loader) start(l *launcher) (*process, error) {
	p := w.blank
	w.blank = nil
	if p == nil || p.hasExited() {
		var err error
		if p, err = w.open(l); err != nil {
			return nil, err
		}
	}
	done, err := initialize(p, l.init, l.text)
	switch {
	case err != nil:
		l.processes.kill(p)
		closeAll(p.ends...)
		return nil, loadError(fmt.Sprintf("Initialization has failed: the process %s while it loaded the code. See the logs for details.", p.howItEnded()))
	case !done.OK:
		l.processes.kill(p)
		closeAll(p.ends...)
		return nil, loadError(done.Error)
	}
	return p, nil
}

// initialize has a process load the code. An error means that it ended, or closed its socket.
func initialize(p *process, init *runtimewire.Init, text []byte) (done runtimewire.InitDone, err error) {
	frame, err := runtimewire.AppendFrame(nil, runtimewire.TypeInit, init, len(text))
	if err != nil {
		return done, err
	}
	for _, b := range [][]byte{frame, text} {
		if _, err := p.ends[0].Write(b); err != nil {
			return done, err
		}
	}
	f, err := runtimewire.ReadFrame(p.ends[0], runtimewire.Limits{Header: runtimewire.MaxHeader})
	if err != nil {
		return done, err
	}
	if f.Type != runtimewire.TypeInitDone {
		return done, fmt.Errorf("a frame of type %d is not an answer to Init", f.Type)
	}
	return done, f.Decode(&done)
}

// jarName is what a jar is called in the code's folder.
const jarName = "action.jar"

func unpackJar(code []byte, folder string) error {
	if len(code) < 4 || string(code[:2]) != "PK" {
		return loadError("Initialization has failed: the code is not a jar.")
	}
	if err := os.WriteFile(filepath.Join(folder, jarName), code, 0o644); err != nil {
		return loadError(fmt.Sprintf("Initialization has failed: the jar cannot be written: %v.", pathless(err)))
	}
	return nil
}
