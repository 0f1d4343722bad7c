package compose

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocument: a composition is read without an installation, as a CommonJS file and as an ES module.
func TestDocument(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("this machine has no node")
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.js":   "const composer = require('openwhisk-composer')\nconsole.log('words')\nmodule.exports = composer.if('test', composer.seq('a', 'b'), x => x)\n",
		"b.mjs":  "import composer from 'openwhisk-composer'\nexport default composer.seq('a')\n",
		"no.js":  "module.exports = 5\n",
		"bad.js": "nothing()\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"a.js": "if", "b.mjs": "seq"} {
		var got struct {
			Composition, AST struct{ Type string }
			Version          string
		}
		document, err := Document(filepath.Join(folder, name))
		if err == nil {
			err = json.Unmarshal(document, &got)
		}
		if err != nil || got.AST.Type != want || got.Composition.Type == "" || got.Version != "0.12.0" {
			t.Errorf("%s: %v, %s", name, err, document)
		}
	}
	for name, want := range map[string]string{"no.js": "no.js cannot be read as a composition", "bad.js": "nothing is not defined", "gone.js": "cannot be read"} {
		if _, err := Document(filepath.Join(folder, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	t.Setenv("PATH", folder)
	if _, err := Document(filepath.Join(folder, "a.js")); err == nil || !strings.Contains(err.Error(), "Install Node.js") {
		t.Errorf("without node: %v", err)
	}
}

// TestLibrary: the library in the binary is the published one.
func TestLibrary(t *testing.T) {
	published := "../../../node_modules/openwhisk-composer"
	if _, err := os.Stat(published); err != nil {
		t.Skip("the library is not installed: make build and make test do it")
	}
	for _, name := range []string{"composer.js", "fqn.js", "LICENSE.txt", "NOTICE.txt"} {
		ours, err := files.ReadFile("openwhisk-composer/" + name)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile(filepath.Join(published, name))
		if err != nil || string(ours) != string(theirs) {
			t.Errorf("%s differs from the published one, %v", name, err)
		}
	}
}
