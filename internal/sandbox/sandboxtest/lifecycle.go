package sandboxtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"forerun.dev/forerun/internal/sandbox"
)

func (s *suite) testStart(t *testing.T) {
	box, err := s.maker.Start(t.Context(), s.spec("print('out')"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-box.Done():
	case <-time.After(patience):
		t.Fatal("nobody tells that the initializer has ended")
	}
	stdout, _ := box.Output()
	b := make([]byte, 16)
	if n, err := stdout.Read(b); err != nil || string(b[:n]) != "out\n" {
		t.Errorf("output: %q, %v", b[:n], err)
	}
	for range 2 {
		if err := box.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
}

func (s *suite) testStartErrors(t *testing.T) {
	folder := t.TempDir()
	for what, c := range map[string]struct {
		change func(*sandbox.Spec)
		says   string
	}{
		"no program":      {func(s *sandbox.Spec) { s.Argv = []string{"/usr/bin/no-such-program"} }, "no such file"},
		"no command":      {func(s *sandbox.Spec) { s.Argv = nil }, "command"},
		"relative":        {func(s *sandbox.Spec) { s.Argv[0] = "python3" }, "absolute"},
		"bad id":          {func(s *sandbox.Spec) { s.ID = "../x" }, "bad id"},
		"no memory":       {func(s *sandbox.Spec) { s.MemoryMiB = 0 }, "limit"},
		"foreign folder":  {func(s *sandbox.Spec) { s.Binds = []sandbox.Bind{{Host: folder, Inside: "/x"}} }, folder},
		"file in nowhere": {func(s *sandbox.Spec) { s.Files = []sandbox.File{{Path: "relative", Data: nil}} }, "absolute"},
	} {
		t.Run(what, func(t *testing.T) {
			spec := s.spec("")
			c.change(&spec)
			box, err := s.maker.Start(t.Context(), spec)
			if err == nil {
				box.Close()
				t.Fatal("it starts")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error %q does not say %q", err, c.says)
			}
		})
	}
	t.Run("same id", func(t *testing.T) {
		a := s.agent(t, func(spec *sandbox.Spec) { spec.ID = "twin" })
		spec := s.spec("")
		spec.ID = "twin"
		if box, err := s.maker.Start(t.Context(), spec); err == nil {
			box.Close()
			t.Error("two sandboxes have one id")
		}
		a.expect("ok", "result = 'ok'") // the first is as it was
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		spec := s.spec("")
		spec.ID = "cancelled"
		if box, err := s.maker.Start(ctx, spec); err == nil {
			box.Close()
		}
		s.agent(t, func(spec *sandbox.Spec) { spec.ID = "cancelled" }) // the id is free again
	})
}

func (s *suite) testClose(t *testing.T) {
	spec := s.spec(agentProgram)
	box, err := s.maker.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	a := agent{box, t}
	pids := []int{a.host(""), a.host("os.setsid()")}
	door := a.Door(sandbox.DoorState)
	begin := time.Now()
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("closed in %v", time.Since(begin))
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("process %d has outlived its sandbox", pid)
		}
	}
	if _, err := door.Accept(); err == nil {
		t.Error("a door of a closed sandbox is open")
	}
	select {
	case <-box.Done():
	default:
		t.Error("a closed sandbox is not done")
	}
	if _, err := box.Reset(t.Context()); err == nil {
		t.Error("a closed sandbox can be reset")
	}
}

func (s *suite) testConcurrent(t *testing.T) {
	var all sync.WaitGroup
	for n := range 6 {
		spec := s.spec(agentProgram)
		all.Go(func() {
			box, err := s.maker.Start(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			a := agent{box, t}
			if got := a.do(fmt.Sprintf("import socket\ns = socket.create_connection(('127.0.0.1', 3233))\nopen('/tmp/%d', 'w')\nresult = %d", n, n)); got != fmt.Sprint(n) {
				t.Errorf("sandbox %d answers %q", n, got)
			}
			if l, ok := box.Door(sandbox.DoorAPI).(*net.TCPListener); ok {
				_ = l.SetDeadline(time.Now().Add(patience))
			}
			if _, err := box.Door(sandbox.DoorAPI).Accept(); err != nil {
				t.Error(err)
			}
			if _, err := box.Reset(t.Context()); err != nil {
				t.Error(err)
			}
			if err := box.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
