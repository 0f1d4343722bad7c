package embedded

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

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
