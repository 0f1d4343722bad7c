package sandboxtest

import "testing"

// testReachable: others can reach a process by a name, a port that it listens at or one that datagrams go to, and not because it is connected
// with somebody. The sandbox's own doors are nobody's.
func (s *suite) testReachable(t *testing.T) {
	for name, c := range map[string]struct {
		opens string
		want  bool
	}{
		"nothing":             {"pass", false},
		"a pair":              {"x, y = socket.socketpair()", false},
		"a Unix socket":       {"x = socket.socket(socket.AF_UNIX)", false},
		"a socket":            {"x = socket.socket()", false},
		"a door":              {"x = socket.create_connection(('127.0.0.1', 6379))", false},
		"a port":              {"x = socket.socket(); x.bind(('127.0.0.1', 0))", false},
		"a listener":          {"x = socket.socket(); x.bind(('127.0.0.2', 6379)); x.listen()", true},
		"a listener for all":  {"x = socket.socket(); x.listen()", true},
		"a listener of IPv6":  {"x = socket.socket(socket.AF_INET6); x.bind(('::1', 3233)); x.listen()", true},
		"datagrams":           {"x = socket.socket(type=socket.SOCK_DGRAM); x.bind(('127.0.0.1', 0))", true},
		"datagrams elsewhere": {"x = socket.socket(type=socket.SOCK_DGRAM); x.sendto(b'x', ('127.0.0.1', 53))", true},
		"a name":              {"x = socket.socket(socket.AF_UNIX); x.bind('\\0x'); x.listen()", true},
		"a name of zeros":     {"x = socket.socket(socket.AF_UNIX); x.bind('\\0\\0x'); x.listen()", true},
		"a file's name":       {"x = socket.socket(socket.AF_UNIX); x.bind('/tmp/x'); x.listen()", true},
		"a name of datagrams": {"x = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); x.bind('/tmp/x')", true},
	} {
		a := s.agent(t)
		other, pid := a.host(""), a.host(c.opens)
		if is, err := a.Reachable(t.Context(), other, pid); is != c.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", name, is, err, c.want)
		}
		if is, err := a.Reachable(t.Context(), other); is || err != nil {
			t.Errorf("beside %s: %v, %v", name, is, err)
		}
	}
}
