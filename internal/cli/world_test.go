package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
)

const testKey = "23bc46b1-71f6-4ed5-8c54-816aa4f8c502:secret"

// answer is what the server of a test says to a request.
type answer struct {
	status     int
	body       string
	activation string // header X-Openwhisk-Activation-Id
	ahead      string // header X-Forerun-Speculation
	ignored    string // header X-Forerun-Speculate-Ignored
}

// world is a server that says what a test tells it to, and remembers what it was asked.
type world struct {
	t       *testing.T
	server  *httptest.Server
	answers map[string]answer // by "METHOD path?query" below /api/v1/

	mu    sync.Mutex // guards asked and answers
	asked []string
}

func newWorld(t *testing.T, answers map[string]answer) *world {
	w := &world{t: t, answers: answers}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

// ServeHTTP implements http.Handler.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	request := r.Method + " " + strings.TrimPrefix(r.URL.RequestURI(), "/api/v1/")
	user, password, _ := r.BasicAuth()
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := strings.TrimSpace(request + " " + string(body))
	for _, settings := range r.Header.Values("X-Forerun-Speculate") {
		asked += " [" + settings + "]"
	}
	w.asked = append(w.asked, asked)
	a, ok := w.answers[request]
	switch {
	case user+":"+password != testKey:
		a = answer{status: 401, body: `{"error":"The supplied authentication is invalid","code":"tid"}`}
	case !ok:
		a = answer{status: 404, body: `{"error":"The requested resource does not exist.","code":"tid"}`}
	}
	if a.activation != "" {
		rw.Header().Set("X-Openwhisk-Activation-Id", a.activation)
	}
	if a.ahead != "" {
		rw.Header().Set("X-Forerun-Speculation", a.ahead)
	}
	if a.ignored != "" {
		rw.Header().Set("X-Forerun-Speculate-Ignored", a.ignored)
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(a.status)
	_, _ = rw.Write([]byte(a.body))
}

func (w *world) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// outcome is what a command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs a command line against the server, with its host and key in the environment.
func (w *world) run(stdin string, args ...string) outcome {
	return runIn(w.t, map[string]string{"FORERUN_APIHOST": w.server.URL, "FORERUN_AUTH": testKey}, "", stdin, args...)
}

// runIn runs a command line in an environment.
func runIn(t *testing.T, env map[string]string, home, stdin string, args ...string) outcome {
	var stdout, stderr buffer
	root := &cobra.Command{Use: "forerun", SilenceErrors: true, SilenceUsage: true}
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := Setup(root, Environment{Getenv: func(name string) string { return env[name] }, Home: home, Version: "test"}, args)
	if err == nil {
		err = root.ExecuteContext(t.Context())
	}
	if err != nil {
		say(root, "%s", Explain(err))
	}
	return outcome{ExitCode(err), stdout.String(), stderr.String()}
}

// buffer is a bytes.Buffer that several goroutines may write to.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
