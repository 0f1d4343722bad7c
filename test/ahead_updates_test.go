package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// The functions of TestAheadOfUpdates: the first asks the API for what its list of wishes says, while the others, which are known,
// run ahead of it; the last calls another.
const wishing = `
import base64, json, os, redis, time, urllib.error, urllib.request
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)
def ask(method, path, body):
    r = urllib.request.Request(os.environ["__OW_API_HOST"] + "/api/v1/namespaces/_/" + path, method=method, data=json.dumps(body).encode())
    r.add_header("Authorization", "Basic " + base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode())
    r.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(r) as answer:
            return [answer.status, json.load(answer)]
    except urllib.error.HTTPError as e:
        return [e.code]
`

var wishers = map[string]string{
	"first": wishing + `
def main(args):
    wish = state.lpop("wishes")
    time.sleep(0.05)
    if wish and ask(*json.loads(wish))[0] != 200:
        return {"error": "the wish was refused"}
    return {}
`,
	"second": "def main(args):\n    return {'second': 1}\n",
	"third": wishing + `
def main(args):
    return args | {"called": ask("POST", "actions/callee?blocking=true&result=true", {})}
`,
	"callee": "def main(args):\n    return {'callee': 1}\n",
}

// wish is a request that the first function makes.
func wish(method, path, returned string) string {
	text, _ := json.Marshal([]any{method, path, map[string]any{"exec": map[string]any{
		"kind": "python:3", "code": fmt.Sprintf("def main(args):\n    return {'%s': %q}\n", strings.TrimSuffix(path[len("actions/"):], "?overwrite=true"), returned),
	}}})
	return string(text)
}

// TestAheadOfUpdates: a workflow whose functions update, delete and create those that follow them, and those that these call, gives
// what it gives where nothing runs ahead. Whoever ran ahead had the old ones.
func TestAheadOfUpdates(t *testing.T) {
	needPackages(t)
	t.Parallel()
	wishes := []string{
		"", "", "", // it becomes known
		wish("PUT", "actions/second?overwrite=true", "updated"), "", "",
		wish("PUT", "actions/callee?overwrite=true", "updated"), "", "",
		wish("DELETE", "actions/second", ""), wish("PUT", "actions/second", "there again"), "", "",
		wish("DELETE", "actions/callee", ""), "", "",
		wish("PUT", "actions/callee", "there again"), "", "",
		wish("PUT", "actions/third?overwrite=true", "no more calls"), "", "",
	}
	plain, _ := wishedFor(t, "off", wishes)
	ahead, metrics := wishedFor(t, "all; least=0s; load=any", wishes)
	for i, want := range plain {
		if ahead[i] != want {
			t.Errorf("invocation %d (%s) gave %s, and ahead %s", i, wishes[i], want, ahead[i])
		}
	}
	if strings.Contains(metrics, `forerun_squashes_total{cause="update"} 0`) || strings.Contains(metrics, `forerun_predictions_total{outcome="right"} 0`) {
		t.Errorf("nothing ran ahead, or nothing of that was squashed for an update:\n%s", metrics)
	}
}

// wishedFor invokes the workflow with one wish after the other, and returns what it gave.
func wishedFor(t *testing.T, speculate string, wishes []string) (given []string, metrics string) {
	t.Helper()
	s := start(t, server.Options{Redis: true, Args: []string{"--speculate", speculate}})
	c, state := client(t, s), outside(t, s)
	for name, code := range wishers {
		putRightful(t, c, name, code)
	}
	if err := c.PutSequence(t.Context(), "wishes", "first", "second", "third"); err != nil {
		t.Fatal(err)
	}
	for _, wish := range wishes {
		if wish != "" {
			if err := state.RPush(t.Context(), "wishes", wish).Err(); err != nil {
				t.Fatal(err)
			}
		}
		code, body, err := c.Do(t.Context(), http.MethodPost, "actions/wishes?blocking=true&result=true", map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, fmt.Sprintf("%d %s", code, body))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, metrics = send(t, r)
	return given, metrics
}
