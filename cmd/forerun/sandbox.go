package main

import (
	"forerun.dev/forerun/internal/launcher"
	"forerun.dev/forerun/internal/sandbox/native"
)

// runSandboxProcess runs the hidden commands that the server starts itself with: the helper that makes sandboxes, and
// the first process in each, which for some languages stays this program. They are no commands for people, and must be up at once, so they pass everything else by.
func runSandboxProcess(args []string) (exitCode int, ok bool) {
	if len(args) > 2 && args[1] == launcher.Command {
		return launcher.Main(args[2:]), true
	}
	if len(args) != 2 {
		return 0, false
	}
	switch args[1] {
	case "sandbox-helper":
		return native.HelperMain(native.HelperFD), true
	case "sandbox-init":
		return native.InitMain(), true
	}
	return 0, false
}
