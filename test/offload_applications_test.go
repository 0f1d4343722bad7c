package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// offloadAsk sends a request below /offload/ with a key, and returns its status and answer.
func offloadAsk(t *testing.T, s *server.Server, method, path, auth, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/offload/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if uuid, key, ok := strings.Cut(auth, ":"); ok {
		r.SetBasicAuth(uuid, key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

// offloadTelling reports as an agent does, with a function's token.
const offloadTelling = `
import base64, os, urllib.error, urllib.request

def main(args):
    key = base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode()
    r = urllib.request.Request("http://127.0.0.1:3233/offload/applications/shop/processes/f", b"{}", {"Authorization": "Basic " + key}, method="PUT")
    try:
        return {"status": urllib.request.urlopen(r).status}
    except urllib.error.HTTPError as e:
        return {"status": e.code}
`

// TestOffloadApplications reports as agents do: counts of processes are added, tenants are apart, and there are bounds.
func TestOffloadApplications(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	other := operate(t, s, "create", "other")
	report := func(application, process string, offloaded int, refused string) (int, string) {
		body := fmt.Sprintf(`{"java": 17, "instances": 2, "roots": [{"root": "a.B#c()V", "offloaded": %d, "refused": %q, "exchanges": {"invoke": 3}}]}`, offloaded, refused)
		return offloadAsk(t, s, http.MethodPut, "applications/"+application+"/processes/"+process, s.Auth, body)
	}
	for _, process := range []string{"one", "two"} {
		if status, answer := report("shop", process, 5, ""); status != http.StatusOK || answer != `{"mode":"on"}` {
			t.Errorf("a report is answered %d %s", status, answer)
		}
	}
	if status, answer := offloadAsk(t, s, http.MethodPut, "applications/shop/mode", s.Auth, `{"mode": "off"}`); status != http.StatusOK {
		t.Errorf("off is answered %d %s", status, answer)
	}
	if _, answer := report("shop", "two", 7, "it is odd"); answer != `{"mode":"off"}` {
		t.Errorf("a report of an application that is off is answered %s", answer)
	}
	status, answer := offloadAsk(t, s, http.MethodGet, "applications/shop", s.Auth, "")
	var shop struct {
		Mode                 string
		Processes, Instances int
		Java                 []int
		Roots                []struct {
			Root, Refused string
			Offloaded     int
			Exchanges     map[string]int
		}
	}
	if err := json.Unmarshal([]byte(answer), &shop); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, answer, err)
	}
	if got := fmt.Sprint(shop); got != "{off 2 4 [17] [{a.B#c()V it is odd 12 map[invoke:6]}]}" {
		t.Errorf("the application is shown as %s", got)
	}
	for _, refused := range []struct {
		method, path, auth, body string
		status                   int
	}{
		{http.MethodGet, "applications", "", "", http.StatusUnauthorized},
		{http.MethodPut, "applications/shop/processes/x", "", "{}", http.StatusUnauthorized},
		{http.MethodGet, "applications/shop", other, "", http.StatusNotFound},
		{http.MethodPut, "applications/shop/mode", other, `{"mode": "on"}`, http.StatusNotFound},
		{http.MethodPut, "applications/shop/mode", s.Auth, `{"mode": "never"}`, http.StatusBadRequest},
		{http.MethodPut, "applications/shop/processes/x", s.Auth, `{"roots": 3}`, http.StatusBadRequest},
		{http.MethodPut, "applications/" + strings.Repeat("x", 101) + "/processes/x", s.Auth, "{}", http.StatusBadRequest},
		{http.MethodPut, "applications/shop/processes/x", s.Auth, `{"roots": [` + strings.Repeat(" ", 1<<20) + `]}`, http.StatusRequestEntityTooLarge},
	} {
		if status, answer := offloadAsk(t, s, refused.method, refused.path, refused.auth, refused.body); status != refused.status {
			t.Errorf("%s %.40s is answered %d %s, want %d", refused.method, refused.path, status, answer, refused.status)
		}
	}
	putPython(t, c, map[string]string{"telling": offloadTelling})
	var told struct{ Status int }
	if err := c.Result(t.Context(), "telling", nil, &told); err != nil || told.Status != http.StatusForbidden {
		t.Errorf("a function's report is answered %d: %v", told.Status, err)
	}
	for i := range 99 {
		if status, answer := report(fmt.Sprint("a", i), "one", 1, ""); status != http.StatusOK {
			t.Fatalf("application %d is answered %d %s", i, status, answer)
		}
	}
	if status, answer := report("last", "one", 1, ""); status != http.StatusTooManyRequests {
		t.Errorf("the application over the bound is answered %d %s", status, answer)
	}
	for i := range 98 {
		if status, answer := report("shop", fmt.Sprint("p", i), 1, ""); status != http.StatusOK {
			t.Fatalf("process %d is answered %d %s", i, status, answer)
		}
	}
	if status, answer := report("shop", "last", 1, ""); status != http.StatusTooManyRequests {
		t.Errorf("the process over the bound is answered %d %s", status, answer)
	}
}
