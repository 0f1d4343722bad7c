package test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// askHost sends a GET to a server with a header Host.
func askHost(t *testing.T, url, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, body := send(t, r)
	return answer.StatusCode, body
}

// TestWebOrigin: web actions have a listener or a host for each tenant of their own, and nothing else is there.
func TestWebOrigin(t *testing.T) {
	t.Parallel()
	page := map[string]any{
		"exec":        map[string]any{"kind": "python:3", "code": "def main(args): return {'body': 'hello'}"},
		"annotations": []any{map[string]any{"key": "web-export", "value": true}},
	}
	others := []string{"/", "/api/v1", "/api/v1/namespaces", "/admin/v1/tenants", "/metrics", "/docs/guide/web.md"}

	t.Run("listener", func(t *testing.T) {
		t.Parallel()
		s := start(t, server.Options{Args: []string{"--web-listen", "127.0.0.1:0"}})
		put(t, client(t, s), "page", page)
		_, info := askHost(t, s.URL+"/api/v1", "")
		var told struct {
			URL string `json:"web_url"`
		}
		if err := json.Unmarshal([]byte(info), &told); err != nil || !strings.HasPrefix(told.URL, "http://127.0.0.1:") || told.URL == s.URL {
			t.Fatalf("the API says %s (%v)", info, err)
		}
		const path = "/api/v1/web/guest/default/page"
		if status, body := askHost(t, told.URL+path, ""); status != http.StatusOK || body != "hello" {
			t.Errorf("at its own address: %d %s", status, body)
		}
		if status, body := askHost(t, s.URL+path, ""); status != http.StatusNotFound || !strings.Contains(body, told.URL) {
			t.Errorf("at the API's address: %d %s", status, body)
		}
		for _, other := range others {
			if status, body := askHost(t, told.URL+other, ""); status != http.StatusNotFound {
				t.Errorf("%s at the address of web actions: %d %s", other, status, body)
			}
		}
		out, err := exec.CommandContext(t.Context(), binary, "action", "get", "page", "--url", "--apihost", s.URL, "--auth", s.Auth).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != told.URL+path {
			t.Errorf("forerun action get --url says %s (%v)", got, err)
		}
	})

	t.Run("host", func(t *testing.T) {
		t.Parallel()
		s := start(t, server.Options{Args: []string{"--web-host", "TENANT.example.org"}})
		ada := as(t, s, operate(t, s, "create", "ada"))
		put(t, client(t, s), "page", page)
		put(t, ada, "page", page)
		for _, c := range []struct {
			host, path string
			want       int
		}{
			{"guest.example.org", "/api/v1/web/guest/default/page", 200},
			{"ADA.example.org:8443", "/api/v1/web/ada/default/page", 200},
			{"ada.example.org", "/api/v1/web/guest/default/page", 404},
			{"guest.example.org", "/api/v1/web/ada/default/page", 404},
			{"guest.example.org", "/api/v1/web/%61da/default/page", 404},
			{"a.guest.example.org", "/api/v1/web/guest/default/page", 404},
			{"example.org", "/api/v1/web/guest/default/page", 404},
			{"", "/api/v1/web/guest/default/page", 404},
			{"", "/api/v1", 200},
		} {
			if status, body := askHost(t, s.URL+c.path, c.host); status != c.want {
				t.Errorf("%s at %q: %d %s", c.path, c.host, status, body)
			}
		}
		for _, other := range others {
			if status, body := askHost(t, s.URL+other, "ada.example.org"); status != http.StatusNotFound {
				t.Errorf("%s at the host of web actions: %d %s", other, status, body)
			}
		}
		out, err := exec.CommandContext(t.Context(), binary, "action", "get", "page", "--url", "--apihost", s.URL, "--auth", ada.Auth).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != "https://ada.example.org/api/v1/web/ada/default/page" {
			t.Errorf("forerun action get --url says %s (%v)", got, err)
		}
	})
}
