package test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// The functions of TestCallsAhead. What mail does counts; the first of each workflow gives, after a while, what a record said when it
// began: once that has changed, all that ran ahead on what it gave before was wrong.
var callers = map[string]string{
	"first": wishing + `
def main(args):
    said = state.get("said") or b""
    time.sleep(0.1)
    return args | {"said": said.decode()}
`,
	"firstcalls": wishing + `
def main(args):
    time.sleep(0.2)
    return {"first": ask("POST", "actions/note?blocking=true&result=true", {})}
`,
	"mail": wishing + `
def main(args):
    return {"mails": state.incr("mails")}
`,
	"note": "def main(args):\n    return {'noted': True}\n",
	// It shows the tenant's key in place of its own.
	"othercalls": wishing + `
def main(args):
    os.environ["__OW_API_KEY"] = args["auth"]
    return {"mail": ask("POST", "actions/mail?blocking=true&result=true", {})}
`,
	"calls": wishing + `
def main(args):
    return args | {"note": ask("POST", "actions/note?blocking=true&result=true", {})}
`,
	// It asks for the record of what it has called.
	"looks": wishing + `
def main(args):
    status, called = ask("POST", "actions/note?blocking=true", {})
    r = urllib.request.Request(os.environ["__OW_API_HOST"] + "/api/v1/namespaces/_/activations/" + called["activationId"])
    r.add_header("Authorization", "Basic " + base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode())
    try:
        with urllib.request.urlopen(r) as answer:
            return {"found": answer.status}
    except urllib.error.HTTPError as e:
        return {"found": e.code}
`,
}

// TestCallsAhead: whom a function calls that runs ahead has the answers, the room and the records that it has where nothing does.
func TestCallsAhead(t *testing.T) {
	needPackages(t)
	t.Parallel()
	plain, ahead := callsOf(t, "off"), callsOf(t, "all; least=0s; load=any")
	for i, want := range plain {
		if ahead[i] != want {
			t.Errorf("%d: it gave %s, and ahead %s", i, want, ahead[i])
		}
	}
}

// callsOf deploys the workflows on a server and returns what each invocation gave.
func callsOf(t *testing.T, speculate string) (given []string) {
	t.Helper()
	s := start(t, server.Options{Redis: true, Args: []string{"--speculate", speculate, "--concurrent-invocations", "2"}})
	c, state := client(t, s), outside(t, s)
	putPython(t, c, callers)
	for name, of := range map[string][]string{"otherkey": {"first", "othercalls"}, "room": {"firstcalls", "calls"}, "records": {"first", "looks"}} {
		if err := c.PutSequence(t.Context(), name, of...); err != nil {
			t.Fatal(err)
		}
	}
	invoke := func(name string, input map[string]any) {
		code, body, err := c.Do(t.Context(), http.MethodPost, "actions/"+name+"?blocking=true&result=true", input)
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, fmt.Sprintf("%s: %d %s", name, code, body))
	}
	for i := range 4 {
		if i == 2 {
			if err := state.Set(t.Context(), "said", "another thing", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"otherkey", "room", "records"} {
			invoke(name, map[string]any{"auth": s.Auth})
		}
	}
	invoke("mail", map[string]any{}) // which says how many there were
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, metrics := send(t, r); speculate != "off" && strings.Contains(metrics, `forerun_predictions_total{outcome="right"} 0`) {
		t.Errorf("nothing ran ahead:\n%s", metrics)
	}
	return given
}
