package main

import (
	_ "embed"
	"runtime/debug"
	"strings"
)

// next is the version that is being made: what a tag gives a release, without its v.
//
//go:embed VERSION
var next string

// stamped is the version that tools/version.sh found, which `make build` links in; empty in other builds.
var stamped string

// version is what `forerun version` says.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(stamped, strings.TrimSpace(next), info)
}

// versionOf says what is known: what make stamped, the release that `go install` fetched, or the commit that the Go tool noted.
func versionOf(stamped, next string, info *debug.BuildInfo) string {
	if stamped != "" {
		return stamped
	}
	if info != nil && info.Main.Version == "v"+next {
		return next
	}
	version := next + "-dev"
	if info == nil {
		return version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			version += "+" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			version += ".dirty"
		}
	}
	return version
}
