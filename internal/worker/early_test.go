package worker

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// inScript is a native action that is a shell script.
func inScript(text string) *forerun.Action {
	a := action("")
	a.Exec = forerun.Exec{Kind: "native", Code: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n" + text)), Binary: true}
	return a
}

// TestCodeThatEndsItsProcess: a process that ends before it reads an activation is the doing of the code, whenever that is noticed. It is started
// once for each activation.
func TestCodeThatEndsItsProcess(t *testing.T) {
	const early = `{"error":"The action's process ended HOW before it read the input. See the logs for details."}`
	const serves = "A native program serves until its input ends: for each activation it reads a line of JSON from its standard input, and writes its result, a line of JSON, to descriptor 3."
	for name, c := range map[string]struct {
		inLanguage   func(source string) *forerun.Action
		code, result string
	}{
		"native, status 0":       {inScript, "echo began; echo '{\"a\":1}'", strings.Replace(early, `HOW before it read the input. See the logs for details."`, `with status 0 before it read the input. See the logs for details. `+serves+`"`, 1)},
		"native, one line":       {inScript, "echo began; read -r line; echo '{\"a\":1}'", `{"error":"The action exited unexpectedly with status 0: it must return a dictionary. ` + serves + `"}`},
		"native, status 3":       {inScript, "echo began >&2; exit 3", strings.Replace(early, "HOW", "with status 3", 1)},
		"native, killed":         {inScript, "echo began; kill -9 $$", strings.Replace(early, "HOW", "by signal 9 (killed)", 1)},
		"native, crash":          {inScript, "echo began; kill -SEGV $$", strings.Replace(early, "HOW", "by signal 11 (segmentation fault)", 1)},
		"native, input closed":   {inScript, "echo began; exec <&-; exit 3", strings.Replace(early, "HOW", "with status 3", 1)},
		"native, unasked answer": {inScript, `echo began; echo '{"a":1}' >&3; exit 4`, strings.Replace(early, "HOW", "with status 4", 1)},
		"native, child stays":    {inScript, "echo began; sleep 1000 & exit 5", strings.Replace(early, "HOW", "with status 5", 1)},
		"native, late":           {inScript, "echo began; sleep 0.01; exit 6", strings.Replace(early, "HOW", "with status 6", 1)},
		"native, while it runs":  {inScript, "echo began; read -r line; exit 7", `{"error":"The action exited unexpectedly with status 7: it must return a dictionary."}`},
		"native, garbage":        {inScript, "echo began; read -r line; echo garbage >&3", `{"error":"The action did not return a dictionary or array."}`},
		"Python, as it is forked": {
			action, "import os\ndef forked():\n  print('began', flush=True)\n  os._exit(8)\nos.register_at_fork(after_in_child=forked)\ndef main(args): return {}",
			strings.Replace(early, "HOW", "with status 8", 1),
		},
		"Python, closes all as it is forked": {
			action, "import os\ndef forked():\n  print('began', flush=True)\n  os.closerange(3, 1000)\nos.register_at_fork(after_in_child=forked)\ndef main(args): return {}",
			strings.Replace(early, "HOW", "with status 70", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newNativeRig(t, single)
			for version := range 8 {
				a := c.inLanguage(fmt.Sprintf("%s\n# %d", c.code, version)) // each has its own sandbox
				before := g.Stats().ColdStarts
				end := g.call(a, `{"a":"b"}`)
				if end.Status != forerun.DeveloperError || string(end.Result) != c.result {
					t.Errorf("%v %s; want %s", end.Status, end.Result, c.result)
				}
				if log := texts(end.Logs); strings.Count(log, "began") != 1 {
					t.Errorf("the log is %q", log)
				}
				if starts := g.Stats().ColdStarts - before; starts != 1 {
					t.Errorf("%d sandboxes were started", starts)
				}
			}
		})
	}
}
