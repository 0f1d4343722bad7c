package launcher

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/runtimewire"
)

// Command is the name under which this program is started again as the stub of a native process; its main function
// passes what follows the name to Main.
const (
	Command     = "runtime-launcher"
	stubCommand = "exec"
)

// The descriptors of a stub besides its standard ones. The native program keeps the first.
const (
	stubOutput  = 3 // where the program writes its answers
	stubHandler = 4 // the handler's socket
	stubStatus  = 5 // where the stub says why the program could not be executed
)

// programName is what the program is called in an archive, and in the code's folder.
const programName = "exec"

// maxAck bounds a program's acknowledgement.
const maxAck = 64 << 10

// waitForAck is the variable with which a program is told to acknowledge its start by a line {"ok":true}.
const waitForAck = "__OW_WAIT_FOR_ACK"

// lineProgram is the language of programs that speak OpenWhisk's ActionLoop: a line of JSON in on the standard input, a line
// out on descriptor 3. They know nothing of frames: the server is given the pipes. Only the first Ready is sent by the
// process itself, before it becomes the program, so that the server learns its id.
type lineProgram struct{}

func (lineProgram) unpack(init *runtimewire.Init, code []byte, folder string) error {
	program := filepath.Join(folder, programName)
	if !init.Binary || !bytes.HasPrefix(code, []byte("PK\x03\x04")) {
		if err := os.WriteFile(program, code, 0o755); err != nil {
			return loadError(fmt.Sprintf("Initialization has failed: the program cannot be written: %v.", pathless(err)))
		}
		return nil
	}
	if err := unpackArchive(code, folder); err != nil {
		return err
	}
	if err := os.Chmod(program, 0o755); err != nil {
		return loadError(fmt.Sprintf("Initialization has failed: the archive has no file %q at its top.", programName))
	}
	return nil
}

func (lineProgram) start(l *launcher) (*process, error) {
	pipes, err := openPipes()
	if err != nil {
		return nil, err
	}
	defer pipes.closeTheirs()
	argv := []string{"/proc/self/exe", Command, stubCommand, filepath.Join(l.folder, programName)}
	p, err := l.processes.start(argv, append(environment(), assignments(l.init.Env)...), pipes.theirs())
	if err != nil {
		pipes.closeOurs()
		return nil, err
	}
	pipes.closeTheirs()
	defer pipes.statusRead.Close()
	if err := pipes.begin(l.init.Env[waitForAck] != ""); err != nil {
		l.processes.kill(p)
		pipes.closeOurs()
		return nil, loadError(fmt.Sprintf("Initialization has failed: %v.", err))
	}
	p.server, p.pipes = pipes.server, []*os.File{pipes.inWrite, pipes.outRead}
	return p, nil
}

// begin waits until the stub has become the program, and for its acknowledgement if it gives one.
func (p *pipes) begin(ack bool) error {
	reason, err := io.ReadAll(p.statusRead)
	if err != nil || len(reason) > 0 {
		return errors.Join(err, errors.New(string(reason)))
	}
	if !ack {
		return nil
	}
	return acknowledged(bufio.NewReader(io.LimitReader(p.outRead, maxAck)).ReadBytes('\n'))
}

func assignments(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// pipes connect the server with a native process, and the launcher until the program is there. All are blocking here.
type pipes struct {
	server, handler         *os.File // the two ends of the handler's socket
	inRead, inWrite         *os.File // the program's standard input
	outRead, outWrite       *os.File // its answers
	statusRead, statusWrite *os.File // the stub's
}

func openPipes() (*pipes, error) {
	p := new(pipes)
	var err error
	if p.server, p.handler, err = socketpair(); err != nil {
		return nil, err
	}
	for _, pair := range [][2]**os.File{{&p.inRead, &p.inWrite}, {&p.outRead, &p.outWrite}, {&p.statusRead, &p.statusWrite}} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			p.closeOurs()
			p.closeTheirs()
			return nil, fmt.Errorf("making the pipes of a program: %w", err)
		}
		*pair[0], *pair[1] = os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe")
	}
	return p, nil
}

// theirs are the descriptors of the stub.
func (p *pipes) theirs() []*os.File {
	return []*os.File{p.inRead, os.Stdout, os.Stderr, p.outWrite, p.handler, p.statusWrite}
}

// closeTheirs closes what only the process uses. Closing twice does nothing, and so does closing what is not there.
func (p *pipes) closeTheirs() { closeAll(p.handler, p.inRead, p.outWrite, p.statusWrite) }

func (p *pipes) closeOurs() { closeAll(p.server, p.inWrite, p.outRead, p.statusRead) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// stub says Ready in the name of the process and becomes the program.
func stub(program string) int {
	for _, fd := range []int{stubHandler, stubStatus} {
		unix.CloseOnExec(fd)
	}
	ready, err := runtimewire.AppendFrame(nil, runtimewire.TypeReady, nil, 0)
	if err == nil {
		_, err = unix.Write(stubHandler, ready)
	}
	if err == nil {
		err = unix.Exec(program, []string{program}, os.Environ())
	}
	_, _ = unix.Write(stubStatus, []byte(execSentence(err)))
	return 126
}

func execSentence(err error) string {
	switch {
	case errors.Is(err, unix.ENOEXEC):
		return "the program cannot be executed: it is neither an executable for this machine nor a script that begins with #!"
	case errors.Is(err, unix.ENOENT):
		return "the program cannot be executed: its interpreter or its dynamic linker is not there"
	default:
		return fmt.Sprintf("the program cannot be executed: %v", err)
	}
}

// acknowledged reads the line with which a program says that it is ready.
func acknowledged(line []byte, err error) error {
	var ack struct {
		OK bool `json:"ok"`
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the program ended before it acknowledged its start. See the logs for details")
	}
	if err != nil {
		return fmt.Errorf("the program's acknowledgement cannot be read: %w", err)
	}
	if json.Unmarshal(line, &ack) != nil || !ack.OK {
		return errors.New(`The action did not initialize properly: its acknowledgement is not {"ok":true}`)
	}
	return nil
}
