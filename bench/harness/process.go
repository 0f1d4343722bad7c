package harness

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// readyLimit is how long a process that was started may take until it serves.
const readyLimit = 30 * time.Second

// Process is a process that a benchmark started, and what it wrote.
type Process struct {
	cmd    *exec.Cmd
	log    *log
	exited chan struct{} // closed when it has ended and been waited for
}

// StartProcess starts a command; what it writes to descriptors that the command leaves open is kept for errors.
func StartProcess(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, log: new(log), exited: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p.log
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.log
	}
	cmd.WaitDelay = time.Second // a process that it left must not hold us by its output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", filepath.Base(cmd.Path), err)
	}
	go func() {
		_ = cmd.Wait() // whoever needs it learns that it is gone
		close(p.exited)
	}()
	return p, nil
}

// Await calls ready until it returns nil.
func (p *Process) Await(ctx context.Context, ready func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended: %s", filepath.Base(p.cmd.Path), p.log)
		case <-ctx.Done():
			return fmt.Errorf("%s did not get ready: %w: %s", filepath.Base(p.cmd.Path), err, p.log)
		case <-tick.C:
		}
	}
}

// Stop ends the process at once, by its id, and waits for its end.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
}

// log keeps what a process writes.
type log struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// freeAddress is an address on the loopback that nobody listens on now, and its port.
func freeAddress() (address, port string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer l.Close()
	address = l.Addr().String()
	_, port, err = net.SplitHostPort(address)
	return address, port, err
}
