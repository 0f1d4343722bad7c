package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

const root = tree("../..")

func built(t *testing.T) *cyclonedx.BOM {
	t.Helper()
	bom, err := read(root.path("bin/sbom.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	return bom
}

// TestShippedIsNamed looks at what was built, apart from CycloneDX's tools, and for each of it in the bill of materials.
func TestShippedIsNamed(t *testing.T) {
	named := make(map[string]bool)
	for _, c := range deref(built(t).Components) {
		named[strings.SplitN(c.PackageURL, "?", 2)[0]] = true
	}
	for _, purl := range shipped(t) {
		if !named[purl] {
			t.Errorf("bin/sbom.cdx.json does not name %s", purl)
		}
	}
}

// shipped gives package URLs of what is in the binary and in the folders beside it.
func shipped(t *testing.T) (purls []string) {
	t.Helper()
	info, err := buildinfo.ReadFile(root.path("bin/forerun"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		purls = append(purls, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	packages := 0
	for _, name := range glob(t, "bin/runtimes/node/packages/node_modules/*/package.json",
		"bin/runtimes/node/packages/node_modules/@*/*/package.json", ".forerun/console/node_modules/preact/package.json",
		".forerun/console/node_modules/@preact/*/package.json") {
		var p struct{ Name, Version string }
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		purls = append(purls, "pkg:npm/"+strings.ReplaceAll(p.Name, "@", "%40")+"@"+p.Version)
		packages++
	}
	for _, name := range glob(t, "bin/runtimes/python/packages/*.dist-info/METADATA") {
		name, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(filepath.Dir(name)), ".dist-info"), "-")
		purls = append(purls, "pkg:pypi/"+strings.ReplaceAll(strings.ToLower(name), "_", "-")+"@"+version)
		packages++
	}
	for _, name := range glob(t, "bin/runtimes/java/*.jar") {
		switch jar := filepath.Base(name); jar {
		case "gson.jar":
			purls = append(purls, "pkg:maven/com.google.code.gson/gson@2.11.0")
		case "forerun-runtime.jar":
			purls = append(purls, "pkg:maven/dev.forerun/forerun-runtime@1")
		default:
			t.Errorf("the jar %s is new here: say which package it is", jar)
		}
	}
	if len(info.Deps) < 10 || packages < 20 {
		t.Fatalf("only %d modules and %d packages were built", len(info.Deps), packages)
	}
	return purls
}

func glob(t *testing.T, patterns ...string) (names []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(root.path(p))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	return names
}

func TestLicencesAreCompatible(t *testing.T) {
	for _, fault := range refused(built(t)) {
		t.Error(fault)
	}
}

func TestRefusedLicences(t *testing.T) {
	components := []cyclonedx.Component{
		{Name: "good", Licenses: licence("MIT")},
		{Name: "copyleft", Version: "2", Licenses: licence("GPL-3.0-only")},
		{Name: "silent", Licenses: &cyclonedx.Licenses{}},
		{Name: "both", Licenses: &cyclonedx.Licenses{{Expression: "MIT OR GPL-2.0-only"}}},
	}
	faults := strings.Join(refused(&cyclonedx.BOM{Components: &components}), "\n")
	for _, want := range []string{"copyleft 2 has the licence \"GPL-3.0-only\"", "silent  has no licence", "both"} {
		if !strings.Contains(faults, want) {
			t.Errorf("the faults lack %q:\n%s", want, faults)
		}
	}
	if strings.Contains(faults, "good") {
		t.Errorf("a good licence is refused:\n%s", faults)
	}
}

func TestTextsAreRecognized(t *testing.T) {
	for file, want := range map[string]string{"LICENSE": "Apache-2.0", composer + "/LICENSE.txt": "Apache-2.0"} {
		content, err := os.ReadFile(root.path(file))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(classify(content), " "); got != want {
			t.Errorf("%s is taken for %q, want %q", file, got, want)
		}
	}
}

// TestNotice makes NOTICE again. It changes if a component comes or goes, or has another licence.
func TestNotice(t *testing.T) {
	want, err := root.notice(built(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(root.path("NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("NOTICE is not what the bill of materials says. `make notice` writes it: review what has changed, above all licences.\n%s", firstChange(string(got), want))
	}
}

func firstChange(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "it has  " + a[i] + "\nand not " + b[i]
		}
	}
	return "one is longer"
}
