package launcher

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox/native"
)

// The test binary is also the launcher, the sandboxes' helper and their first stage.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Command:
			os.Exit(Main(os.Args[2:]))
		case "sandbox-helper":
			os.Exit(native.HelperMain(native.HelperFD))
		case "sandbox-init":
			os.Exit(native.InitMain())
		}
	}
	os.Exit(m.Run())
}

// patience bounds what a test waits for; it is over only when something hangs.
const patience = 60 * time.Second

// server is the other end of a launcher, which executes as a plain process.
type server struct {
	t       testing.TB
	control *runtimewire.Conn
	exits   []runtimewire.Exit
	logs    logs
	folder  string
	env     map[string]string // of Init
}

// logs collects what all processes write.
type logs struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func start(t testing.TB, args ...string) *server {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "control")
	s := &server{t: t, folder: t.TempDir()}
	if s.control, err = runtimewire.FileConn(os.NewFile(uintptr(fds[0]), "control"), limits); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("/proc/self/exe", append([]string{Command}, args...)...)
	command.Env = append(os.Environ(), codeVar+"="+s.folder)
	command.ExtraFiles = []*os.File{theirs}
	command.Stdout, command.Stderr = &s.logs, &s.logs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	t.Cleanup(func() {
		_ = s.control.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the launcher ended with %v; logs: %s", err, &s.logs)
		}
	})
	s.greet(args[0])
	return s
}

func (s *server) greet(language string) {
	s.t.Helper()
	s.patience(s.control.Socket())
	var hello runtimewire.Hello
	s.read(runtimewire.TypeHello, &hello)
	if hello.Protocol != runtimewire.Version || hello.Language != language {
		s.t.Fatalf("Hello is %+v", hello)
	}
}

var limits = runtimewire.Limits{Header: runtimewire.MaxHeader, Payload: runtimewire.MaxPayload}

func (s *server) patience(c *net.UnixConn) { _ = c.SetDeadline(time.Now().Add(patience)) }

// read reads the next frame that is no Exit.
func (s *server) read(want runtimewire.Type, into any) runtimewire.Frame {
	s.t.Helper()
	for {
		f, err := s.control.Read()
		if err != nil {
			s.t.Fatalf("reading a frame of type %d: %v; logs: %s", want, err, &s.logs)
		}
		if f.Type == runtimewire.TypeExit && want != f.Type {
			var e runtimewire.Exit
			if err := f.Decode(&e); err != nil {
				s.t.Fatal(err)
			}
			s.exits = append(s.exits, e)
			continue
		}
		if f.Type != want {
			s.t.Fatalf("a frame of type %d came instead of %d", f.Type, want)
		}
		if err := f.Decode(into); err != nil {
			s.t.Fatal(err)
		}
		return f
	}
}

func (s *server) load(init runtimewire.Init, code []byte) runtimewire.InitDone {
	s.t.Helper()
	s.env = init.Env
	if err := s.control.Write(runtimewire.TypeInit, init, code); err != nil {
		s.t.Fatal(err)
	}
	var done runtimewire.InitDone
	s.read(runtimewire.TypeInitDone, &done)
	return done
}

// conn is a connection with a handler: a runtimewire.Conn, or Lines.
type conn interface {
	Run(header runtimewire.Run, input []byte) error
	Read() (runtimewire.Frame, error)
	SetReadDeadline(t time.Time) error
	Close() error
}

// handler is a process that was handed out.
type handler struct {
	*server
	conn    conn
	pid     int // as the launcher says
	hostPID int // as the kernel says
}

// serving loads code that can be loaded and returns a first handler.
func (s *server) serving(init runtimewire.Init, code []byte) *handler {
	s.t.Helper()
	if done := s.load(init, code); !done.OK {
		s.t.Fatalf("the code could not be loaded: %s; logs: %s", done.Error, &s.logs)
	}
	return s.fork()
}

func (s *server) fork() *handler {
	s.t.Helper()
	return s.forked(runtimewire.Fork{})
}

func (s *server) forked(how runtimewire.Fork) *handler {
	s.t.Helper()
	if err := s.control.Write(runtimewire.TypeFork, how, nil); err != nil {
		s.t.Fatal(err)
	}
	var header runtimewire.Handler
	f := s.read(runtimewire.TypeHandler, &header)
	if header.Stopped != how.Stop {
		s.t.Errorf("asked to stop: %v; stopped: %v", how.Stop, header.Stopped)
	}
	if len(f.Files) == 0 {
		s.t.Fatalf("no handler came: %s; logs: %s", header.Error, &s.logs)
	}
	h := &handler{server: s, conn: s.connect(&header, f.Files), pid: header.PID}
	s.t.Cleanup(func() { _ = h.conn.Close() })
	if err := h.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	h.hostPID = h.ready()
	if s.folder != "" && h.hostPID != h.pid { // not in a sandbox: one namespace
		s.t.Fatalf("Ready came from process %d, not from %d", h.hostPID, h.pid)
	}
	return h
}

func (s *server) connect(h *runtimewire.Handler, files []*os.File) (c conn) {
	s.t.Helper()
	var err error
	if h.Lines {
		c, err = runtimewire.NewLines(files[0], files[1], s.env)
	} else {
		c, err = runtimewire.FileConn(files[0], limits)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (h *handler) ready() int {
	h.t.Helper()
	f, err := h.conn.Read()
	if err != nil || f.Type != runtimewire.TypeReady {
		h.t.Fatalf("instead of Ready came type %d, %v; logs: %s", f.Type, err, &h.logs)
	}
	return f.PID
}

func (h *handler) send(run runtimewire.Run, input string) {
	h.t.Helper()
	if err := h.conn.Run(run, []byte(input)); err != nil {
		h.t.Fatal(err)
	}
}

// outcome reads a Result: its payload, or "error: " with the sentence.
func (h *handler) outcome() string {
	h.t.Helper()
	f, err := h.conn.Read()
	if err != nil || f.Type != runtimewire.TypeResult {
		h.t.Fatalf("instead of a Result came type %d, %v; logs: %s", f.Type, err, &h.logs)
	}
	var r runtimewire.Result
	if err := f.Decode(&r); err != nil {
		h.t.Fatal(err)
	}
	if r.Status == runtimewire.StatusOK {
		return string(f.Payload)
	}
	return r.Status + ": " + r.Error
}

// call executes one activation with a handler that goes on after it.
func (h *handler) call(input string) string {
	h.t.Helper()
	h.send(runtimewire.Run{}, input)
	out := h.outcome()
	h.ready()
	return out
}

// end waits for the handler's end and returns how that was.
func (h *handler) end() runtimewire.Exit {
	h.t.Helper()
	for {
		for _, e := range h.exits {
			if e.PID == h.pid {
				return e
			}
		}
		var e runtimewire.Exit
		h.read(runtimewire.TypeExit, &e)
		h.exits = append(h.exits, e)
	}
}

// logged waits until a text is in the log.
func (s *server) logged(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(s.logs.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%q is not in the logs: %s", text, &s.logs)
		}
	}
}

// zipOf makes an archive of names and contents.
func zipOf(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// member returns a member of a JSON object.
func member(t *testing.T, object, name string) any {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	return members[name]
}
