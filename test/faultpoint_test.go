package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// faultPoint is a place in the controller's code where a slot has come to a stage; the binary for these tests calls there.
type faultPoint struct{ file, from, to string }

// faultPoints are patches of a copy of the source: the server that people run has none of this.
var faultPoints = []faultPoint{
	{"execution.go", "\t\ts.started(at, initTime)\n\t}\n", "\t\ts.started(at, initTime)\n\t\tif s.ahead {\n\t\t\tatFaultPoint(\"begun\", s.record.Action.Entity)\n\t\t}\n\t}\n"},
	{"execution.go", "\t\te.step(speculate.Output{Slot: s.id, Result: result, Outside: true})", "\t\tif !s.ahead {\n\t\t\tatFaultPoint(\"told\", s.record.Action.Entity)\n\t\t}\n\t\te.step(speculate.Output{Slot: s.id, Result: result, Outside: true})\n\t\tif s.ahead {\n\t\t\tatFaultPoint(\"finished\", s.record.Action.Entity)\n\t\t}\n\t\t"},
	{"execution.go", "\t\te.step(speculate.Failed{Slot: s.id, Result: result})\n\t}\n}\n", "\t\te.step(speculate.Failed{Slot: s.id, Result: result})\n\t\tatFaultPoint(\"failed\", s.record.Action.Entity)\n\t}\n}\n"},
	{"execution.go", "func (e *execution) do(action speculate.Action) {\n", "func (e *execution) do(action speculate.Action) {\n\tdefer e.passPoint(action)()\n"},
	{"ahead.go", "\te.promoting(a.Slots, true)\n", "\te.promoting(a.Slots, true)\n\tnames := e.pointsOf(a.Slots...)\n"},
	{"ahead.go", "\t\t_, version, err := e.c.State.Exec(context.Background(), expect, ops)\n", "\t\tatFaultPoint(\"promoting\", names...)\n\t\t_, version, err := e.c.State.Exec(context.Background(), expect, ops)\n\t\tatFaultPoint(\"applied\", names...)\n"},
	{"ahead.go", "\t\t\tcase isConflict:\n", "\t\t\tcase isConflict:\n\t\t\t\tatFaultPoint(\"conflicting\", names...)\n"},
}

// stages are those that a slot comes to, in order: "queued" is launched ahead, "told" is that a head has given what others were expected
// to go on with. What is "squashed" is being killed.
var stages = []string{"resolved", "queued", "begun", "attached", "held", "finished", "told", "promoting", "conflicting", "applied", "committed", "squashed"}

// buildPointed makes a server that calls points at the fault points.
func buildPointed(t *testing.T, p *points) string {
	t.Helper()
	folder := t.TempDir()
	controller, err := filepath.Abs("../internal/controller")
	if err != nil {
		t.Fatal(err)
	}
	added, err := filepath.Abs("testdata/faultpoint.go")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{filepath.Join(controller, "faultpoint.go"): added}
	for _, place := range faultPoints {
		source, patched := filepath.Join(controller, place.file), filepath.Join(folder, place.file)
		from := source
		if replace[source] != "" {
			from = patched
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), place.from) != 1 {
			t.Fatalf("%s has no such place, or more than one: %s", place.file, place.from)
		}
		if err := os.WriteFile(patched, []byte(strings.Replace(string(text), place.from, place.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[source] = patched
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	pointed := filepath.Join(filepath.Dir(binary), "forerun-"+t.Name()) // beside the packages for functions
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", filepath.Join(folder, "overlay.json"),
		"-ldflags", "-X forerun.dev/forerun/internal/controller.faultPoints="+p.listener.Addr().String(), "-o", pointed, "../cmd/forerun")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { os.Remove(pointed) })
	return pointed
}

// points hears of the stages that slots come to, and stops the server at the one that it waits for.
type points struct {
	*testing.T
	listener net.Listener

	mu      sync.Mutex // guards the rest
	waiting string     // "stage name"; empty: for none
	passed  []string   // the same, since the last wait
	reached chan net.Conn
}

func newPoints(t *testing.T) *points {
	t.Helper()
	address := fmt.Sprintf("@forerun-points-%d-%s", os.Getpid(), t.Name())
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &points{T: t, listener: listener, reached: make(chan net.Conn, 1)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.hear(c) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return p
}

// hear takes one call of a server.
func (p *points) hear(c net.Conn) {
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		c.Close()
		return
	}
	stage, names, _ := strings.Cut(strings.TrimSpace(line), " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range strings.SplitSeq(names, ",") {
		p.passed = append(p.passed, stage+" "+name)
		if p.waiting == stage+" "+name {
			p.waiting = ""
			p.reached <- c
			return
		}
	}
	c.Close()
}

// stopAt has the server stop when a slot comes to a stage.
func (p *points) stopAt(point string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting, p.passed = point, nil
}

// hasPassed tells whether a slot came to a stage since stopAt.
func (p *points) hasPassed(point string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, passed := range p.passed {
		if passed == point {
			return true
		}
	}
	return false
}
