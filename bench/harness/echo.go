package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// EchoCommand is the name under which the bench binary runs Echo.
const EchoCommand = "echo"

// Echo serves a plain net/http server on a free port, which it prints, until its standard input ends: it answers each
// request with the request's body.
func Echo(_ context.Context, _ []string) error {
	return answering(func(body []byte) ([]byte, error) { return body, nil })
}

// answering serves: it answers each request with what f makes of its body.
func answering(f func(body []byte) ([]byte, error)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = f(body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // a client that left is not our failure
	})}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // whoever started us has gone
		_ = server.Close()
	}()
	fmt.Println("http://" + l.Addr().String())
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// EchoServer is a plain server in a process of its own, as Forerun is.
type EchoServer struct {
	URL   string
	cmd   *exec.Cmd
	stdin io.Closer
}

// StartEcho starts the bench binary's own echo server.
func StartEcho() (*EchoServer, error) { return startPlain(EchoCommand) }

// StartFloor starts its server that has a Python process answer.
func StartFloor() (*EchoServer, error) { return startPlain(FloorCommand) }

func startPlain(command string) (*EchoServer, error) {
	cmd := exec.Command("/proc/self/exe", command)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e := &EchoServer{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		e.Stop()
		return nil, fmt.Errorf("the server %q did not start: %w", command, err)
	}
	e.URL = strings.TrimSpace(line)
	return e, nil
}

// Stop ends the server.
func (e *EchoServer) Stop() {
	e.stdin.Close()
	_ = e.cmd.Wait() // it has nothing to say
}
