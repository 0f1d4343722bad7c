package sandboxtest

import (
	"fmt"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/egress"
)

// confined is a sandbox with a list of what its action reaches.
func (s *suite) confined(t *testing.T, list string) agent {
	t.Helper()
	l, err := egress.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	a := s.agent(t, withLibrary)
	if err := a.Confine(t.Context(), egress.Lists{Action: l}); err != nil {
		t.Fatal(err)
	}
	return a
}

// refuses has a program try something that the list refuses, and looks that nothing came of it and the reason is told.
func (s *suite) refuses(a agent, c *Counter, word, effect string) {
	a.t.Helper()
	a.do("import socket\nsocket.setdefaulttimeout(0.5)\n" + s.program(effect, word, c))
	if seen := c.Take(word); seen != 0 {
		a.t.Errorf("%s: %d times something came of it", effect, seen)
	}
	<-a.Denied()
	if sentences := strings.Join(a.Refused(), "\n"); !strings.Contains(sentences, "annotation 'egress'") && !strings.Contains(sentences, "over UDP only") {
		a.t.Errorf("%s: told is %q", effect, sentences)
	}
	a.drain()
}

// testConfined: a sandbox reaches what its lists name and nothing else, with TCP, datagrams and questions for names alike.
func (s *suite) testConfined(t *testing.T) {
	c := s.counter(t)
	none := s.confined(t, egress.None)
	for _, effect := range []string{"blocking", "mapped", "udp", "udp sendmsg", "udp mapped", "name", "question", "TCP question"} {
		s.refuses(none, c, "none", effect)
	}
	port := s.confined(t, fmt.Sprintf("%v:%d, %[1]v:%[3]d, [%v]:%[2]d", s.host, c.TCP("port"), c.UDP, s.host6))
	for _, effect := range []string{"blocking", "mapped", "udp", "udp sendmsg", "IPv6"} {
		port.expect("port", s.program(effect, "port", c)+".strip()")
		port.drain()
	}
	for _, effect := range []string{"blocking", "IPv6", "name"} {
		s.refuses(port, c, "other", effect)
	}
	if err := port.Confine(t.Context(), egress.Lists{Tenant: egress.List{}, Action: egress.List{}}); err != nil {
		t.Fatal(err)
	}
	port.expect("13", fmt.Sprintf(connectResult, s.host, c.TCP("port")))
}

// testConfinedToNames: a name in the list may be asked for, and reached at the addresses that were answered.
func (s *suite) testConfinedToNames(t *testing.T) {
	c := s.counter(t)
	a := s.confined(t, fmt.Sprintf("read.test:%d", c.TCP("read")))
	a.expect("13", fmt.Sprintf(connectResult, s.host, c.TCP("read"))) // before anybody said that it is the name's address
	for _, family := range []string{"AF_INET", "AF_INET6"} {
		a.expect("read", s.reading(family, "read", c))
	}
	a.expect("0", fmt.Sprintf(connectResult, s.host, c.TCP("read")))
	a.expect("13", fmt.Sprintf(connectResult, s.host, c.TCP("other")))
	for len(a.Denied()) > 0 {
		<-a.Denied()
	}
	a.Refused()
	a.drain()
	c.Take("")
	for _, effect := range []string{"name", "question", "TCP question", "blocking"} {
		s.refuses(a, c, "other", effect)
	}
	s.refuses(a, c, "read", "TCP question")
}
