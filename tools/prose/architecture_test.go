package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestArchitectureNamesEveryPackage: ARCHITECTURE.md names each folder of internal, and the files that it names are there.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !strings.Contains(string(text), "`internal/"+folder.Name()+"`") {
			t.Errorf("the table of packages has no internal/%s", folder.Name())
		}
	}
	for i, word := range strings.Split(string(text), "`") {
		if i%2 == 1 && strings.HasPrefix(word, "internal/") {
			if _, err := os.Stat(filepath.Join(root, word)); err != nil {
				t.Errorf("%s is named, but is not there", word)
			}
		}
	}
}
