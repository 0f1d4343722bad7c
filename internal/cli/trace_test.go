package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTrace(t *testing.T) {
	const root, old = "01234567890123456789012345678901", "01234567890123456789012345678904"
	get := "GET namespaces/_/activations/"
	w := newWorld(t, map[string]answer{
		get + root + "/trace": {status: 200, body: `{"begin":1000,"wall":2000,"inOrder":9000,"wasted":1000,"cites":true,"times":"2ms in all.","counts":"1 squashed.","slots":[
			{"action":"p/chain","activationId":"` + root + `","row":1,"depth":0,"program":true,"title":"p/chain","queued":1000,"finished":3000,"bars":[{"look":"workflow","from":1000,"to":3000}]},
			{"action":"one","row":2,"depth":1,"title":"one (inline 2)","queued":1000,"launched":1000,"squashed":3000,"note":"squashed: why","bars":[{"look":"squashed","from":1000,"to":3000}]}]}`},
		get + old + "/trace": {status: 404, body: `{"error":"There is no trace of the activation: activations of triggers have none."}`},
	})
	o := w.run("", "activation", "trace", root)
	for _, part := range []string{"#1 p/chain ", "\n#2   one (inline 2) |xxx", "|       2ms  squashed: why\n", "\n2ms in all. 1 squashed.\n"} {
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
	if o = w.run("", "activation", "trace", old); o.code != 4 || !strings.Contains(o.stderr, "no trace") {
		t.Errorf("without a trace: %+v", o)
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
