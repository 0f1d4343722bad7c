package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestPackagesTriggersAndRulesByCommand runs the client commands against a running server, one after the other. Each tells
// what it is to end with, and a part of what it is to write to stdout, or to stderr if it fails.
func TestPackagesTriggersAndRulesByCommand(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	file := filepath.Join(t.TempDir(), "give.py")
	if err := os.WriteFile(file, []byte("def main(args):\n    return args\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		command string
		exit    int
		says    string
	}{
		{"package create p -p x 1 -p y 1", 0, ""},
		{"action create p/give " + file + " -p y 2", 0, ""},
		{"action invoke p/give -r -p z 3 -o jsonl", 0, `{"x":1,"y":2,"z":3}`},
		{"package bind p b -p x 9", 0, ""},
		{"action invoke b/give -r -o jsonl", 0, `{"x":9,"y":2}`},
		{"action list b", 0, "/guest/p/give"},
		{"package get b binding", 0, `"name": "p"`},
		{"package bind none c", 4, "Binding references a package that does not exist."},
		{"package delete p", 4, "Package not empty (contains 1 entity)."},
		{"package list /whisk.system", 0, "/whisk.system/utils"},
		{"action delete /whisk.system/utils/echo", 4, "not authorized to access 'whisk.system/utils/echo'"},
		{"trigger create t -p k 1", 0, ""},
		{"trigger fire t", 0, ""},
		{"rule create r t b/give", 0, ""},
		{"rule create r2 t /whisk.system/utils/echo", 0, ""},
		{"rule disable r2", 0, ""},
		{"rule list --name-sort", 0, "/guest/r   active    t        give\n/guest/r2  inactive  t        echo"},
		{"trigger fire t -p u 5", 0, ""},
		{"activation list t -o json", 0, `"name": "t"`},
		{"trigger create fed --feed p/give -p cron daily", 0, ""},
		{"trigger get fed annotations", 0, `/_/p/give`},
		{"trigger delete fed", 0, ""},
		{"trigger delete t", 0, ""},
		{"rule get r status", 0, "inactive"},
		{"rule enable r", 4, "Only rules with existing triggers can be activated"},
		{"rule delete r", 0, ""},
		{"namespace get", 0, "package  /guest/b"},
		{"package delete p -r", 0, ""},
		{"action invoke b/give", 4, "does not exist"},
	} {
		cmd := exec.CommandContext(t.Context(), binary, strings.Fields(step.command)...)
		cmd.Env = append(os.Environ(), "WSK_CONFIG_FILE="+s.Props())
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the exit code tells
		said := stdout.String()
		if step.exit != 0 {
			said = stderr.String()
		}
		if cmd.ProcessState.ExitCode() != step.exit || !strings.Contains(said, step.says) {
			t.Errorf("forerun %s: exit %d, want %d and %q:\n%s%s", step.command, cmd.ProcessState.ExitCode(), step.exit, step.says, &stdout, &stderr)
		}
	}
}
