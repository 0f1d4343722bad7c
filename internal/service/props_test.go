package service

import (
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

// started is a server as far as its first start goes, in a folder of its own.
func started(t *testing.T) *server {
	t.Helper()
	t.Chdir(t.TempDir())
	store, err := embedded.Open("store", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{registry: registry.Open(store, registry.DefaultLimits(), nil), listeners: listeners{front: &listener{Listener: taken}}, log: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() {
		taken.Close()
		s.registry.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	start(t, s)
	return s
}

func start(t *testing.T, s *server) {
	t.Helper()
	if err := s.firstStart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func owner(t *testing.T, s *server) string {
	t.Helper()
	tenant, err := s.registry.Authenticate(t.Context(), first(readAuth(propsName)), second(readAuth(propsName)))
	if err != nil {
		return ""
	}
	return tenant.Namespace
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }

func TestFirstStart(t *testing.T) {
	s := started(t)
	if owner(t, s) != "guest" {
		t.Errorf("the settings hold a key of %q", owner(t, s))
	}
	key := s.operator
	if info, err := os.Stat(operatorName); err != nil || info.Mode().Perm() != 0o600 || operatorKey() != key || len(key) < 64 {
		t.Errorf("the operator's file: %v, %v", info, err)
	}
	start(t, s) // again
	if s.operator != key || owner(t, s) != "guest" {
		t.Error("a second start changed the keys")
	}
	if err := os.WriteFile(operatorName, []byte("AUTH=me:guessable\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if start(t, s); s.operator == key || strings.Contains(s.operator, "guessable") {
		t.Errorf("a key that can be guessed was not replaced: %s", s.operator)
	}
}

// TestSettingsStay: what a start has nothing to change in is not written, and what others could read is made the owner's again.
func TestSettingsStay(t *testing.T) {
	s := started(t)
	look := func() (found [2]os.FileInfo) {
		t.Helper()
		for i, name := range []string{operatorName, propsName} {
			var err error
			if found[i], err = os.Lstat(name); err != nil || found[i].Mode() != 0o600 {
				t.Fatalf("%s: %v, %v", name, found[i], err)
			}
		}
		return found
	}
	before := look()
	start(t, s)
	for i, after := range look() {
		if !os.SameFile(before[i], after) {
			t.Errorf("%s was written although nothing has changed", after.Name())
		}
	}
	if err := os.Chmod(operatorName, 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, s)
	look()
	if err := os.Rename(propsName, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", propsName); err != nil {
		t.Fatal(err)
	}
	start(t, s)
	look()
}

// TestSettingsOfASuspendedTenant: a start while the first tenant is suspended does not make it another key.
func TestSettingsOfASuspendedTenant(t *testing.T) {
	s := started(t)
	if _, err := s.registry.Suspend(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(propsName)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)
	if after, err := os.ReadFile(propsName); err != nil || string(after) != string(before) {
		t.Errorf("the settings were written anew: %v", err)
	}
}

// TestSettingsAreTheFirstTenants: whoever else there is, their keys do not get into the settings.
func TestSettingsAreTheFirstTenants(t *testing.T) {
	s := started(t)
	if _, err := s.registry.CreateTenant(t.Context(), "ada", registry.Quotas{}); err != nil {
		t.Fatal(err)
	}
	if err := s.keysChanged("ada", "a:b"); err != nil || owner(t, s) != "guest" {
		t.Errorf("after a change of another's key: %q, %v", owner(t, s), err)
	}
	if err := os.Remove(propsName); err != nil {
		t.Fatal(err)
	}
	if start(t, s); owner(t, s) != "guest" {
		t.Errorf("lost settings are of %q", owner(t, s))
	}
	if _, err := s.registry.DeleteTenant(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	if start(t, s); owner(t, s) != "" {
		t.Errorf("without the first tenant, the settings hold a key of %q", owner(t, s))
	}
	if _, err := s.registry.DeleteTenant(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if start(t, s); owner(t, s) != "" {
		t.Errorf("while the first tenant is erased, the settings hold a key of %q", owner(t, s))
	}
	if err := s.registry.Erased(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	if start(t, s); owner(t, s) != "guest" {
		t.Errorf("without any tenant, the settings hold a key of %q", owner(t, s))
	}
	if tenants, err := s.registry.Tenants(t.Context()); err != nil || len(tenants) != 1 {
		t.Errorf("the tenants are %v, %v", tenants, err)
	}
}
