package worker

import (
	"log/slog"
	"os"
	"testing"

	"forerun.dev/forerun/internal/sandbox/native"
)

// The test binary is also the sandboxes' helper and their first stage.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "sandbox-helper":
			os.Exit(native.HelperMain(native.HelperFD))
		case "sandbox-init":
			os.Exit(native.InitMain())
		}
	}
	os.Exit(m.Run())
}

// newNativeRig makes a worker over real sandboxes.
func newNativeRig(t testing.TB, change func(*Config)) *rig {
	languages := discover()
	if languages.Check("python:3") != nil {
		t.Skip("this machine has no Python")
	}
	maker, err := native.StartHelper(native.Config{DataDir: t.TempDir(), BindRoots: languages.Folders()})
	if err != nil {
		t.Skipf("no sandboxes can be made here: %v", err)
	}
	config := Config{
		Maker: maker, Languages: languages, MemoryMiB: 16 << 10,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&config)
	}
	w := New(config)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := maker.Close(); err != nil {
			t.Errorf("closing the maker: %v", err)
		}
	})
	return &rig{w, nil, t}
}

func TestWaysToEndInRealSandboxes(t *testing.T) {
	g := newNativeRig(t, nil)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			checkWay(&rig{g.Worker, nil, t}, way.body, way.status, way.result, way.log, way.limits)
		})
	}
}
