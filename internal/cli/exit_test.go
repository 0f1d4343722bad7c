package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestConnectionEnds: after a connection that ends before the answer, the person learns that the call may have run.
func TestConnectionEnds(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{"before the answer": "", "in the answer": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(connection, begin)
			_ = connection.Close()
		}))
		t.Cleanup(server.Close)
		for _, x := range []struct{ args, want string }{
			{"invoke x -r", "The connection ended before the answer. The call may have run: see `forerun activation list`."},
			{"action list", "The connection ended before the answer. Does the server still run?"},
		} {
			got := runIn(t, map[string]string{"FORERUN_APIHOST": server.URL, "FORERUN_AUTH": testKey}, "", "", strings.Fields(x.args)...)
			if got.code != exitNetwork || !strings.Contains(got.stderr, x.want) {
				t.Errorf("%s, %s: exit code %d, %q; want %q", x.args, name, got.code, got.stderr, x.want)
			}
		}
	}
}
