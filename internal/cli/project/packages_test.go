package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLacksPackages: a folder that names packages and does not hold them is deployed with a warning.
func TestLacksPackages(t *testing.T) {
	for name, x := range map[string]struct {
		files []string // "path" or "path=content"
		want  string   // "": no warning
	}{
		"requirements":             {[]string{"__main__.py", "requirements.txt"}, "F/requirements.txt has no effect: install the packages into F/virtualenv, as Forerun installs nothing (docs/guide/dependencies.md)"},
		"hidden environment":       {[]string{"__main__.py", ".venv/pyvenv.cfg"}, "F/.venv has no effect"},
		"environment":              {[]string{"__main__.py", "requirements.txt", "virtualenv/pyvenv.cfg"}, ""},
		"packages beside the code": {[]string{"__main__.py", "requirements.txt", "humanize-4.dist-info/RECORD"}, ""},
		"no packages":              {[]string{"__main__.py"}, ""},
		"requirements of Node":     {[]string{"index.js", "requirements.txt"}, ""},
		"dependencies":             {[]string{"index.js", "package.json=\ufeff{\"dependencies\":{\"is-odd\":\"3\"}}"}, "the dependencies in F/package.json are not there: run `npm install --prefix F` first, as Forerun installs nothing (docs/guide/dependencies.md)"},
		"modules":                  {[]string{"index.js", `package.json={"dependencies":{"is-odd":"3"}}`, "node_modules/is-odd/index.js"}, ""},
		"no dependencies":          {[]string{"index.js", `package.json={"main":"index.js","devDependencies":{"is-odd":"3"}}`}, ""},
		"no manifest":              {[]string{"index.js", "package.json={"}, ""},
	} {
		folder := t.TempDir()
		for _, file := range x.files {
			path, content, _ := strings.Cut(file, "=")
			path = filepath.Join(folder, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, warnings, err := ReadCode(folder, "", "")
		got := strings.ReplaceAll(strings.Join(warnings, "\n"), folder, "F")
		if err != nil || (x.want == "") != (got == "") || !strings.HasPrefix(got, x.want) {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, x.want)
		}
	}
}
