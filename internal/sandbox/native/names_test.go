package native

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// TestRebinding: a name's owner lets it lead first here, then there. It still leads only to addresses that are allowed.
func TestRebinding(t *testing.T) {
	const server = "127.0.0.78"
	names, err := net.ListenPacket("udp", server+":53")
	if err != nil {
		t.Skipf("this user cannot be a nameserver: %v", err)
	}
	defer names.Close()
	var turn atomic.Int64
	places := []string{"10.55.0.1", "169.254.169.254", "10.0.0.1", "127.0.0.1"}
	go answerNames(names, func() netip.Addr { return netip.MustParseAddr(places[int(turn.Load())]) })
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver "+server+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	forbidden, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer forbidden.Close()
	_, port, _ := net.SplitHostPort(forbidden.Addr().String()) // its own form
	m := startHelper(t, Config{ResolvConf: conf})
	for i, place := range places {
		turn.Store(int64(i))
		spec := sleeper("rebinding")
		spec.Argv = []string{"/usr/bin/bash", "-c", "exec 5<>/dev/tcp/rebinding.test/" + port + " && echo connected"}
		s, err := m.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.Done():
		case <-time.After(2 * time.Minute):
		}
		_, stderr := s.Output()
		b := make([]byte, 1000)
		n, _ := stderr.Read(b)
		want := "Permission denied"
		if place == "127.0.0.1" {
			want = "Connection refused" // by the sandbox's own loopback
		}
		if !strings.Contains(string(b[:n]), want) {
			t.Errorf("a name that leads to %s: %q", place, b[:n])
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if l, ok := forbidden.(*net.TCPListener); ok {
		_ = l.SetDeadline(time.Now().Add(50 * time.Millisecond)) // the connection is in its queue
	}
	if c, err := forbidden.Accept(); err == nil {
		c.Close()
		t.Error("a sandbox has reached the host")
	}
}

// answerNames is a nameserver: every name has the one IPv4 address, at this moment.
func answerNames(c net.PacketConn, address func() netip.Addr) {
	b := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) == 0 {
			continue
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: address().As4()},
			}}
		}
		if answer, err := m.Pack(); err == nil {
			_, _ = c.WriteTo(answer, from)
		}
	}
}

// TestQuestionsAreForgotten: nothing of one that was answered stays with the activation, which may ask for hours.
func TestQuestionsAreForgotten(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		b := make([]byte, 512)
		for n, from, err := server.ReadFrom(b); err == nil; n, from, err = server.ReadFrom(b) {
			_, _ = server.WriteTo(b[:n], from)
		}
	}()
	kept := &keeping{Context: t.Context()}
	r := &nameRelay{servers: []string{server.LocalAddr().String()}}
	for range 3 {
		if string(r.ask(kept, []byte("question"))) != "question" {
			t.Error("there is no answer")
		}
	}
	if n := kept.functions.Load(); n != 0 {
		t.Errorf("%d functions wait for the activation's end", n)
	}
}

// keeping counts what waits for the end of a context.
type keeping struct {
	context.Context
	functions atomic.Int64
}

// Value hides the parent context: a waiting call asks here.
func (*keeping) Value(any) any { return nil }

func (k *keeping) AfterFunc(f func()) (stop func() bool) {
	k.functions.Add(1)
	forget := context.AfterFunc(k.Context, f)
	return func() bool {
		k.functions.Add(-1)
		return forget()
	}
}

// TestWhoLeavesTheGateHasNotReachedIt: a killed call that waited at the gate does not count for the next activation.
func TestWhoLeavesTheGateHasNotReachedIt(t *testing.T) {
	var g gate
	g.wait(1)
	g.forget()
	g.wait(-1)
	if g.reached() {
		t.Error("it is said of who has sent nothing")
	}
}

// TestNothingBeginsBehindTheEnd: a question that was taken as the sandbox was closed does not wait for a turn.
func TestNothingBeginsBehindTheEnd(t *testing.T) {
	a := new(activity)
	a.end()
	a.reset()
	if a.now().Err() == nil {
		t.Error("it goes on")
	}
}
