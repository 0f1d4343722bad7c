package test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// said finds what a server said of itself.
func said(t *testing.T, s *server.Server, pattern string) string {
	t.Helper()
	var found []string
	eventually(t, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(s.Log())
		return found != nil
	})
	return found[1]
}

// TestPublicDoor starts a server on all addresses: each listener speaks TLS, nothing else, and the real clients work with the server's own authority.
func TestPublicDoor(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{
		"--listen", ":0", "--redis-listen", "0.0.0.0:0", "--metrics-listen", "[::]:0", "--web-listen", "0.0.0.0:0",
	}})
	port := said(t, s, `redis-cli -p (\d+) --tls `)
	if !strings.HasPrefix(s.URL, "https://127.0.0.1:") {
		t.Errorf("the clients' settings have %s", s.URL)
	}
	c := client(t, s)
	putPython(t, c, map[string]string{"hello": "def main(args):\n    return {'greeting': 'Hello ' + args.get('name', 'you')}\n"})
	web := said(t, s, `web actions are on (https://\S+)`)
	metrics := said(t, s, `metrics are on (https://\S+)/metrics`)
	t.Run("nothing in the clear", func(t *testing.T) {
		for _, u := range []string{s.URL, web, metrics, "https://127.0.0.1:" + port} {
			mustSpeakTLS(t, s, u)
		}
	})
	t.Run("metrics", func(t *testing.T) {
		for where, want := range map[string]int{metrics + "/metrics": 200, metrics + "/healthz": 200, s.URL + "/metrics": 404, s.URL + "/healthz": 404, web + "/healthz": 404, metrics + "/api/v1": 404} {
			if got, text := fetch(t, c, where); got != want || want == 200 && strings.HasSuffix(where, "/metrics") && !strings.Contains(text, "forerun_certificate_seconds 7") {
				t.Errorf("%s is answered %d: %s", where, got, text)
			}
		}
	})
	t.Run("handlers", func(t *testing.T) { useHandlers(t, s, web) })
	t.Run("cert", func(t *testing.T) { renewCertificate(t, s) })
	t.Run("curl", func(t *testing.T) { curlOverTLS(t, s) })
	t.Run("wsk", func(t *testing.T) { wskOverTLS(t, s) })
	t.Run("npm openwhisk", func(t *testing.T) {
		if _, err := os.Stat("../node_modules/openwhisk"); err != nil {
			t.Skip("the npm clients are not installed; make test installs them")
		}
		reportNode(t, "node/tls.js", "WSK_CONFIG_FILE="+s.Props(), "NODE_EXTRA_CA_CERTS="+s.CA())
	})
	t.Run("sdk/node", func(t *testing.T) { nodeOverTLS(t, s.CA()) })
	t.Run("redis-py", func(t *testing.T) { redisOverTLS(t, s, port) })
	t.Run("status", func(t *testing.T) { statusOfDoors(t, s) })
	t.Run("early data", func(t *testing.T) { earlyOverQUIC(t, s) })
	t.Run("drain", func(t *testing.T) { drainOverTLS(t, s, port) })
}

// fetch gets a page without a key.
func fetch(t *testing.T, c *server.Client, where string) (status int, text string) {
	t.Helper()
	answer, err := c.HTTP.Get(where)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(content)
}

// mustSpeakTLS speaks plain HTTP and Redis with a listener, and then TLS of several versions.
func mustSpeakTLS(t *testing.T, s *server.Server, where string) {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := io.WriteString(plain, "GET /api/v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(bufio.NewReader(plain)); strings.Contains(string(answer), "200 OK") || strings.Contains(string(answer), "NOAUTH") {
		t.Errorf("%s answers in the clear: %s", where, answer)
	}
	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		config := s.TLS()
		config.MinVersion, config.MaxVersion = version, version
		conn, err := tls.Dial("tcp", u.Host, config)
		if (err == nil) != want {
			t.Errorf("%s with %s: %v", where, tls.VersionName(version), err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// useHandlers uses each handler of the door over each protocol.
func useHandlers(t *testing.T, s *server.Server, web string) {
	put(t, client(t, s), "page", map[string]any{
		"exec":        map[string]any{"kind": "python:3", "code": "def main(args):\n    return {'body': 'a page'}\n"},
		"annotations": []any{map[string]any{"key": "web-export", "value": true}},
	})
	operator := auth(t, s, "operator")
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0", "HTTP/3.0"} {
		for _, ask := range []struct{ method, where, key, body, want string }{
			{"GET", s.URL + "/api/v1", "", "", "OpenWhisk API"},
			{"GET", s.URL + "/docs/reference/security.md", "", "", "# Security"},
			{"GET", s.URL + "/api/v1/namespaces/_/actions", s.Auth, "", "hello"},
			{"GET", s.URL + "/api/v1/namespaces/_/actions/none", s.Auth, "", "does not exist"},
			{"GET", s.URL + "/api/v1/namespaces/_/activations", s.Auth, "", "["},
			{"POST", s.URL + "/api/v1/namespaces/_/actions/hello?blocking=true&result=true", s.Auth, `{"name":"Ada"}`, "Hello Ada"},
			{"GET", s.URL + "/api/v1/namespaces/_/actions", "no:key", "", "authentication"},
			{"GET", web + "/api/v1/web/guest/default/page", "", "", "a page"},
			{"GET", s.URL + "/admin/v1/tenants", operator, "", "guest"},
			{"GET", s.URL + "/admin/v1/tenants", s.Auth, "", "operator"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), ask.method, ask.where, strings.NewReader(ask.body))
			if err != nil {
				t.Fatal(err)
			}
			if user, key, ok := strings.Cut(ask.key, ":"); ok {
				r.SetBasicAuth(user, key)
			}
			r.Header.Set("Content-Type", "application/json")
			transport := transportOf(s, protocol)
			answer, err := transport.RoundTrip(r)
			if err != nil {
				t.Errorf("%s %s: %v", protocol, ask.where, err)
				continue
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			transport.CloseIdleConnections()
			if announced := strings.HasPrefix(answer.Header.Get("Alt-Svc"), `h3=":`); announced == (protocol == "HTTP/3.0") {
				t.Errorf("%s %s has Alt-Svc %q", protocol, ask.where, answer.Header.Get("Alt-Svc"))
			}
			if err != nil || answer.Proto != protocol || !strings.Contains(string(text), ask.want) {
				t.Errorf("%s %s is answered over %s: %s, %v", protocol, ask.where, answer.Proto, text, err)
			}
		}
	}
}

// transportOf is a client of a server that speaks one protocol.
func transportOf(s *server.Server, protocol string) interface {
	http.RoundTripper
	CloseIdleConnections()
} {
	if protocol == "HTTP/3.0" {
		return &http3.Transport{TLSClientConfig: s.TLS(), QUICConfig: &quic.Config{HandshakeIdleTimeout: time.Minute, MaxIdleTimeout: 5 * time.Minute}}
	}
	p := new(http.Protocols)
	p.SetHTTP1(protocol == "HTTP/1.1")
	p.SetHTTP2(protocol == "HTTP/2.0")
	return &http.Transport{TLSClientConfig: s.TLS(), Protocols: p}
}

// earlyOverQUIC: an invocation with an idempotency key runs as early data of a client that comes back. The client has not heard the answer, and sends
// it again over another connection. It is not carried out a second time.
func earlyOverQUIC(t *testing.T, s *server.Server) {
	config, where := s.TLS(), strings.TrimPrefix(s.URL, "https://")
	config.NextProtos, config.ClientSessionCache = []string{"h3"}, tls.NewLRUClientSessionCache(1)
	request := func(key string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/api/v1/namespaces/_/actions/hello?blocking=true", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		user, password, _ := strings.Cut(s.Auth, ":")
		r.SetBasicAuth(user, password)
		r.Header.Set("Idempotency-Key", key)
		return r
	}
	var early *http.Response
	key := ""
	for n := 0; early == nil && n < 1000; n++ { // the first has no ticket, and the ticket of the next may be late
		key = "early " + strconv.Itoa(n)
		conn, err := quic.DialAddrEarly(t.Context(), where, config, &quic.Config{HandshakeIdleTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := new(http3.Transport).NewClientConn(conn).OpenRequestStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stream.SendRequestHeader(request(key)), stream.Close()); err != nil {
			t.Fatal(err)
		}
		answer, err := stream.ReadResponse()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", answer, err)
		}
		if conn.ConnectionState().Used0RTT {
			early = answer
		}
		time.Sleep(10 * time.Millisecond)
		_ = conn.CloseWithError(0, "")
	}
	if early == nil {
		t.Fatal("no early data were read")
	}
	again, err := transportOf(s, "HTTP/2.0").RoundTrip(request(key))
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Body.Close()
	const id = "X-Openwhisk-Activation-Id"
	if early.Header.Get(id) == "" || early.Header.Get(id) != again.Header.Get(id) {
		t.Errorf("activation %q ran early, and then %q", early.Header.Get(id), again.Header.Get(id))
	}
}

// statusOfDoors has the operator see what came through the doors.
func statusOfDoors(t *testing.T, s *server.Server) {
	sh := newShell(t, nil)
	sh.env = []string{"FORERUN_OPERATOR=" + filepath.Join(s.Options.Data, "operator")}
	got := sh.run(t, "status")
	for _, pattern := range []string{
		`(?m)^--listen \S+: HTTP/1\.1, HTTP/2, HTTP/3$`, `(?m)^--redis-listen \S+: Redis over TLS$`, `(?m)^--metrics-listen \S+: HTTP/1\.1, HTTP/2$`, `certificate: for .*127\.0\.0\.1`,
		`open connections: TCP [1-9]`, `requests: HTTP/1\.1 [1-9]\d*, HTTP/2 [1-9]\d*, HTTP/3 [1-9]`, `QUIC handshakes: [1-9]`, `early data: accepted \d`,
	} {
		if !regexp.MustCompile(pattern).MatchString(got.stdout) {
			t.Errorf("%s is not in %+v", pattern, got)
		}
	}
}

// renewCertificate has the operator see a certificate and make another, which the next handshake shows.
func renewCertificate(t *testing.T, s *server.Server) {
	shown := func() string {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.Dial("tcp", u.Host, s.TLS())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	sh := newShell(t, nil)
	sh.env = []string{"FORERUN_OPERATOR=" + filepath.Join(s.Options.Data, "operator")}
	before := shown()
	if got := sh.run(t, "cert show"); got.code != 0 || !strings.Contains(got.stdout, "127.0.0.1") || !strings.Contains(got.stdout, "signed by the server itself") {
		t.Errorf("show: %+v", got)
	}
	if got := sh.run(t, "cert renew"); got.code != 0 || shown() == before {
		t.Errorf("renew: %+v", got)
	}
}

// curlOverTLS runs the command that the server prints at its start.
func curlOverTLS(t *testing.T, s *server.Server) {
	command := said(t, s, `(?m)^  (curl .*)$`)
	if !strings.Contains(command, "--cacert ") {
		t.Errorf("it prints %s", command)
	}
	for _, protocol := range []string{"--http1.1", "--http2"} {
		out, err := exec.CommandContext(t.Context(), "bash", "-c", command+" -sSf "+protocol).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "hello") {
			t.Errorf("%s: %v: %s", protocol, err, out)
		}
	}
}

// wskOverTLS lists the actions, where wsk is installed.
func wskOverTLS(t *testing.T, s *server.Server) {
	if _, err := exec.LookPath("wsk"); err != nil {
		t.Skip("wsk is not installed")
	}
	cmd := exec.CommandContext(t.Context(), "wsk", "action", "list")
	cmd.Env = append(os.Environ(), "WSK_CONFIG_FILE="+s.Props(), "SSL_CERT_FILE="+s.CA())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "hello") {
		t.Errorf("%v: %s", err, out)
	}
}

// nodeOverTLS runs the library for Node on a server whose metrics are on its door, once more with an authority that has not signed its certificate.
func nodeOverTLS(t *testing.T, otherCA string) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed; make test installs it")
	}
	s := start(t, server.Options{Args: []string{"--tls", "on"}})
	putPython(t, client(t, s), map[string]string{"hello": "def main(args):\n    return {'greeting': 'Hello ' + args.get('name', 'you')}\n"})
	reportNode(t, "node/fetch.js", "WSK_CONFIG_FILE="+s.Props(), "OTHER_CA="+otherCA)
}

// redisOverTLS uses redis-py with a URL, and go-redis for a command that waits while its client leaves.
func redisOverTLS(t *testing.T, s *server.Server, port string) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; make test installs it")
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "-c", `
import redis, sys
client = redis.Redis.from_url(sys.argv[1], decode_responses=True)
client.set("over", "TLS")
print(client.get("over"))`, "rediss://"+s.Auth+"@127.0.0.1:"+port+"?ssl_ca_certs="+s.CA())
	cmd.Env = append(os.Environ(), "PYTHONPATH=../bin/runtimes/python/packages")
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "TLS" {
		t.Errorf("%v: %s", err, out)
	}
	user, key, _ := strings.Cut(s.Auth, ":")
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Username: user, Password: key, TLSConfig: s.TLS()})
	defer c.Close()
	if got, err := c.Get(t.Context(), "over").Result(); err != nil || got != "TLS" {
		t.Errorf("go-redis: %q %v", got, err)
	}
}

// drainOverTLS: a server that is told to end answers what it has begun, over HTTP/2 and HTTP/3, too.
func drainOverTLS(t *testing.T, s *server.Server, port string) {
	user, key, _ := strings.Cut(s.Auth, ":")
	state := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Username: user, Password: key, TLSConfig: s.TLS(), ReadTimeout: -1})
	defer state.Close()
	c := client(t, s)
	c.HTTP.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	putPython(t, c, map[string]string{"waiting": waiting})
	ended := make(chan error)
	for _, protocol := range []string{"HTTP/2.0", "HTTP/3.0"} {
		own := client(t, s)
		own.HTTP.Transport = transportOf(s, protocol)
		go func() {
			var result map[string]string
			err := own.Result(t.Context(), "waiting", nil, &result)
			if err == nil && result["went"] != "on" {
				err = fmt.Errorf("%s: the result is %v", protocol, result)
			}
			ended <- err
		}()
		if err := state.BLPop(t.Context(), 0, "began").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	mustShutOut(t, c)
	if err := state.RPush(t.Context(), "go", 1, 1).Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("what was under way ended with %v", err)
		}
	}
	<-s.Exited()
	if log := s.Log(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
		t.Errorf("it said %s", log)
	}
}

// TestGivenCertificate starts a server on the loopback with TLS, a certificate of its operator and a name, and again on what it left.
func TestGivenCertificate(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	for dir := folder; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) { // the server becomes another user
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	out, err := exec.CommandContext(t.Context(), "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
		"-subj", "/CN=x", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert).CombinedOutput()
	if err != nil {
		t.Skip("openssl cannot make a certificate: ", string(out))
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--listen", "127.0.0.1:0", "--data", data, "--tls", "on", "--tls-cert", cert, "--tls-key", key)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	var said strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan() && !strings.HasPrefix(lines.Text(), "  actions: "); { // the last that it says as it is ready
		said.WriteString(lines.Text() + "\n")
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	if !strings.Contains(said.String(), "CA:TRUE") {
		t.Errorf("of a certificate that may sign others it said %s", said.String())
	}
	sh := newShell(t, nil)
	sh.env = []string{"WSK_CONFIG_FILE=" + filepath.Join(data, "wskprops")}
	if got := sh.run(t, "action list"); got.code != 3 || !strings.Contains(got.stderr, "--ca") {
		t.Errorf("a client that does not trust it: %+v; the server said %s", got, said.String())
	}
	if got := sh.run(t, "action list --ca "+cert); got.code != 0 {
		t.Errorf("a client that does: %+v", got)
	}
	sh.env = append(sh.env, "FORERUN_CA="+cert)
	if got := sh.run(t, "action list"); got.code != 0 {
		t.Errorf("a client with FORERUN_CA: %+v", got)
	}
	ownerURL := ownerOf(t, data).URL
	if !strings.HasPrefix(ownerURL, "https://localhost:") {
		t.Errorf("the clients' settings have %s", ownerURL)
	}
	if _, err := os.Stat(filepath.Join(data, "ca.crt")); err == nil {
		t.Error("the server made an authority")
	}
	if text, err := os.ReadFile(cert); err != nil || !x509.NewCertPool().AppendCertsFromPEM(text) {
		t.Errorf("the certificate: %v", err)
	}
}
