package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// operator runs a command of the operator of a server.
func operator(t *testing.T, s *server.Server, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "FORERUN_OPERATOR="+filepath.Join(s.Options.Data, "operator"))
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), errors.String(), err
}

// TestBackup takes a backup while clients write two counters together, and starts a server on what is restored of it.
func TestBackup(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{Redis: true})
	putPython(t, client(t, s), map[string]string{"echo": "def main(args):\n    return args\n"})
	before := invoke(t, client(t, s), "echo", map[string]string{"a": "b"})
	r := redisClient(s)
	defer r.Close()
	if err := r.MSet(t.Context(), "a", 1, "z", 1).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() { count(ctx, t, redisClient(s)) })
	}
	folder := t.TempDir()
	file, said, err := operator(t, s, "backup", folder)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	cancel()
	writers.Wait()
	if _, said, err := operator(t, s, "backup", file); err == nil || !strings.Contains(said, "there already") {
		t.Errorf("over another backup: %v, %s", err, said)
	}
	data := filepath.Join(t.TempDir(), "restored")
	if _, said, err := operator(t, s, "restore", file, "--data", data); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if _, said, err := operator(t, s, "restore", file, "--data", s.Options.Data); err == nil || !strings.Contains(said, "not empty") {
		t.Errorf("over a running server: %v, %s", err, said)
	}
	after := start(t, server.Options{Data: data, Redis: true})
	if a, z := counters(t, after); a != z || a == "0" {
		t.Errorf("the counters are %s and %s", a, z)
	}
	equalJSON(t, stored(t, client(t, after), before.ActivationID).Response.Result, `{"a":"b"}`)
	equalJSON(t, invoke(t, client(t, after), "echo", map[string]string{"c": "d"}).Response.Result, `{"c":"d"}`)
	old := *after // with the key that it had before
	old.Auth = s.Auth
	equalJSON(t, invoke(t, client(t, &old), "echo", map[string]string{"e": "f"}).Response.Result, `{"e":"f"}`)
}

// count adds to two counters until ctx ends.
func count(ctx context.Context, t *testing.T, r *redis.Client) {
	defer r.Close()
	for ctx.Err() == nil {
		_, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "a")
			p.Incr(ctx, "z")
			return nil
		})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
	}
}

func counters(t *testing.T, s *server.Server) (a, z string) {
	t.Helper()
	r := redisClient(s)
	defer r.Close()
	values, err := r.MGet(t.Context(), "a", "z").Result()
	if err != nil || values[0] == nil || values[1] == nil {
		t.Fatalf("%v, %v", values, err)
	}
	return values[0].(string), values[1].(string)
}
