package embedded

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/statetest"
)

func mustOpen(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoreInMemory(t *testing.T) {
	statetest.Run(t, func(t *testing.T, now func() time.Time) state.Store {
		return mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: now})
	})
}

func TestStoreOnDisk(t *testing.T) {
	statetest.Run(t, func(t *testing.T, now func() time.Time) state.Store {
		return mustOpen(t, t.TempDir(), Options{Now: now})
	})
}

// TestMachineFails loses of what was not synced all, half, or nothing.
func TestMachineFails(t *testing.T) {
	for name, percent := range map[string]int{"all": 0, "half": 50, "nothing": 100} {
		t.Run("loses "+name, func(t *testing.T) {
			statetest.RunCrashes(t, func(t *testing.T, rng *rand.Rand) (state.Store, func() state.Store) {
				fs := vfs.NewCrashableMem()
				crash := func() state.Store {
					fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
					return mustOpen(t, "store", Options{FS: fs})
				}
				return mustOpen(t, "store", Options{FS: fs}), crash
			})
		})
	}
}

// TestFresh: a fresh command looks for nothing, and the commands beside it in the same step do.
func TestFresh(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	command := func(fresh bool, args ...string) state.Command {
		c := state.Command{Space: "space", Fresh: fresh}
		for _, arg := range args {
			c.Args = append(c.Args, []byte(arg))
		}
		return c
	}
	ops := []state.Command{command(false, "INCR", "n"), command(true, "SET", "k", "v", "NX"), command(false, "SET", "k", "v", "NX")}
	if err := apply(t, s, command(false, "SET", "n", "1"), command(false, "SET", "k", "before")); err != nil {
		t.Fatal(err)
	}
	replies, _, err := s.Exec(t.Context(), nil, ops)
	if err != nil || replies[0].Int != 2 || replies[1].Kind != state.Simple || replies[2].Kind != state.Nil {
		t.Errorf("%+v, %v", replies, err)
	}
	if err := apply(t, s, command(true, "INCR", "n"), command(false, "INCR", "k2"), command(true, "APPEND", "k", "!")); err != nil {
		t.Fatal(err)
	}
	found, err := s.Get(t.Context(), forerun.Key{Space: "space", Name: "n"}, forerun.Key{Space: "space", Name: "k"})
	if err != nil || string(found[0].Data) != "1" || string(found[1].Data) != "!" {
		t.Errorf("%+v, %v", found, err)
	}
}

func apply(t *testing.T, s *Store, ops ...state.Command) error {
	_, err := s.Apply(t.Context(), state.Txn{Ops: ops})
	return err
}
