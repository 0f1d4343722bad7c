package baseline

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// What is stored in the one of the servers that are compared.
const (
	storedActions     = 100_000
	storedActivations = 1_000_000
	unloaded          = 60 // actions that all of them hold, to be called once each
)

// measureStored compares a server that holds many actions and activations with one that holds next to none, call by call in turn. A
// third, which is like the second, shows how far two equal servers seem apart.
func measureStored(ctx context.Context, b *bench) error {
	var servers []*server.Server
	defer func() {
		for _, s := range servers {
			stop(s)
		}
	}()
	actions, activations := b.count(storedActions), b.count(storedActivations)
	for _, f := range []struct {
		name                 string
		actions, activations int
	}{{"empty", unloaded, 0}, {"equal", unloaded, 0}, {"filled", actions, activations}} {
		s, err := b.filled(ctx, b.binary, f.name, f.actions, f.activations)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	settle(ctx, 3*time.Second) // the last to be filled has tidied up
	b.row(harness.Row{Case: "full store", Metric: "actions", Unit: "1", Value: harness.Number(float64(actions))})
	b.row(harness.Row{Case: "full store", Metric: "activations", Unit: "1", Value: harness.Number(float64(activations))})
	return b.compareAll(ctx, "full store", "an empty server's", "<=1.05", servers)
}

// filled starts a server whose store holds so much.
func (b *bench) filled(ctx context.Context, binary, name string, actions, activations int) (*server.Server, error) {
	o := inTurn(binary, filepath.Join(b.folder, name))
	s, err := server.Start(ctx, o) // it makes the folder and the tenant
	if err != nil {
		return nil, err
	}
	if err := s.Stop(); err != nil {
		return nil, err
	}
	fill := exec.CommandContext(ctx, b.fill, "--store", filepath.Join(o.Data, "store"),
		"--actions", strconv.Itoa(actions), "--activations", strconv.Itoa(activations))
	if said, err := fill.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("filling the store: %w: %s", err, said)
	}
	return server.Start(ctx, o)
}
