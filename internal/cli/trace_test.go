package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTrace(t *testing.T) {
	const root, child, called = "01234567890123456789012345678901", "01234567890123456789012345678902", "01234567890123456789012345678903"
	const old = "01234567890123456789012345678904"
	get := "GET namespaces/_/activations/"
	w := newWorld(t, map[string]answer{
		get + root + "?trace=true": {status: 200, body: `{"name":"chain","activationId":"` + root + `","logs":["` + child + `"],
			"annotations":[{"key":"kind","value":"sequence"},{"key":"path","value":"guest/p/chain"}],
			"trace":{"queued":1000,"launched":1000,"finished":3000,"committed":3000,"speculative":false,
			"tally":{"early":1,"used":0,"squashed":1,"skipped":0,"depth":1,"inOrder":9000,"slots":[
				{"action":"guest/late","queued":1500,"launched":1500,"squashed":2500,"slot":3,"speculative":true,"kind":"conflict","cause":"one #1 wrote"}]}}}`},
		get + child + "?trace=true": {status: 200, body: `{"name":"one","activationId":"` + child + `","logs":["` + root + `"],
			"annotations":[{"key":"kind","value":"python:3"}],
			"trace":{"slot":1,"inline":2,"queued":1000,"launched":1000,"finished":3000,"committed":3000,"waited":1000,"speculative":false,"calls":["` + called + `"]}}`},
		get + called + "?trace=true": {status: 200, body: `{"name":"two","activationId":"` + called + `","logs":[],
			"trace":{"slot":2,"queued":2000,"launched":2000,"finished":3000,"committed":3000,"speculative":false}}`},
		get + old + "?trace=true": {status: 200, body: `{"name":"old","activationId":"` + old + `"}`},
	})
	o := w.run("", "activation", "trace", root)
	for _, part := range []string{"#1 p/chain ", "\n#2   one (inline 2) ", "\n#4     two ", "\n#3   late ", "squashed: one #2 wrote", "1ms wasted"} {
		if !strings.Contains(o.stdout, part) {
			t.Errorf("%q is missing in\n%s%s", part, o.stdout, o.stderr)
		}
	}
	if o = w.run("", "activation", "trace", root, "-o", "jsonl"); !strings.Contains(o.stdout, `"wall":2000,"inOrder":9000,"wasted":1000,`) {
		t.Errorf("as JSON: %+v", o)
	}
	picture := filepath.Join(t.TempDir(), "x.svg")
	o = w.run("", "activation", "trace", root, "--svg", picture)
	if drawn, err := os.ReadFile(picture); err != nil || o.code != 0 || !strings.HasPrefix(string(drawn), "<svg ") {
		t.Errorf("as a picture: %+v %v %s", o, err, drawn)
	}
	if o = w.run("", "activation", "trace", root, "--svg", filepath.Join(picture, "x")); o.code != 2 {
		t.Errorf("where no file can be: %+v", o)
	}
	t.Chdir(t.TempDir())
	o = w.run("", "activation", "trace", root, "--svg", "-")
	if _, err := os.Stat("-"); err == nil || o.code != 2 || !strings.Contains(o.stderr, "/dev/stdout") {
		t.Errorf("to standard output: %+v %v", o, err)
	}
	if o = w.run("", "activation", "trace", root, "--svg", ""); o.code != 2 || o.stdout != "" || !strings.Contains(o.stderr, "it takes the name of a file") {
		t.Errorf("to a file without a name: %+v", o)
	}
	if o = w.run("", "activation", "trace", old); o.code != 1 || !strings.Contains(o.stderr, "no trace") {
		t.Errorf("without a trace: %+v", o)
	}
}

// TestTraceOfMany: all activations that an invocation may have are drawn.
func TestTraceOfMany(t *testing.T) {
	const parts = 1500
	answers, logs := make(map[string]answer), make([]string, parts)
	put := func(n int, rest string) string {
		id := fmt.Sprintf("%032d", n)
		answers["GET namespaces/_/activations/"+id+"?trace=true"] = answer{status: 200, body: fmt.Sprintf(`{"name":"x%d","activationId":"%s","trace":{"queued":1000,"launched":1000,"finished":3000,"committed":3000},%s}`, n, id, rest)}
		return id
	}
	for n := range parts {
		logs[n] = put(n+1, `"logs":[]`)
	}
	root := put(0, `"annotations":[{"key":"kind","value":"sequence"}],"logs":["`+strings.Join(logs, `","`)+`"]`)
	if o := newWorld(t, answers).run("", "activation", "trace", root); o.code != 0 || !strings.Contains(o.stdout, " x1500 ") {
		t.Errorf("%d: %s", o.code, o.stderr)
	}
}

func TestBarsHavePartOfTheTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	defer terminal.Close()
	for columns, want := range map[uint16]int{0: traceWidth, 30: leastTrace, 80: 32, 200: 80} {
		if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
			t.Fatal(err)
		}
		if got := barsWidth(terminal); got != want {
			t.Errorf("with %d columns they are %d wide, want %d", columns, got, want)
		}
	}
	if got := barsWidth(new(strings.Builder)); got != traceWidth {
		t.Errorf("where there is no terminal they are %d wide", got)
	}
}
