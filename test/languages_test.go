package test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/test/compare"
	"forerun.dev/forerun/test/server"
)

// language is a kind of actions, with a function in it that does what it is asked to: actions/probe.py and its like.
type language struct {
	name, kind, main string
	code             func(t *testing.T) string // or the base64 of what is no text
	kept             bool                      // its handlers serve several activations
}

var languages = []language{
	{name: "python", kind: "python:3", code: source("actions/probe.py"), kept: true},
	{name: "node", kind: "nodejs:20", code: source("actions/probe.js"), kept: true},
	{name: "native", kind: "native", code: nativeProgram, kept: true},
	{name: "java", kind: "java:17", main: "Probe", code: javaProgram, kept: true},
}

func source(path string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// built is what a compiler made, once for all tests.
type built struct {
	once sync.Once
	code []byte
	err  error
	why  string // what the compiler said
}

func (b *built) get(t *testing.T, make func(folder string) ([]byte, string, error)) string {
	t.Helper()
	b.once.Do(func() {
		folder, err := os.MkdirTemp("", "forerun-test")
		if err != nil {
			b.err = err
			return
		}
		defer os.RemoveAll(folder)
		b.code, b.why, b.err = make(folder)
	})
	if b.err != nil {
		t.Fatalf("%v: %s", b.err, b.why)
	}
	return base64.StdEncoding.EncodeToString(b.code)
}

var (
	theNative built
	theJar    built
)

func nativeProgram(t *testing.T) string {
	t.Helper()
	return theNative.get(t, func(folder string) ([]byte, string, error) {
		cmd := exec.Command("go", "build", "-trimpath", "-o", folder+"/exec", "./actions/native")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, string(out), err
		}
		code, err := os.ReadFile(folder + "/exec")
		return code, "", err
	})
}

// needJava skips a test on a machine without a JDK, or where `make test` has not built the Java runtime.
func needJava(t *testing.T) {
	t.Helper()
	if why := whyNoJava(); why != "" {
		t.Skip(why)
	}
}

func whyNoJava() string {
	if _, err := exec.LookPath("javac"); err != nil {
		return "there is no JDK; make test installs one"
	}
	if _, err := os.Stat("../bin/runtimes/java/forerun-runtime.jar"); err != nil {
		return "the Java runtime is not built; make test builds it"
	}
	return ""
}

func javaProgram(t *testing.T) string {
	t.Helper()
	needJava(t)
	return theJar.get(t, func(folder string) ([]byte, string, error) { return compileJava(folder, "actions/Probe.java") })
}

// compileJava makes a jar of a source file, or returns what the compiler said.
func compileJava(folder, source string) (code []byte, why string, err error) {
	for _, command := range [][]string{
		{"javac", "-cp", "../bin/runtimes/java/gson.jar", "-d", folder + "/classes", source},
		{"jar", "cf", folder + "/a.jar", "-C", folder + "/classes", "."},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return nil, string(out), err
		}
	}
	code, err = os.ReadFile(folder + "/a.jar")
	return code, "", err
}

// needNode skips a test on a machine without Node, or where `make build` has not installed what functions find at hand.
func needNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed; make test installs it")
	}
	if _, err := os.Stat("../bin/runtimes/node/packages/node_modules/redis"); err != nil {
		t.Skip("the npm packages for functions are not installed; make build installs them")
	}
}

// put deploys the language's function under a name.
func (l *language) put(t *testing.T, c *server.Client, name string, limits map[string]int) {
	t.Helper()
	if l.name == "node" {
		needNode(t)
	}
	put(t, c, name, map[string]any{"exec": map[string]any{"kind": l.kind, "code": l.code(t), "main": l.main}, "limits": limits})
}

// put deploys an action.
func put(t *testing.T, c *server.Client, name string, action map[string]any) {
	t.Helper()
	if err := c.Put(context.WithoutCancel(t.Context()), name, action); err != nil {
		t.Fatal(err)
	}
}

// room has a server keep so many sandboxes of the default size at most: a test that looks at what one keeps gets no other.
func room(sandboxes int) []string { return []string{"--memory", strconv.Itoa(256 * sandboxes)} }

// forEachLanguage runs a test for each, with a server that has room for one sandbox and a function named probe-LANGUAGE.
func forEachLanguage(t *testing.T, limits map[string]int, test func(t *testing.T, l *language, c *server.Client)) {
	t.Parallel()
	s := start(t, server.Options{Args: room(1)})
	c := client(t, s)
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			l.put(t, c, "probe-"+l.name, limits)
			test(t, &l, c)
		})
	}
}

// ask invokes the language's function.
func (l *language) ask(t *testing.T, c *server.Client, do string) *server.Record {
	t.Helper()
	return invoke(t, c, "probe-"+l.name, map[string]any{"do": do})
}

// TestLanguagesServe looks at results, the environment, and what a handler keeps from one activation to the next.
func TestLanguagesServe(t *testing.T) {
	forEachLanguage(t, nil, func(t *testing.T, l *language, c *server.Client) {
		for call := 1; call <= 3; call++ {
			r := l.ask(t, c, "echo")
			want := map[string]any{"calls": 1, "id": r.ActivationID, "action": "/guest/probe-" + l.name, "n": 1}
			if l.kept {
				want["calls"] = call
			}
			text, _ := json.Marshal(want) // strings and numbers always marshal
			equalJSON(t, r.Response.Result, string(text))
		}
	})
}

// TestLanguagesFail: a function that crashes, hangs or eats all memory fails alone, and the next activation is served.
func TestLanguagesFail(t *testing.T) {
	// A busy machine may take seconds to load the code and to fill the memory, and the time limit holds for that too.
	const patient, hasty = 55_000, 10_000 // ms
	forEachLanguage(t, map[string]int{"timeout": patient, "memory": 128}, func(t *testing.T, l *language, c *server.Client) {
		for _, f := range []struct {
			do     string
			status []string
			says   []string // one of them
		}{
			{"throw", []string{"application error", "action developer error"}, []string{"nooo"}},
			{"exit", []string{"action developer error"}, []string{"exited unexpectedly with status 3"}},
			{"memory", []string{"action developer error"}, []string{"exhausted its memory", "MemoryError", "OutOfMemoryError"}},
			{"sleep", []string{"action developer error"}, []string{"exceeded its time limits of 10000 milliseconds"}},
		} {
			if f.do == "sleep" {
				l.put(t, c, "probe-"+l.name, map[string]int{"timeout": hasty, "memory": 128})
			}
			r := l.ask(t, c, f.do)
			says := func(part string) bool { return strings.Contains(string(r.Response.Result), part) }
			if !slices.Contains(f.status, r.Response.Status) || !slices.ContainsFunc(f.says, says) {
				t.Errorf("%s: %s %s", f.do, r.Response.Status, r.Response.Result)
			}
			if r := l.ask(t, c, "echo"); !r.Response.Success {
				t.Errorf("after %s: %s", f.do, r.Response.Result)
			}
		}
	})
}

// TestLanguagesLog looks at the lines of each stream.
func TestLanguagesLog(t *testing.T) {
	forEachLanguage(t, nil, func(t *testing.T, l *language, c *server.Client) {
		for range 2 {
			r := stored(t, c, l.ask(t, c, "log").ActivationID)
			var lines []string
			for _, line := range r.Logs {
				at, rest, _ := strings.Cut(line, " ")
				if len(at) != len("2026-01-02T03:04:05.000000000Z") {
					t.Errorf("the line %q does not begin with a time", line)
				}
				lines = append(lines, rest)
			}
			slices.Sort(lines)
			if got := strings.Join(lines, "\n"); got != "stderr: to stderr\nstdout: to stdout" {
				t.Errorf("the log is %q", r.Logs)
			}
		}
	})
}

// TestLanguagesLeaveNothing: files and processes of an activation are gone when the next begins; the handler's own memory stays
// where handlers do.
func TestLanguagesLeaveNothing(t *testing.T) {
	forEachLanguage(t, nil, func(t *testing.T, l *language, c *server.Client) {
		for call := 1; call <= 3; call++ {
			calls := 1
			if l.kept {
				calls = call
			}
			text, _ := json.Marshal(map[string]int{"files": 0, "children": 0, "calls": calls})
			equalJSON(t, l.ask(t, c, "leave").Response.Result, string(text))
		}
	})
}

// TestLanguagesListInterfaces: libraries do so as they are loaded. A sandbox has one.
func TestLanguagesListInterfaces(t *testing.T) {
	forEachLanguage(t, nil, func(t *testing.T, l *language, c *server.Client) {
		equalJSON(t, l.ask(t, c, "interfaces").Response.Result, `{"names":["lo"]}`)
	})
}

// TestLanguagesReachState: all languages count on one counter; connections that a handler keeps serve its next activation.
func TestLanguagesReachState(t *testing.T) {
	needPackages(t)
	n := 0
	forEachLanguage(t, nil, func(t *testing.T, l *language, c *server.Client) {
		for range 3 {
			n++
			text, _ := json.Marshal(map[string]int{"n": n})
			equalJSON(t, l.ask(t, c, "count").Response.Result, string(text))
		}
	})
}

// TestSequenceOfAllLanguages passes a number through each.
func TestSequenceOfAllLanguages(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{}))
	var components []string
	for _, l := range languages {
		l.put(t, c, l.name, nil)
		components = append(components, l.name)
	}
	if err := c.PutSequence(t.Context(), "all", append(components, components...)...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var result struct{ N int }
		if err := c.Result(t.Context(), "all", map[string]int{"n": 1}, &result); err != nil || result.N != 1+2*len(languages) {
			t.Errorf("the sequence of %v twice made %d of 1 (%v)", components, result.N, err)
		}
	}
}

// switched makes what follows it count. What it says was seen before, until the switch is turned.
var switched = map[string]string{
	"turn": sharedHeader + `
def main(args):
    return {"turned": state.incr("switch")}
`,
	"before": sharedHeader + `
def main(args):
    seen = state.get("switch")
    time.sleep(0.1)
    return {"do": "count", "seen": seen}
`,
}

// TestLanguagesAhead: in each language a function runs ahead of one that mostly says what it said before, and is squashed if it says
// something else. Each invocation is counted once.
func TestLanguagesAhead(t *testing.T) {
	t.Parallel()
	needPackages(t)
	c := client(t, start(t, server.Options{Args: []string{"--speculate", "all; least=0s; load=any"}}))
	putPython(t, c, switched)
	n := 0
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			l.put(t, c, "probe-"+l.name, nil)
			if err := c.PutSequence(t.Context(), "ahead-"+l.name, "before", "probe-"+l.name); err != nil {
				t.Fatal(err)
			}
			var used, squashed int
			const rounds = 40 // on a machine that is busy otherwise little runs ahead
			for round := 0; round < rounds && (used == 0 || squashed == 0); round++ {
				if round%4 == 3 {
					invoke(t, c, "turn", nil)
				}
				n++
				answer, body := invokeAhead(t, c, "ahead-"+l.name, "all; least=0s; load=any", "{}")
				if want := fmt.Sprintf(`{"n":%d}`, n); body != want {
					t.Fatalf("round %d is answered %d %s, want %s", round, answer.StatusCode, body, want)
				}
				tally := answer.Header.Get("X-Forerun-Speculation")
				_, right, wrong, err := compare.ReadTally(tally)
				if err != nil {
					t.Fatalf("round %d ran ahead %q: %v", round, tally, err)
				}
				used, squashed = used+right, squashed+wrong
			}
			if used == 0 || squashed == 0 {
				t.Errorf("of what ran ahead %d were used and %d squashed", used, squashed)
			}
		})
	}
}

// TestKinds: the server tells the kinds, and refuses others with their names.
func TestKinds(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{}))
	for given, want := range map[string]string{"nodejs:default": "nodejs:", "python:default": "python:3", "native:default": "native"} {
		code := base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n"))
		put(t, c, "kind", map[string]any{"exec": map[string]any{"kind": given, "code": code}})
		var action struct{ Exec struct{ Kind string } }
		if err := c.Get(t.Context(), "actions/kind", &action); err != nil || !strings.HasPrefix(action.Exec.Kind, want) {
			t.Errorf("%s became %q (%v)", given, action.Exec.Kind, err)
		}
	}
	status, body, err := c.Do(t.Context(), "PUT", "actions/kind?overwrite=true", map[string]any{"exec": map[string]any{"kind": "cobol:1", "code": "x"}})
	if err != nil || status != 400 || !strings.Contains(string(body), "'cobol:1' is not supported") || !strings.Contains(string(body), "'native'") {
		t.Errorf("an unknown kind is answered %d %s (%v)", status, body, err)
	}
}
