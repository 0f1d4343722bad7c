package harness

import (
	"context"
	"net"
	"os"
	"os/exec"
)

// Redis is a redis-server of our own.
type Redis struct {
	Address string
	process *Process
	folder  string
}

// StartRedis starts a local redis-server on a free port, with its data in a new folder under parent. durable: each write is on disk before
// its answer (appendfsync always); else nothing is ever written to disk.
func StartRedis(ctx context.Context, parent string, durable bool) (*Redis, error) {
	folder, err := os.MkdirTemp(parent, "redis")
	if err != nil {
		return nil, err
	}
	address, port, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{"--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--daemonize", "no"}
	if durable {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	r := &Redis{Address: address, folder: folder}
	if r.process, err = StartProcess(exec.Command("redis-server", args...)); err != nil {
		return nil, err
	}
	if err := r.process.Await(ctx, r.answers); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

func (r *Redis) answers(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.Address)
	if err == nil {
		conn.Close()
	}
	return err
}

// Stop ends the server and removes its data.
func (r *Redis) Stop() {
	r.process.Stop() // nothing of it is kept
	_ = os.RemoveAll(r.folder)
}
