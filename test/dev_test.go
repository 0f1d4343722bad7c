package test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// TestDev: what is saved is deployed and invoked again; a mistake is told and waited out; logs stand beside.
func TestDev(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	folder := t.TempDir()
	save := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	save("forerun.yaml", "actions:\n  hello: { file: hello.py, inputs: { name: you } }\n")
	save("hello.py", "def main(args):\n    return {'greeting': 'Hello ' + args['name']}\n")

	dev := startDev(t, s, folder)
	dev.await(t, "ok: 1 created", `"greeting": "Hello Ada"`)
	save("hello.py", "def main(args):\n    print('was asked')\n    return {'greeting': 'Bye ' + args['name']}\n")
	dev.await(t, "ok: 0 created, 1 updated", `"greeting": "Bye Ada"`, "was asked")
	save("forerun.yaml", "actions:\n  hello: { fil: hello.py }\n")
	dev.await(t, "forerun.yaml:2:")
	save("forerun.yaml", "actions:\n  hello: { file: hello.py }\n  again: { file: hello.py }\n")
	dev.await(t, "ok: 1 created, 1 updated", `"greeting": "Bye Ada"`)
	dev.stop(t)
}

// development is a running `forerun dev`.
type development struct {
	cmd   *exec.Cmd
	lines chan string // what it writes, words and results
}

func startDev(t *testing.T, s *server.Server, folder string) *development {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	d := &development{cmd: exec.CommandContext(ctx, binary, "dev", folder, "--invoke", "hello", "-p", "name", "Ada"), lines: make(chan string)}
	d.cmd.Env = append(os.Environ(), "WSK_CONFIG_FILE="+s.Props())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.cmd.Stdout, d.cmd.Stderr = w, w
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		defer close(d.lines)
		defer r.Close()
		for text := bufio.NewScanner(r); text.Scan(); {
			select {
			case d.lines <- text.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return d
}

// await reads until each of the texts has stood in a line, in any order: logs come when they are there.
func (d *development) await(t *testing.T, texts ...string) {
	t.Helper()
	missing := make(map[string]bool)
	for _, text := range texts {
		missing[text] = true
	}
	var seen []string
	for line := range d.lines {
		seen = append(seen, line)
		for text := range missing {
			if strings.Contains(line, text) {
				delete(missing, text)
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	t.Fatalf("forerun dev ended, or took a minute, without %v; it wrote:\n%s", missing, strings.Join(seen, "\n"))
}

// stop ends it as Ctrl-C does.
func (d *development) stop(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for range d.lines { // what it still writes
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("forerun dev ended badly after Ctrl-C: %v", err)
	}
}
