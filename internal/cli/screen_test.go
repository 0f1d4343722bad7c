package cli

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// hostile is what a function may write to have a terminal do something: ESC, CSI in one character, CR, BEL and DEL.
const hostile = "a\x1b]0;title\a\u009b2J\rb\x7f\tö"

// seen is how it is shown, but for what comes after the tab.
const seen = `a\u001b]0;title\u0007\u009b2J\u000db\u007f`

// TestControlCharactersAreSeen: they are not obeyed, and a JSON document stays the same.
func TestControlCharactersAreSeen(t *testing.T) {
	var out strings.Builder
	if n, err := (screen{&out}).Write([]byte(hostile + "\n")); n != len(hostile)+1 || err != nil || out.String() != seen+"\tö\n" {
		t.Errorf("%q, %d, %v", out.String(), n, err)
	}
	document := "{\n  \"a\": \"\u009b\x7f\"\n}"
	var before, after map[string]string
	if err := json.Unmarshal([]byte(document), &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(visible([]byte(document)), &after); err != nil || after["a"] != before["a"] {
		t.Errorf("%q became %q: %v", before["a"], after["a"], err)
	}
}

// terminal makes one: what is written to it can be read from screen.
func terminal(t *testing.T) (tty, screen *os.File) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, screen.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if errno != 0 {
		t.Fatal(errno)
	}
	tty = os.NewFile(fd, "tty")
	t.Cleanup(func() { _ = tty.Close() })
	return tty, screen
}

// TestTerminalsAreNotCommanded: what others wrote is seen on a terminal, and is as it is elsewhere.
func TestTerminalsAreNotCommanded(t *testing.T) {
	written, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	record := `{"activationId":"` + id + `","name":"hello","namespace":"guest","response":{"status":"application error","success":false,"result":{"error":` +
		string(written) + `}},"logs":[` + string(written) + `],"annotations":[]}`
	w := newWorld(t, map[string]answer{
		"GET namespaces/_/activations?limit=200&skip=0": {status: 200, body: "[" + record + "]"},
		"GET namespaces/_/activations/" + id:            {status: 200, body: record},
	})
	o := w.run("", "logs")
	if o.stdout != "hello "+hostile+"\n" || !strings.Contains(o.stderr, hostile) {
		t.Errorf("piped: %+v", o)
	}
	tty, screen := terminal(t)
	root := &cobra.Command{Use: "forerun"}
	root.SetOut(tty)
	root.SetErr(tty)
	env := map[string]string{"FORERUN_APIHOST": w.server.URL, "FORERUN_AUTH": testKey}
	if err := Setup(root, Environment{Getenv: func(name string) string { return env[name] }}, []string{"logs"}); err != nil {
		t.Fatal(err)
	}
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	shown, _ := io.ReadAll(screen) // ends with an error when nobody has the terminal open
	if text := string(shown); strings.ContainsAny(text, "\x1b\u009b\a") || strings.Count(text, seen) != 2 {
		t.Errorf("on a terminal: %q", text)
	}
}
