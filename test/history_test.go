package test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/test/history"
	"forerun.dev/forerun/test/server"
)

// mortalServer is the door of the real binary, which is killed and started again.
type mortalServer struct {
	t    *testing.T
	data string

	mu  sync.RWMutex // guards now; held while there is no server
	now *server.Server
}

func (m *mortalServer) Dial(ctx context.Context) (net.Conn, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return new(net.Dialer).DialContext(ctx, "tcp", m.now.Redis)
}

func (m *mortalServer) Crash() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Kill()
	return m.begin()
}

func (m *mortalServer) begin() (err error) {
	m.now, err = server.Start(m.t.Context(), server.Options{Binary: binary, Data: m.data, Redis: true})
	return err
}

// TestHistories lets clients work at the real binary while it is killed, and checks that what they saw is linearizable: in
// three lives, or in as many as fit into FORERUN_SOAK.
func TestHistories(t *testing.T) {
	seed, goOn := history.Seed(t), history.Soak(t)
	m := &mortalServer{t: t, data: filepath.Join(t.TempDir(), "data")}
	if err := m.begin(); err != nil {
		t.Fatal(err)
	}
	defer func() { m.now.Kill() }()
	for round := uint64(0); round == 0 || goOn(); round++ {
		plan := history.Plan{
			Seed: seed + round, Clients: 8, Lives: 3, Commands: 3000,
			Space: fmt.Sprint("round", round), Login: strings.SplitN(m.now.Auth, ":", 2),
		}
		result, err := history.Run(t.Context(), m, plan)
		if err != nil || result.Wrong != "" {
			t.Fatalf("seed %d: %v\n%s", plan.Seed, err, result.Wrong)
		}
		t.Logf("%d commands, %d of them not answered before a kill", result.Commands, result.Unanswered)
	}
}
