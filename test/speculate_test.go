package test

import (
	"cmp"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// invokeAhead invokes an action with the header that says how far to run ahead, and returns the answer and its body.
func invokeAhead(t *testing.T, c *server.Client, name, speculate, input string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL+"/api/v1/namespaces/_/actions/"+name+"?blocking=true&result=true", strings.NewReader(input))
	if err != nil {
		t.Fatal(err)
	}
	user, key, _ := strings.Cut(c.Auth, ":")
	r.SetBasicAuth(user, key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forerun-Speculate", speculate)
	return send(t, r)
}

// TestSpeculateHeader: what cannot be read is refused in words that say what could be, whatever the server allows, and nothing is executed.
func TestSpeculateHeader(t *testing.T) {
	t.Parallel()
	const depth, least = "depth has to be a whole number from 1 to 64", "least has to be a time from 0s to 1m, with its unit"
	const mode = "off, branches or all, and perhaps ; depth=32 (1 to 64) ; band=0.1 (0 to less than 0.5, with its 0) ; least=1ms (0s to 1m, with its unit) ; load=any"
	for _, word := range []string{"off", "all"} {
		c := client(t, start(t, server.Options{Args: []string{"--speculate", word}}))
		putPython(t, c, map[string]string{"echo": echoes})
		for text, what := range map[string]string{
			"": mode, "fast": mode, "ALL": mode, ";": mode, "all, depth=3": mode, "all; speed=9": mode, "all;": "leave it out", "all; depth=4; depth=5": "depth is there twice",
			"all; depth=0": depth, "all; depth=65": depth, "all; depth=4.5": depth, "branches; band=0.5": "band has to be a number from 0 to less than 0.5, with its 0",
			"all; least=2m": least, "all; least=-1s": least, "all; least=1": least, "all; load=much": "load has to be any, or left out",
		} {
			answer, body := invokeAhead(t, c, "echo", text, "{}")
			if answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%q is answered %d %s", text, answer.StatusCode, body)
			}
			for _, part := range []string{"X-Forerun-Speculate", what} {
				if !strings.Contains(body, part) {
					t.Errorf("%q is answered without %q: %s", text, part, body)
				}
			}
		}
		for _, text := range []string{"off", "branches", "all", " all ; depth=64;band=0; least=0s ;load=any"} {
			if answer, body := invokeAhead(t, c, "echo", text, `{"n":1}`); answer.StatusCode != http.StatusOK || body != `{"n":1}` {
				t.Errorf("%q is answered %d %s", text, answer.StatusCode, body)
			}
		}
		if _, records := status(t, c, "GET", "activations?limit=200", nil); strings.Count(records, `"activationId"`) != 4 {
			t.Errorf("what was refused has records: %s", records)
		}
	}
}

// TestSpeculateInVain: what a request asks for and the server does not give is told with its reason, in the answer, by the command line and,
// where nothing runs ahead at all, in the record.
func TestSpeculateInVain(t *testing.T) {
	t.Parallel()
	for word, why := range map[string]string{"off": "the server was started with --speculate off", "all": ""} {
		s := start(t, server.Options{Args: []string{"--speculate", word}})
		c := client(t, s)
		putPython(t, c, map[string]string{"one": echoes, "two": echoes})
		if err := c.PutSequence(t.Context(), "both", "one", "two"); err != nil {
			t.Fatal(err)
		}
		ignored := map[string]string{"off": "all; load=any", "all": "load=any"}[word] + `: the server has to be started with that, too, and was with --speculate "` + word + `; depth=32; band=0.1; least=1ms"`
		answer, body := invokeAhead(t, c, "both", "all; load=any", "{}")
		if got := answer.Header.Get("X-Forerun-Speculate-Ignored"); answer.StatusCode != http.StatusOK || got != ignored {
			t.Errorf("%s: %d %s, ignored %q", word, answer.StatusCode, body, got)
		}
		if got := traceOf(t, c, answer.Header.Get("X-Openwhisk-Activation-Id")).Trace.InTurn; got != why {
			t.Errorf("%s: nothing ran ahead, since %q, not %q", word, got, why)
		}
		newShell(t, s).follow(t, []step{
			{"invoke both -r --speculate 'all; load=any'", 0, "{}", "not in effect: " + ignored},
			{"activation trace --last", 0, cmp.Or(why, "both"), ""},
			{"invoke both -r --speculate maybe", 2, "", "--speculate"},
			{"activation trace NONSENSE", 2, "", "forerun activation list"},
		})
	}
}

// TestSpeculateBranches: a server that runs ahead of branches alone goes on with the branch that was taken before, but guesses
// no output by its input, and a request gets no more.
func TestSpeculateBranches(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--speculate", "branches; least=0s; load=any"}})
	k := newKnown(t, s, "ada")
	k.must(false, false)
	k.must(true, true)
	k.must(true, true)
	for _, text := range []string{"branches; least=0s; load=any", "all; least=0s; load=any"} {
		for program, want := range map[string]string{"chain": "early=0, used=0, squashed=0, skipped=1", "branch": "early=1, used=1, squashed=0, skipped=0"} {
			var got, body string
			for range guesses(program == "branch") {
				var answer *http.Response
				answer, body = invokeAhead(t, k.Client, program, text, `{"n":4}`)
				if got = answer.Header.Get("X-Forerun-Speculation"); got != "early=0, used=0, squashed=0, skipped=0" {
					break
				}
			}
			if got != want || body != `{"twice":8}` {
				t.Errorf("%s with %q ran ahead %q, want %q: %s", program, text, got, want, body)
			}
		}
	}
	if answer, _ := invokeAhead(t, k.Client, "branch", "off", `{"n":4}`); answer.Header.Get("X-Forerun-Speculation") != "" {
		t.Errorf("with off it ran ahead %q", answer.Header.Get("X-Forerun-Speculation"))
	}
}

// TestKillSwitch: the operator stops all running ahead on a server that runs, whatever requests ask for, and lets it go on.
func TestKillSwitch(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--speculate", "all; least=0s; load=any"}})
	k := newKnown(t, s, "ada")
	k.must(false, false)
	operator := func(verb, want string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), binary, "speculation", verb, "--operator", filepath.Join(s.Options.Data, "operator")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("speculation %s: %v, %s", verb, err, out)
		}
	}
	ran := func(want bool) {
		t.Helper()
		var early, body string
		for range guesses(want) {
			var answer *http.Response
			answer, body = invokeAhead(t, k.Client, "branch", "all; least=0s; load=any", `{"n":4}`)
			if early = answer.Header.Get("X-Forerun-Speculation"); !strings.HasPrefix(early, "early=0") {
				break
			}
		}
		if strings.HasPrefix(early, "early=1") != want || !want && early != "" {
			t.Errorf("it ran ahead %q: %s", early, body)
		}
	}
	ran(true)
	operator("off", "ok:")
	operator("get", "in effect: off\nswitch: off\n--speculate: all; depth=32; band=0.1; least=0s; load=any\n")
	ran(false)
	operator("on", "ok:")
	operator("get", "in effect: all; depth=32; band=0.1; least=0s; load=any\nswitch: on\n")
	ran(true)
}

// TestPureFunctionDeployedAgain: what is known of a pure function is forgotten as it is deployed again, be it the same.
func TestPureFunctionDeployedAgain(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{Args: []string{"--speculate", "all; least=0s; load=any"}}))
	for _, version := range []string{"0.0.1", "0.0.2"} {
		put(t, c, "pure", map[string]any{
			"exec":        map[string]any{"kind": "python:3", "code": "import os\ndef main(args):\n    return {'version': os.environ['__OW_ACTION_VERSION']}"},
			"annotations": []any{map[string]any{"key": "pure-function", "value": true}},
		})
		for _, want := range []string{"miss; no result on this input is kept", "hit"} {
			answer, body := invokeAhead(t, c, "pure", "all; least=0s; load=any", `{}`)
			if header := answer.Header.Get(cacheHeader); !strings.Contains(body, version) || header != want {
				t.Errorf("%s, %s; want %s of version %s", body, header, want, version)
			}
		}
	}
}
