package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestBinaryAlone: the binary with nothing beside it runs functions, says what is missing, and another binary keeps the data.
func TestBinaryAlone(t *testing.T) {
	t.Parallel()
	needNode(t)
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	folder, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	alone := filepath.Join(folder, "forerun")
	err = os.Chmod(filepath.Dir(folder), 0o755) // for the user that the server becomes
	if err == nil {
		err = os.WriteFile(alone, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Options{Binary: alone, Data: data})
	c := client(t, s)
	put(t, c, "node", map[string]any{"exec": map[string]any{"kind": "nodejs:20", "code": "const main = args => args"}})
	putPython(t, c, map[string]string{"python": echoes})
	for _, name := range []string{"node", "python"} {
		equalJSON(t, invoke(t, c, name, map[string]int{"n": 1}).Response.Result, `{"n":1}`)
	}
	for _, want := range []string{"python/packages is missing: Python functions import", "node_modules is missing: Node functions require"} {
		if !strings.Contains(s.Log(), want) {
			t.Errorf("the server does not say that %s", want)
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, server.Options{Data: data}) // the upgrade
	if strings.Contains(s.Log(), "/python/packages is missing") {
		t.Error("the server misses what is beside it")
	}
	equalJSON(t, invoke(t, client(t, s), "python", map[string]int{"n": 2}).Response.Result, `{"n":2}`)
}
