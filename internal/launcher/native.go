package launcher

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/runtimewire"
)

// Command is the name under which this program is started again as the launcher; its main function passes what follows
// the name to Main.
const Command = "runtime-launcher"

// programName is what the program is called in an archive, and in the code's folder.
const programName = "exec"

// maxAck bounds a program's acknowledgement.
const maxAck = 64 << 10

// waitForAck is the variable with which a program is told to acknowledge its start by a line {"ok":true}.
const waitForAck = "__OW_WAIT_FOR_ACK"

// lineProgram is the language of programs that speak OpenWhisk's ActionLoop: a line of JSON in on the standard input, a line
// out on descriptor 3. They know nothing of frames: the server is given the pipes.
type lineProgram struct{}

func (lineProgram) unpack(init *runtimewire.Init, code []byte, folder string) error {
	program := filepath.Join(folder, programName)
	if !init.Binary || !isArchive(code) {
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
	program := filepath.Join(l.folder, programName)
	p, err := l.processes.start([]string{program}, withVariables(environment(), l.init.Env), pipes.theirs())
	closeAll(pipes.inRead, pipes.outWrite)
	if err != nil {
		closeAll(pipes.inWrite, pipes.outRead)
		return nil, loadError(fmt.Sprintf("Initialization has failed: %s.", execSentence(err)))
	}
	p.ends = []*os.File{pipes.inWrite, pipes.outRead}
	if err := pipes.begin(l.processes, p, l.init.Env[waitForAck] != ""); err != nil {
		l.processes.kill(p)
		closeAll(p.ends...)
		return nil, loadError(fmt.Sprintf("Initialization has failed: %v.", err))
	}
	return p, nil
}

// begin names the process as the owner of its input, by which the server learns its id, and waits for its acknowledgement
// if it gives one.
func (p *pipes) begin(ps *processes, of *process, ack bool) error {
	if err := ps.own(of, p.inWrite); err != nil {
		return fmt.Errorf("naming the program's process: %w", err)
	}
	if !ack {
		return nil
	}
	return acknowledged(bufio.NewReader(io.LimitReader(p.outRead, maxAck)).ReadBytes('\n'))
}

// withVariables lays variables over an environment: of two with one name many programs read the first.
func withVariables(environment []string, env map[string]string) []string {
	list := slices.DeleteFunc(slices.Clone(environment), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		_, replaced := env[name]
		return replaced
	})
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// pipes connect the server with a native process, and the launcher until the program is there. All are blocking here.
type pipes struct {
	inRead, inWrite   *os.File // the program's standard input
	outRead, outWrite *os.File // its answers
}

func openPipes() (*pipes, error) {
	p := new(pipes)
	for _, pair := range [][2]**os.File{{&p.inRead, &p.inWrite}, {&p.outRead, &p.outWrite}} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			closeAll(p.inRead, p.inWrite)
			return nil, fmt.Errorf("making the pipes of a program: %w", err)
		}
		*pair[0], *pair[1] = os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe")
	}
	return p, nil
}

// theirs are the program's descriptors.
func (p *pipes) theirs() []*os.File { return []*os.File{p.inRead, os.Stdout, os.Stderr, p.outWrite} }

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // of what is not there it does nothing
	}
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
