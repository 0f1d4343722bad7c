package harness

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

// Redis is a redis-server of our own.
type Redis struct {
	Address string
	cmd     *exec.Cmd
	folder  string
}

// StartRedis starts a local redis-server on a free port, with its data in a new folder under parent. durable: each write is on disk before
// its answer (appendfsync always); else nothing is ever written to disk.
func StartRedis(ctx context.Context, parent string, durable bool) (*Redis, error) {
	folder, err := os.MkdirTemp(parent, "redis")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().(*net.TCPAddr)
	l.Close()
	args := []string{"--port", fmt.Sprint(address.Port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--daemonize", "no"}
	if durable {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	r := &Redis{Address: address.String(), cmd: exec.Command("redis-server", args...), folder: folder}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("redis-server cannot be started: %w", err)
	}
	if err := r.awaitReady(ctx); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

func (r *Redis) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := net.Dial("tcp", r.Address); err == nil {
			conn.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server did not answer: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// Stop ends the server and removes its data.
func (r *Redis) Stop() {
	_ = r.cmd.Process.Kill() // nothing of it is kept
	_ = r.cmd.Wait()
	_ = os.RemoveAll(r.folder)
}
