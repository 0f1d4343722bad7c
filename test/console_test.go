package test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// hostile writes and returns what would do harm where it is not shown as text.
const hostile = `
def main(args):
    print("<img src=x onerror=alert(1)>")
    print("\u202eevil \x1b[31mred")
    return {"a": "<script>alert(1)</script>", "b": "</pre><iframe src=https://example.org>"}
`

// consoleURL is where a server says that its console is. It says so once it answers.
func consoleURL(t *testing.T, s *server.Server) string {
	t.Helper()
	said := regexp.MustCompile(`the console is on (\S+)\n`)
	for limit := time.Now().Add(4 * time.Minute); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if found := said.FindStringSubmatch(s.Log()); found != nil {
			return found[1]
		}
	}
	t.Fatalf("the server does not say where the console is: %s", s.Log())
	return ""
}

// browsed is a request of the console's page, with the cookie and the token of a session.
func browsed(t *testing.T, method, url, body, cookie, token string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://"+r.Host)
	r.Header.Set("Cookie", cookie)
	r.Header.Set("X-Forerun-Console", token)
	return r
}

// TestConsole: a session of the console sees its tenant's alone, its cookie is told to no web action, and all of it ends with its key.
func TestConsole(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--console-listen", "127.0.0.1:0"}})
	c, console := client(t, s), consoleURL(t, s)
	put(t, c, "page", map[string]any{
		"exec":        map[string]any{"kind": "python:3", "code": "def main(args): return {'body': args['__ow_headers']}"},
		"annotations": []any{map[string]any{"key": "web-export", "value": true}},
	})
	ada := as(t, s, operate(t, s, "create", "ada"))
	putPython(t, ada, map[string]string{"hers": "def main(args):\n    return {}\n"})

	answer, body := send(t, browsed(t, "POST", console+"login", fmt.Sprintf(`{"key":%q}`, s.Auth), "", ""))
	var session struct{ Namespace, Token, API string }
	if err := json.Unmarshal([]byte(body), &session); err != nil || session.Namespace != "guest" || session.API != s.URL {
		t.Fatalf("a login is answered %d %s", answer.StatusCode, body)
	}
	cookie, _, _ := strings.Cut(answer.Header.Get("Set-Cookie"), ";")
	at := strings.TrimSuffix(console, "console/") + "api/v1/namespaces/"
	if answer, body := send(t, browsed(t, "GET", at+"_/actions", "", cookie, session.Token)); answer.StatusCode != 200 || !strings.Contains(body, `"page"`) || strings.Contains(body, "hers") {
		t.Errorf("the actions are %d %s", answer.StatusCode, body)
	}
	if answer, body := send(t, browsed(t, "GET", at+"ada/actions", "", cookie, session.Token)); answer.StatusCode != 403 {
		t.Errorf("another tenant's actions: %d %s", answer.StatusCode, body)
	}
	if answer, body := send(t, browsed(t, "GET", s.URL+"/api/v1/namespaces/_/actions", "", cookie, session.Token)); answer.StatusCode != 401 {
		t.Errorf("at the API's address the cookie gives %d %s", answer.StatusCode, body)
	}
	answer, body = send(t, browsed(t, "GET", s.URL+"/api/v1/web/guest/default/page.json", "", cookie+"; mine=1", ""))
	if answer.StatusCode != 200 || !strings.Contains(body, "mine=1") || strings.Contains(body, "forerun-console=") {
		t.Errorf("a web action is told %d %s", answer.StatusCode, body)
	}
	if answer, _ := send(t, browsed(t, "GET", strings.TrimSuffix(console, "console/")+"api/v1/web/guest/default/page.json", "", cookie, session.Token)); answer.StatusCode != 404 {
		t.Errorf("a web action at the console's address: %d", answer.StatusCode)
	}

	feed, err := http.DefaultClient.Do(browsed(t, "GET", at+"_/feed", "", cookie, session.Token))
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Body.Close()
	lines := bufio.NewScanner(feed.Body)
	if !lines.Scan() || feed.StatusCode != 200 {
		t.Fatalf("the feed is answered %s", feed.Status)
	}
	operate(t, s, "rotate", "guest")
	for lines.Scan() { // until it ends
	}
	if answer, body := send(t, browsed(t, "GET", at+"_/actions", "", cookie, session.Token)); answer.StatusCode != 401 {
		t.Errorf("after the key was rotated: %d %s", answer.StatusCode, body)
	}
}

// TestConsoleInBrowser drives the console in a browser.
func TestConsoleInBrowser(t *testing.T) {
	t.Parallel()
	driver, err := filepath.Abs("../.forerun/browser/node_modules/playwright-core/index.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(driver); err != nil {
		t.Skip("what drives a browser is not installed: make test installs it, where there is a Chromium")
	}
	if _, err := os.Stat("../internal/gateway/console/dist/main.js"); err != nil {
		t.Skip("the console's page is not built: make build")
	}
	s := start(t, server.Options{Args: []string{"--console-listen", "127.0.0.1:0"}})
	c := client(t, s)
	putPython(t, c, map[string]string{"hello": "def main(args):\n    return args\n", "hostile": hostile})
	put(t, c, "page", map[string]any{
		"exec":        map[string]any{"kind": "python:3", "code": "def main(args): return {'body': '<p>headers: ' + str(args['__ow_headers'])}"},
		"annotations": []any{map[string]any{"key": "web-export", "value": true}},
	})
	if err := c.PutSequence(t.Context(), "chain", "hello", "hello"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "browser/console.js", consoleURL(t, s), s.URL, s.Auth)
	cmd.Env = append(os.Environ(), "FORERUN_PLAYWRIGHT="+driver)
	cmd.WaitDelay = time.Minute // for a browser that the driver has left
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 77 {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
