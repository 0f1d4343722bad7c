package sandboxtest

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/sandbox"
)

// testAsked: whatever a process sends to the outside is counted when its result is there, in every mode.
func (s *suite) testAsked(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	if asked := a.asked(); asked != (sandbox.Asked{}) {
		t.Errorf("a fresh sandbox has asked for %+v", asked)
	}
	for effect := range effects {
		if strings.Contains(effect, "IPv6") && !s.host6.IsValid() {
			continue
		}
		before := a.asked()
		a.do(s.program(effect, "asked", c))
		if asked := a.asked(); asked.Others == before.Others || asked.Reads != before.Reads {
			t.Errorf("%s: it has asked for %+v, before for %+v", effect, asked, before)
		}
		a.drain()
	}
}

// testAskedRefused: so is what the egress policy refuses.
func (s *suite) testAskedRefused(t *testing.T) {
	a := s.agentOf(t, s.closed)
	for _, program := range []string{
		fmt.Sprintf(connectResult, "10.0.0.1", 80),
		"import socket\ntry: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.0.0.1', 53))\nexcept OSError: pass",
		"import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('10.9.9.9', 53))",
	} {
		before := a.asked()
		a.do(program)
		if asked := a.asked(); asked.Others == before.Others {
			t.Errorf("it has asked for %+v after\n%s", asked, program)
		}
	}
}

// testAskedReads: hosts that are only read from are told apart, whether or not anything was ever held.
func (s *suite) testAskedReads(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	named := net.JoinHostPort("read.test", strconv.Itoa(c.TCP("read")))
	if err := a.Permit(t.Context(), []string{s.host.String() + ":" + strconv.Itoa(c.TCP("address")), named}); err != nil {
		t.Fatal(err)
	}
	for word, program := range map[string]string{"address": s.program("blocking", "address", c), "read": s.reading("AF_INET", "read", c)} {
		before := a.asked()
		a.do(program)
		if asked := a.asked(); asked.Others != before.Others || asked.Reads == before.Reads {
			t.Errorf("%s: it has asked for %+v, before for %+v", word, asked, before)
		}
		a.drain()
	}
	before := a.asked()
	a.do(s.program("blocking", "other", c))
	if asked := a.asked(); asked.Others == before.Others {
		t.Errorf("another port: it has asked for %+v", asked)
	}
}

// testAskedInside: what stays in the sandbox is not counted.
func (s *suite) testAskedInside(t *testing.T) {
	a := s.agent(t, withLibrary)
	for _, program := range []string{
		"import socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); socket.create_connection(s.getsockname())",
		"import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.sendto(b'x', s.getsockname()); s.recv(1)",
		"import socket\ns = socket.create_connection(('127.0.0.1', 6379))",
		"import socket\nsocket.if_nameindex()",
	} {
		a.do(program)
		if asked := a.asked(); asked != (sandbox.Asked{}) {
			t.Errorf("it has asked for %+v after\n%s", asked, program)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, known := a.Asked(); known {
		t.Error("after its end it is known what a sandbox has asked for")
	}
}

func (a agent) asked() sandbox.Asked {
	a.t.Helper()
	asked, known := a.Asked()
	if !known {
		a.t.Fatal("it is not known what the sandbox has asked for")
	}
	return asked
}
