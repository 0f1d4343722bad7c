// Package server starts the real binary for the end-to-end tests and the
// benchmarks, as a person would: with a data folder and free ports.
//
// It promises that a server it started is waited for, and that it is ended by
// its process id. It imports the standard library alone.
package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// readyLimit is how long a server may take until it answers, on a busy machine.
const readyLimit = 2 * time.Minute

// Options say what to start.
type Options struct {
	Binary string   // path of bin/forerun
	Data   string   // the data folder
	User   int      // uid and gid to start it as; 0: ours
	Redis  bool     // open the door for Redis clients on a free port
	Args   []string // further arguments of `serve`
}

// Server is a running server.
type Server struct {
	URL     string // http://127.0.0.1:PORT, or https
	Auth    string // uuid:key of its first tenant
	Redis   string // address of the door for Redis clients, if open
	Options Options
	Took    time.Duration // from the start of the process to its first answer
	cmd     *exec.Cmd
	log     *output
	exited  chan struct{} // closed when the process has ended; then err is how
	err     error
}

// Start starts a server and waits until it answers. An error holds what the server said.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{Options: o, log: new(output), exited: make(chan struct{})}
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--data", o.Data}, o.Args...)
	if o.Redis {
		args = append(args, "--redis-listen", "127.0.0.1:0") // its own choice: a port we found free may be taken by then
	}
	s.cmd = exec.Command(o.Binary, args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.WaitDelay = time.Second // a process that it left must not hold us by its output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if o.User != 0 {
		s.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.User), Gid: uint32(o.User)}
		s.cmd.Env = append(os.Environ(), "HOME="+o.Data)
	}
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	if err := s.awaitReady(ctx); err != nil {
		s.Kill()
		return nil, err
	}
	s.Took = time.Since(began)
	return s, nil
}

// awaitReady waits until the server that wrote the clients' settings answers.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if s.readProps() && s.readRedis() && s.healthy(ctx) {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("the server ended (%w): %s", s.ending(), s.Log())
		case <-ctx.Done():
			return fmt.Errorf("the server did not answer: %w: %s", ctx.Err(), s.Log())
		case <-tick.C:
		}
	}
}

var errNone = errors.New("exit status 0")

func (s *Server) ending() error {
	if s.err == nil {
		return errNone
	}
	return s.err
}

// readProps reads DATA/wskprops, which the server writes when it listens.
func (s *Server) readProps() bool {
	text, err := os.ReadFile(s.Props())
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "APIHOST":
			s.URL = value
		case "AUTH":
			s.Auth = value
		}
	}
	return s.URL != "" && s.Auth != ""
}

// redisSaid is where the server says which port Redis clients reach it on.
var redisSaid = regexp.MustCompile(`redis-cli -p (\d+) `)

// readRedis reads the port of the door for Redis clients in what the server says when it listens, if that is open.
func (s *Server) readRedis() bool {
	if said := redisSaid.FindStringSubmatch(s.Log()); said != nil {
		s.Redis = "127.0.0.1:" + said[1]
	}
	return s.Redis != "" || !s.Options.Redis
}

// Props is the path of the clients' settings.
func (s *Server) Props() string { return filepath.Join(s.Options.Data, "wskprops") }

// healthy reports whether the server answers. Where another listener serves /healthz it says that there is no such path here.
func (s *Server) healthy(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/healthz", nil)
	if err != nil {
		return false
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.TLS()}}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNotFound
}

// CA is the path of the server's own certificate authority, which it makes when it speaks TLS.
func (s *Server) CA() string { return filepath.Join(s.Options.Data, "ca.crt") }

// TLS is the configuration of a client, which trusts that authority, if there is one.
func (s *Server) TLS() *tls.Config {
	text, err := os.ReadFile(s.CA())
	if err != nil {
		return nil
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: trust}
}

// PID is the server's process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log is what the server has written so far.
func (s *Server) Log() string { return s.log.String() }

// Exited is closed when the server's process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Kill ends the server at once (SIGKILL) and waits for its end.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.exited
}

// Stop asks the server to end (SIGTERM) and waits for it. The error is the server's own, or that it did not end.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the server had ended before: %w: %s", s.ending(), s.Log())
	}
	select {
	case <-s.exited:
	case <-time.After(readyLimit):
		s.Kill()
		return fmt.Errorf("the server did not end within %v of SIGTERM: %s", readyLimit, s.Log())
	}
	if s.err != nil {
		return fmt.Errorf("the server ended badly: %w: %s", s.err, s.Log())
	}
	return nil
}

// output collects what a process writes.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
