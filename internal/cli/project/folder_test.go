package project

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLinks: a link inside the folder works in the archive too; others are left out and told.
func TestLinks(t *testing.T) {
	outside, folder := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{
		filepath.Join(outside, "secret"): "s", filepath.Join(folder, "index.js"): "i", filepath.Join(folder, "store/pkg/main.js"): "m",
		filepath.Join(folder, "virtualenv/pyvenv.cfg"): "v",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		".#index.js": "someone@somewhere.123:456", "gone.js": "nothing.js", "same.js": "index.js", "absolute.js": filepath.Join(folder, "index.js"),
		"node_modules/pkg": "../store/pkg", "again": ".", "circle": "circle", "secret": filepath.Join(outside, "secret"), "away": outside, "up": "..",
		"twice": "secret", "virtualenv/bin/python3": filepath.Join(outside, "secret"), "virtualenv/bin/tool": filepath.Join(outside, "secret"), "store/pkg/back.js": "../../same.js",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link") // the folder itself may be named by a link
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	const out = ": a link out of the folder; copy what it leads to into the folder if the function needs it"
	wantLeft := []string{
		"left out .#index.js: a link to nothing", "left out away" + out, "left out circle: a link that cannot be followed",
		"left out gone.js: a link to nothing", "left out secret" + out, "left out twice" + out, "left out up" + out, "left out virtualenv/bin/tool" + out,
	}
	want := map[string]string{
		"index.js": "i", "same.js": "i", "absolute.js": "i", "store/pkg/main.js": "m", "store/pkg/back.js": "i", "node_modules/pkg": "link to ../store/pkg", "again": "link to .", "virtualenv/pyvenv.cfg": "v",
	}
	for _, named := range []string{folder, link} {
		exec, left, err := ReadCode(named, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(left, wantLeft) {
			t.Errorf("left out %q\nwant     %q", left, wantLeft)
		}
		if got := unpacked(t, *exec.Code); !maps.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	}
}

// unpacked are the contents of an archive's files, and where its links lead.
func unpacked(t *testing.T, code string) map[string]string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, f := range archive.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(content)
		if f.Mode()&os.ModeSymlink != 0 {
			files[f.Name] = "link to " + string(content)
		}
	}
	return files
}
