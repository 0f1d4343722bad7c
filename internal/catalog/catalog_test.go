package catalog

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

func TestInstall(t *testing.T) {
	store, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	r := registry.Open(store, registry.DefaultLimits(), nil)
	t.Cleanup(func() {
		r.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	install := func() map[string]string {
		t.Helper()
		if err := Install(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		versions := make(map[string]string)
		pkg, err := r.Entity(t.Context(), registry.Packages, forerun.Name{Namespace: registry.System, Entity: "utils"})
		if err != nil || !pkg.Publish {
			t.Fatalf("%+v, %v", pkg, err)
		}
		versions["utils"] = pkg.Version
		for _, name := range packages {
			for a, err := range r.Actions(t.Context(), registry.System, name, 0, 100) {
				if err != nil {
					t.Fatal(err)
				}
				versions[a.Name.Entity] = a.Version
			}
		}
		return versions
	}
	if first := install(); len(first) != 13 {
		t.Errorf("installed %v", first)
	}
	for name, version := range install() {
		if version != "0.0.1" {
			t.Errorf("a second start made version %s of %s", version, name)
		}
	}
	echo := forerun.Name{Namespace: registry.System, Package: "utils", Entity: "echo"}
	_, err = r.PutAction(t.Context(), echo, true, func(old *forerun.Action) (*forerun.Action, error) {
		changed := *old
		changed.Version, changed.Exec.Code = "", "of an earlier server"
		return &changed, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if versions := install(); versions["echo"] != "0.0.3" || versions["cat"] != "0.0.1" {
		t.Errorf("after a change: %v", versions)
	}
	if a, err := r.Action(t.Context(), echo); err != nil || !strings.Contains(a.Exec.Code, "function main") {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := r.CreateTenant(t.Context(), registry.System, registry.Quotas{}); forerun.KindOf(err) != forerun.Exists {
		t.Errorf("a tenant took the system's namespace: %v", err)
	}
}
