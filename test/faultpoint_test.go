package test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// faultPoint is a place in the code, in a file below internal, where a slot has come to a stage; the binary for these tests calls there.
type faultPoint struct{ file, from, to string }

// faultPoints are patches of a copy of the source: the server that people run has none of this.
var faultPoints = []faultPoint{
	{"controller/execution.go", "\t\ts.started(at, initTime)\n", "\t\ts.started(at, initTime)\n\t\tif s.ahead {\n\t\t\tatFaultPoint(\"begun\", s.record.Action.Entity)\n\t\t}\n"},
	{"controller/execution.go", "\t\te.step(speculate.Output{Slot: s.id, Result: result, Reach: end.Reach, Remembers: end.Remembers})", "\t\tif !s.ahead {\n\t\t\tatFaultPoint(\"told\", s.record.Action.Entity)\n\t\t}\n\t\te.step(speculate.Output{Slot: s.id, Result: result, Reach: end.Reach, Remembers: end.Remembers})\n\t\tif s.ahead {\n\t\t\tatFaultPoint(\"finished\", s.record.Action.Entity)\n\t\t}\n\t\t"},
	{"controller/execution.go", "\t\te.step(speculate.Failed{Slot: s.id, Result: result})\n\t}\n}\n", "\t\te.step(speculate.Failed{Slot: s.id, Result: result})\n\t\tatFaultPoint(\"failed\", s.record.Action.Entity)\n\t}\n}\n"},
	{"controller/execution.go", "func (e *execution) do(action speculate.Action) {\n", "func (e *execution) do(action speculate.Action) {\n\tdefer e.passPoint(action)()\n"},
	{"controller/ahead.go", "\te.promoting(a, true)\n", "\te.promoting(a, true)\n\tnames := e.pointsOf(a.Slots...)\n"},
	{"controller/ahead.go", "\t\t_, version, err := e.c.State.Exec(context.Background(), expect, ops)\n", "\t\tatFaultPoint(\"promoting\", names...)\n\t\t_, version, err := e.c.State.Exec(context.Background(), expect, ops)\n\t\tatFaultPoint(\"applied\", names...)\n"},
	{"controller/ahead.go", "\t\t\tcase isConflict:\n", "\t\t\tcase isConflict:\n\t\t\t\tatFaultPoint(\"conflicting\", names...)\n"},
	// "gated" is a connection that waits to be made, "opening" one that waits no more, "connected" one that the function does not have yet.
	{"sandbox/guard/outside.go", "\t\tif opened == nil || s.pass(n.id, to, opened) {\n", "\t\tname := threadName(n.pid)\n\t\tif opened != nil {\n\t\t\tgo atFaultPoint(\"gated\", name)\n\t\t}\n\t\tif opened == nil || s.pass(n.id, to, opened) {\n\t\t\tatFaultPoint(\"opening\", name)\n"},
	{"sandbox/guard/outside.go", "\ts.gate.lend(socket, to)\n", "\tatFaultPoint(\"connected\", threadName(n.pid))\n\ts.gate.lend(socket, to)\n"},
	// "withheld" is a datagram that waits to be sent, "taken" what its activation has left to be sent, "sending" that this is its turn.
	{"sandbox/native/datagrams.go", "\t\tr.queue, r.bytes = append(r.queue, d), r.bytes+len(d.payload)\n", "\t\tr.queue, r.bytes = append(r.queue, d), r.bytes+len(d.payload)\n\t\tatFaultPoint(\"withheld\", firstWord(d.payload))\n"},
	{"worker/ahead.go", "\tif send == nil {\n\t\treturn\n\t}\n", "\tif send == nil {\n\t\treturn\n\t}\n\tatFaultPoint(\"taken\", r.Action.Name.Entity)\n"},
	{"worker/worker.go", "\tif effects != nil {\n", "\tif effects != nil {\n\t\tatFaultPoint(\"sending\", r.Action.Name.Entity)\n"},
}

// stages are those that a slot comes to, in order: "queued" is launched ahead, "told" is that a head has given what others were expected
// to go on with. What is "squashed" is being killed.
var stages = []string{"resolved", "queued", "begun", "attached", "held", "finished", "told", "promoting", "conflicting", "applied", "committed", "squashed"}

// buildPointed makes a server that calls points at the fault points.
func buildPointed(t *testing.T, p *points) string {
	t.Helper()
	folder := t.TempDir()
	overlay, err := json.Marshal(map[string]any{"Replace": patch(t, folder)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, room := range pointedRooms() {
		variables = append(variables, fmt.Sprintf("-X forerun.dev/forerun/internal/%s.faultPoints=%v", room, p.listener.Addr()))
	}
	pointed := filepath.Join(filepath.Dir(binary), "forerun-"+t.Name()) // beside the packages for functions
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", filepath.Join(folder, "overlay.json"),
		"-ldflags", strings.Join(variables, " "), "-o", pointed, "../cmd/forerun")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { os.Remove(pointed) })
	return pointed
}

// pointedRooms are the packages with fault points.
func pointedRooms() (rooms []string) {
	for _, place := range faultPoints {
		rooms = append(rooms, path.Dir(place.file))
	}
	slices.Sort(rooms)
	return slices.Compact(rooms)
}

// patch writes into a folder the sources with the calls, and what these call, and returns by which it replaces which.
func patch(t *testing.T, folder string) (replace map[string]string) {
	t.Helper()
	internal, err := filepath.Abs("../internal")
	if err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile("testdata/faultpoint.go")
	if err != nil {
		t.Fatal(err)
	}
	replace = make(map[string]string)
	write := func(file, text string) {
		patched := filepath.Join(folder, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(patched), 0o700), os.WriteFile(patched, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(internal, file)] = patched
	}
	for _, room := range pointedRooms() {
		write(room+"/faultpoint.go", strings.Replace(string(calls), "package main\n", "package "+path.Base(room)+"\n", 1))
	}
	slots, err := os.ReadFile("testdata/slotpoint.go")
	if err != nil {
		t.Fatal(err)
	}
	write("controller/slotpoint.go", string(slots))
	for _, place := range faultPoints {
		source := filepath.Join(internal, place.file)
		text, err := os.ReadFile(cmp.Or(replace[source], source))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), place.from) != 1 {
			t.Fatalf("%s has no such place, or more than one: %s", place.file, place.from)
		}
		write(place.file, strings.Replace(string(text), place.from, place.to, 1))
	}
	return replace
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
func (p *points) hasPassed(point string) bool { return p.times(point) > 0 }

// times is how often slots did.
func (p *points) times(point string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, passed := range p.passed {
		if passed == point {
			n++
		}
	}
	return n
}
