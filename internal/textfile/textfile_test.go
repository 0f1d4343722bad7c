package textfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	for name, data := range map[string]string{
		"plain":    "ä=1\n",
		"UTF-8":    "\xef\xbb\xbfä=1\n",
		"UTF-16LE": "\xff\xfe\xe4\x00=\x001\x00\n\x00",
		"UTF-16BE": "\xfe\xff\x00\xe4\x00=\x001\x00\n",
	} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(file); string(got) != "ä=1\n" || err != nil {
			t.Errorf("%s: read %q, %v", name, got, err)
		}
	}
	if got := Decode(nil); len(got) != 0 {
		t.Errorf("nothing became %q", got)
	}
}
